"""Settings as text: YAML files and `key=value` words, looked at before they are turned into values.

Numbers and lists of them are written as in YAML. A text is what stands there, character by character: 2024_05_01, 1e3
and no are names of folders as good as any.
"""
import re
import typing
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from common.arguments import written_out
from common.errors import UserError, one_line, shown

PRESETS = Path(__file__).resolve().parent / 'configs'
MAX_BYTES = 2 ** 20
MAX_DEPTH = 4  # lists in lists; no setting has more than one
WORDS = {int: 'a whole number', float: 'a number', bool: 'true or false', str: 'a text',
         type(None): 'null'}
TRUTH = {'true': True, 'yes': True, 'on': True, 'false': False, 'no': False, 'off': False}
NULL = 'tag:yaml.org,2002:null'
BOOL = 'tag:yaml.org,2002:bool'
ELEMENT = re.compile(r'\s*("[^"]*"|\'[^\']*\'|[^,]*?)\s*(?:,|$)')  # of a list of texts


def preset_path(name: str) -> Path:
    """The YAML file of a preset ('body', 'hand', 'nano'), or the file of that path. UserError: neither is there."""
    if not name:
        raise UserError('--cfg is empty: name a preset (body, hand, nano, nano_hand) or a YAML file')
    path = PRESETS / f'{name}.yaml'
    if not path.is_file():
        path = Path(written_out(name, '--cfg'))
    if not path.exists():
        presets = ', '.join(sorted(preset.stem for preset in PRESETS.glob('*.yaml')))
        raise UserError(f'--cfg {name}: neither a preset ({presets}) nor an existing YAML file')
    return path


def read_settings(path: Path, kinds: dict[str, Any]) -> dict[str, Any]:
    """{key: value} of a YAML file of settings.

    Args:
        path: The file.
        kinds: {key: type}, to tell texts from the rest.
    Raises:
        UserError: It cannot be read, or is not such a file.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError('it is larger than a megabyte')
        text = path.read_text(encoding='utf-8-sig')
        if not text.strip():
            raise ValueError('it is empty')
        if check_yaml(text) is not yaml.MappingStartEvent:
            raise ValueError('it has no lines of "key: value"')
        values: Any = OmegaConf.to_container(OmegaConf.create(text))
        values |= _written_texts(text, kinds)
    except OSError as error:
        hint = 'name a YAML file'
        if isinstance(error, PermissionError):
            hint = 'check its permissions'
        raise UserError(f'--cfg {path} cannot be read ({error.strerror}): {hint}') from error
    except Exception as error:  # OmegaConf passes on whatever its YAML parser raises
        raise UserError(f'--cfg {path} is not a YAML file of settings ({reason(error)}): '
                        'main/configs has examples') from error
    return _without_gpus(values)


def read_words(words: list[str], kinds: dict[str, Any]) -> dict[str, Any]:
    """{key: value} of `['key=value', ...]`; of a key that is there twice the last counts.

    Args:
        words: What the user wrote.
        kinds: {key: type}, to tell texts from the rest.
    Raises:
        UserError: A word has another form.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition('=')
        if not (equals and key.isidentifier()):
            raise UserError(f'"{shown(word)}" is not an option: write key=value, such as train_batch_size=8')
        try:
            values[key] = _value_of(word, value, kinds.get(key))
        except Exception as error:  # OmegaConf passes on whatever its YAML parser raises
            raise UserError(f'cannot read the options: {shown(word)}: {reason(error)}') from error
    return _without_gpus(values)


def reason(error: Exception) -> str:
    """What is wrong with a text, in our words where the YAML parser would quote its own state."""
    if not isinstance(error, yaml.YAMLError):
        return one_line(error)
    mark = getattr(error, 'problem_mark', None)
    place = ''
    if mark is not None and mark.line:
        place = f' near line {mark.line + 1}'
    return f'not written as YAML{place}: see to its brackets, quotes, colons and indentation'


def _value_of(word: str, text: str, kind: Any) -> Any:
    """What the `key=text` of a word stands for; ValueError and whatever a YAML parser raises."""
    if '${' in text:
        raise ValueError('settings cannot use ${...}')
    if _is_text(kind):
        if bool in typing.get_args(kind):
            return TRUTH.get(text.lower(), text)
        return text
    if kind == list[str] and text.startswith('[') and text.endswith(']'):
        return split_texts(text[1:-1])
    check_yaml(text)
    values: Any = OmegaConf.to_container(OmegaConf.from_dotlist([word]))
    return values[word.partition('=')[0]]


def _is_text(kind: Any) -> bool:
    return kind is str or str in typing.get_args(kind) and typing.get_origin(kind) is not list


def split_texts(text: str) -> list[str]:
    """The elements between the brackets of a list of texts, as they stand there; quotes around one are left out."""
    elements = []
    rest = text.strip()
    while rest:
        match = ELEMENT.match(rest)
        assert match  # an element, a comma, or both
        element = match[1]
        if len(element) > 1 and element[0] in '"\'' and element[-1] == element[0]:
            element = element[1:-1]
        elements.append(element)
        rest = rest[match.end():]
    return elements


def _written_texts(text: str, kinds: dict[str, Any]) -> dict[str, Any]:
    """The texts of a YAML file as they are written there, where YAML would take them for numbers or truth values."""
    written: dict[str, Any] = {}
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for key_node, node in root.value:
        key = key_node.value
        kind = kinds.get(key)
        kept = {NULL} if kind is str else {NULL, BOOL}  # as YAML reads them
        if _is_text(kind) and isinstance(node, yaml.ScalarNode) and node.tag not in kept:
            written[key] = node.value
        elif kind == list[str] and isinstance(node, yaml.SequenceNode):
            if all(isinstance(part, yaml.ScalarNode) for part in node.value):
                written[key] = [part.value for part in node.value]
    return written


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
