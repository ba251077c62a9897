"""Settings as text: YAML files and `key=value` words, looked at before they are turned into values."""
import typing
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from common.errors import UserError, one_line, shown

PRESETS = Path(__file__).resolve().parent / 'configs'
MAX_BYTES = 2 ** 20
MAX_DEPTH = 4  # lists in lists; no setting has more than one
WORDS = {int: 'a whole number', float: 'a number', bool: 'true or false', str: 'a text',
         type(None): 'null'}


def preset_path(name: str) -> Path:
    """The YAML file of a preset ('body', 'hand', 'nano'), or the file of that path. UserError: neither is there."""
    if not name:
        raise UserError('--cfg is empty: name a preset (body, hand, nano, nano_hand) or a YAML file')
    path = PRESETS / f'{name}.yaml'
    if not path.is_file():
        path = Path(name)
    if not path.exists():
        presets = ', '.join(sorted(preset.stem for preset in PRESETS.glob('*.yaml')))
        raise UserError(f'--cfg {name}: neither a preset ({presets}) nor an existing YAML file')
    return path


def read_settings(path: Path) -> dict[str, Any]:
    """{key: value} of a YAML file of settings. UserError: it cannot be read, or is not such a file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError('it is larger than a megabyte')
        text = path.read_text(encoding='utf-8')
        if not text.strip():
            raise ValueError('it is empty')
        if check_yaml(text) is not yaml.MappingStartEvent:
            raise ValueError('it has no lines of "key: value"')
        values: Any = OmegaConf.to_container(OmegaConf.create(text))
    except OSError as error:
        hint = 'name a YAML file'
        if isinstance(error, PermissionError):
            hint = 'check its permissions'
        raise UserError(f'--cfg {path} cannot be read ({error.strerror}): {hint}') from error
    except Exception as error:  # OmegaConf passes on whatever its YAML parser raises
        raise UserError(f'--cfg {path} is not a YAML file of settings ({one_line(error)}): '
                        'main/configs has examples') from error
    return _without_gpus(values)


def read_words(words: list[str]) -> dict[str, Any]:
    """{key: value} of `['key=value', ...]`; of a key that is there twice the last counts. UserError: another form."""
    for word in words:
        key, equals, value = word.partition('=')
        if not (equals and key.isidentifier()):
            raise UserError(f'"{shown(word)}" is not an option: write key=value, such as train_batch_size=8')
        try:
            check_yaml(value)
        except Exception as error:
            raise UserError(f'cannot read the options: {shown(word)}: {one_line(error)}') from error
    try:
        values: Any = OmegaConf.to_container(OmegaConf.from_dotlist(list(words)))
    except Exception as error:
        text = shown(' '.join(words))
        raise UserError(f'cannot read the options {text}: {one_line(error)}') from error
    return _without_gpus(values)


def _without_gpus(values: dict[str, Any]) -> dict[str, Any]:
    if 'gpu_ids' in values:
        given = shown(values['gpu_ids'])
        raise UserError(f'gpu_ids={given} has no effect, the GPUs are chosen before: --gpu IDS')
    return values


def check_yaml(text: str) -> type | None:
    """The kind of event a YAML text starts with, None for no content.

    Raises:
        ValueError: the text would grow when it is read, by names for parts of itself (& and *, ${...}), or is deeply
            nested.
    """
    if '${' in text:
        raise ValueError('settings cannot use ${...}')
    depth = 0
    first = None
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, 'anchor', None):
            raise ValueError('settings cannot use names for parts (& and *)')
        if isinstance(event, yaml.NodeEvent):
            first = first or type(event)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError('lists are nested too deeply')
    return first


def in_words(kind: Any) -> str:
    """What values a type of main/config.py has: 'a list of 2 whole numbers', 'a number or null'."""
    origin = typing.get_origin(kind)
    parts = typing.get_args(kind)
    if origin is list:
        example = '[1,2]' if parts[0] is int else '[a,b]'
        return f'a list, each of them {WORDS[parts[0]]}, such as {example}'
    if origin is tuple:
        return f'a list of {len(parts)}, each of them {WORDS[parts[0]]}'
    if parts:
        return ' or '.join(in_words(part) for part in parts)
    return WORDS[kind]
