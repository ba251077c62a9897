"""README in two languages: the same commands, headings, tables, settings and links."""
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = (ROOT / name for name in ('README.md', 'README.zh.md'))
OWN_NAMES = {'README.md', 'README.zh.md'}


def text_of(path):
    return re.sub(r'^```.*?^```', '', path.read_text(encoding='utf-8'), flags=re.S | re.M)


def commands(path):
    blocks = re.findall(r'^```\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M)
    lines = [line for block in blocks for line in block.replace('\\\n', ' ').splitlines()]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def headings(path):
    return [len(level) for level in re.findall(r'^(#+) ', text_of(path), re.M)]


def table_shapes(path):
    return [line.count('|') for line in text_of(path).splitlines() if line.startswith('|')]


def inline_code(path):
    return set(re.findall(r'`([^`]+)`', text_of(path)))


def files_linked(path):
    links = set(re.findall(r'\]\(([^)#]+)[^)]*\)', text_of(path)))
    return {link for link in links if link not in OWN_NAMES}


@pytest.mark.parametrize('part', [commands, headings, table_shapes, inline_code, files_linked],
                         ids=lambda part: part.__name__)
def test_both_languages_say_the_same(part):
    assert part(ENGLISH) == part(CHINESE)
    assert part(ENGLISH)


@pytest.mark.parametrize('path', [ENGLISH, CHINESE], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    text = text_of(path)
    titles = [re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in re.findall(r'^#+ (.*)', text, re.M)]
    for link in re.findall(r'\]\(([^):]+)\)', text):
        file, _, title = link.partition('#')
        assert (ROOT / file).exists() if file else title in titles, link
