"""Which values the settings may have: a rule beside each field of Config, and checks of several settings together."""
import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from common.errors import UserError, shown
from data import require_dataset

LARGEST_INPUT = 4096  # pixels
LARGEST_DEPTH = 1024  # lixels
STRIDE = 4  # input pixels per lixel in x and y: the backbone's map is 32 times smaller, the heads double it thrice


@dataclass(frozen=True)
class Rule:
    """The values that a setting may have, besides its type.

    `at_most` is where a run would not fail but fill the memory, or never end; published settings are far below it.
    """
    choices: tuple = ()
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    is_path: bool = False  # a file or folder: a relative one counts from the repository root
    are_datasets: bool = False  # a data set or several
    key: str | None = None  # what a user writes, where the field itself has another name


def setting(default: Any, **rule: Any) -> Any:
    """A field of Config with its default, and the keywords of its Rule."""
    metadata = {'rule': Rule(**rule)}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def rule_of(setting: dataclasses.Field) -> Rule:
    """The rule of a field."""
    return setting.metadata.get('rule', Rule())


def check_value(key: str, value: Any, rule: Rule) -> None:
    """UserError for a value of the right type that no run could use. None, where the type allows it, is fine."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f'{key}={value}: must be a finite number')
    if isinstance(value, str) and '\0' in value:
        raise UserError(f'{key} contains a NUL character')
    if rule.choices and value not in rule.choices:
        raise UserError(f'{key}={shown(value)}: one of {", ".join(map(str, rule.choices))}')
    if rule.is_path and value == '':
        raise UserError(f'{key} is empty: name a folder or file, or leave it out for the default')
    if rule.are_datasets:
        for name in [value] if isinstance(value, str) else value:
            require_dataset(name)
    if value is not None:
        fault = out_of_range(value, rule)
        if fault:
            raise UserError(f'{key}={value}: {fault}')


def out_of_range(value: Any, rule: Rule) -> str | None:
    """What a number must be and is not, or None."""
    if rule.above is not None and value <= rule.above:
        return f'must be above {rule.above}'
    if rule.at_least == 0 and value < 0:
        return 'must not be negative'
    if rule.at_least is not None and value < rule.at_least:
        return f'must be at least {rule.at_least}'
    if rule.below is not None and value >= rule.below:
        return f'must be below {rule.below}'
    if rule.at_most is not None and value > rule.at_most:
        return f'must not be above {rule.at_most}'
    return None


def check_train_batch(size: int) -> None:
    """UserError for a batch (samples per device) that batch normalisation cannot train on."""
    if size < 2:
        raise UserError(f'train_batch_size={size}: batch normalisation needs at least two samples on every device')


def check_heat_maps(input_img_shape: tuple[int, int], output_hm_shape: tuple[int, int, int]) -> None:
    """UserError unless heat maps (depth, height, width) lixels are what the network makes of (height, width) pixels."""
    depth, *plane = output_hm_shape
    good_sides = [side % 32 == 0 and 32 <= side <= LARGEST_INPUT for side in input_img_shape]
    if not all(good_sides) or not 1 <= depth <= LARGEST_DEPTH:
        raise UserError(f'input_img_shape={list(input_img_shape)} output_hm_shape={list(output_hm_shape)}: height and '
                        f'width of the input must be multiples of 32 pixels up to {LARGEST_INPUT}, and the depth at '
                        f'least one lixel and at most {LARGEST_DEPTH}')
    height, width = (side // STRIDE for side in input_img_shape)
    if plane != [height, width]:
        raise UserError(f'output_hm_shape={list(output_hm_shape)}: an input of {input_img_shape[0]} x '
                        f'{input_img_shape[1]} pixels gives heat maps of {height} x {width} lixels: set '
                        f'output_hm_shape=[{depth},{height},{width}], or another input_img_shape')
