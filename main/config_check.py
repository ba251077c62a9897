"""Which values the settings may have: a rule beside each field of Config, and checks of several settings together."""
import dataclasses
import difflib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from common.arguments import written_out
from common.errors import UserError, shown
from data import require_dataset
from main.config_text import in_words

LARGEST_INPUT = 4096  # pixels
LARGEST_DEPTH = 1024  # lixels
STRIDE = 4  # input pixels per lixel in x and y: the backbone divides by 32, the heads double three times


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


def fields_by_key(config: type) -> dict[str, dataclasses.Field]:
    """The fields of a dataclass by what a user calls them."""
    return {rule_of(field).key or field.name: field for field in dataclasses.fields(config)}


def typed_values(config: type, changes: dict[str, Any], root: Path) -> dict[str, Any]:
    """What a user set, in the types of the fields.

    Args:
        config: the dataclass. changes: {key: value}. root: what relative paths count from.
    Returns:
        {name of the field: value}.
    Raises:
        UserError: unknown key, wrong type or a value out of range.
    """
    fields = fields_by_key(config)
    schema = OmegaConf.structured(config)
    values = {}
    for key, given in changes.items():
        if key not in fields:
            near = difflib.get_close_matches(str(key), sorted(fields), n=3, cutoff=0.5)
            hint = 'main/config.py lists all there are'
            if near:
                hint = f'did you mean {", ".join(near)}?'
            raise UserError(f'unknown option "{shown(key)}": {hint}')
        field = fields[key]
        try:
            OmegaConf.update(schema, field.name, given, merge=False)
        except (OmegaConfBaseException, ValueError, TypeError, OverflowError) as error:
            text = '' if given is None else shown(given)
            raise UserError(f'{key}={text}: must be {in_words(field.type)}') from error
        container: Any = OmegaConf.to_container(schema)
        value = container[field.name]
        check_value(key, value, rule_of(field))
        if isinstance(field.default, tuple):
            value = tuple(value)
        elif rule_of(field).is_path and isinstance(value, str):
            value = str(root / written_out(value, f'{key}:'))
        values[field.name] = value
    return values


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


def check_heat_maps(img_shape: tuple[int, int], hm_shape: tuple[int, int, int], source: str = '') -> None:
    """UserError, beginning with `source`, unless the network makes heat maps of this shape from images of that one.

    Args:
        img_shape: height, width of the input, pixels. hm_shape: depth, height, width of the heat maps, lixels.
    """
    depth, *plane = hm_shape
    good_sides = [side % 32 == 0 and 32 <= side <= LARGEST_INPUT for side in img_shape]
    if not all(good_sides) or not 1 <= depth <= LARGEST_DEPTH:
        raise UserError(f'{source}input_img_shape={list(img_shape)} output_hm_shape={list(hm_shape)}: the input '
                        f'must be multiples of 32 pixels up to {LARGEST_INPUT}, and the depth at least one lixel '
                        f'and at most {LARGEST_DEPTH}')
    height, width = (side // STRIDE for side in img_shape)
    if plane != [height, width]:
        raise UserError(f'{source}output_hm_shape={list(hm_shape)}: an input of {img_shape[0]} x {img_shape[1]} '
                        f'pixels gives heat maps of {height} x {width} lixels: set '
                        f'output_hm_shape=[{depth},{height},{width}], or another input_img_shape')
