"""Settings as text: YAML files and `key=value` words, looked at before they are turned into values."""
import typing
from pathlib import Path

import yaml
from omegaconf import OmegaConf

from common.errors import UserError, one_line, shown

MAX_BYTES = 2 ** 20
MAX_DEPTH = 4  # lists in lists; no setting has more than one
WORDS = {int: 'a whole number', float: 'a number', bool: 'true or false', str: 'a text', type(None): 'null'}


def read_settings(path):
    """{key: value} of a YAML file of settings. UserError: not to be read, or no such file."""
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise ValueError('it is larger than a megabyte')
        text = Path(path).read_text(encoding='utf-8')
        if not text.strip():
            raise ValueError('it is empty')
        if check_yaml(text) is not yaml.MappingStartEvent:
            raise ValueError('it has no lines of "key: value"')
        values = OmegaConf.to_container(OmegaConf.create(text))
    except OSError as error:
        hint = 'see to its permissions' if isinstance(error, PermissionError) else 'name a YAML file'
        raise UserError(f'--cfg {path} cannot be read ({error.strerror}): {hint}') from error
    except Exception as error:  # OmegaConf passes on whatever its YAML parser raises
        raise UserError(f'--cfg {path} is not a YAML file of settings ({one_line(error)}): main/configs has '
                        'examples') from error
    return _without_gpus(values)


def read_words(words):
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
        values = OmegaConf.to_container(OmegaConf.from_dotlist(list(words)))
    except Exception as error:
        raise UserError(f'cannot read the options {shown(" ".join(words))}: {one_line(error)}') from error
    return _without_gpus(values)


def _without_gpus(values):
    if 'gpu_ids' in values:
        raise UserError(f'gpu_ids={shown(values["gpu_ids"])} has no effect, the GPUs are chosen before: --gpu IDS')
    return values


def check_yaml(text):
    """The kind of event a YAML text starts with, None for no content. ValueError for texts that grow when they are
    read: with names for parts of themselves (& and *, ${...}) or deep nesting."""
    if '${' in text:
        raise ValueError('settings know no ${...}')
    depth, first = 0, None
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, 'anchor', None):
            raise ValueError('settings know no names for parts (& and *)')
        if isinstance(event, yaml.NodeEvent):
            first = first or type(event)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError('lists are nested too deeply')
    return first


def in_words(kind):
    """What values a type of main/config.py has: 'a list of 2 whole numbers', 'a number or null'."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return f'a list, each of them {WORDS[parts[0]]}, such as {"[1,2]" if parts[0] is int else "[a,b]"}'
    if origin is tuple:
        return f'a list of {len(parts)}, each of them {WORDS[parts[0]]}'
    return ' or '.join(in_words(part) for part in parts) if parts else WORDS[kind]
