"""The demo's command line: what excludes or needs what, and numbers in any form."""
import os
import signal
import subprocess
import sys

import pytest

from common.demo.options import plain_words
from common.errors import UserError
from main.cli import make_parser
from main.config import ROOT
from main.demo import main
from tests.demo_tools import write_image


@pytest.fixture
def photo(tmp_path):
    return write_image(tmp_path / 'photo.jpg')


def complaint(*words):
    """The one line of a command line that is refused."""
    with pytest.raises(UserError) as caught:
        main(['--gpu', 'cpu', *map(str, words)])
    assert '\n' not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize('option, values', [
    ('--focal', ['1', '2']), ('--cfg', ['body', 'body']), ('--snapshot', ['a', 'b']), ('--stage', ['lixel', 'param']),
    ('--input', ['a.jpg', 'b.jpg']), ('--bbox_file', ['a', 'b']), ('--root_depth', ['5', '6']), ('--port', ['1', '2'])])
def test_given_twice(option, values):
    assert complaint(option, values[0], option, values[1]) == f'{option} is given twice: leave out one of them'


def test_given_twice_is_for_all_programs_and_not_for_settings():
    parser = make_parser('')
    args = parser.parse_intermixed_args(['a=1', '--cfg', 'nano', 'b=2'])
    assert args.options == ['a=1', 'b=2'] and args.cfg == 'nano'
    with pytest.raises(UserError, match='--gpu is given twice'):
        parser.parse_args(['--gpu', '0', '--gpu', '1'])


@pytest.mark.parametrize('option, value, needed', [
    ('--detector', 'keypointrcnn_resnet50_fpn', '--detect or --serve'),
    ('--detector_weights', 'x', '--detect or --serve'),
    ('--detector_threshold', '0', '--detect or --bbox_file or --serve'), ('--port', '0', '--serve'),
    ('--host', '0.0.0.0', '--serve')])
def test_options_that_would_do_nothing(photo, option, value, needed):
    assert complaint('--input', photo, '--bbox', 'full', option, value) == f'{option} needs {needed}'


def test_formats_and_filters_that_would_do_nothing(photo):
    format_alone = complaint('--input', photo, '--detect', '--bbox_format', 'xywh')
    assert format_alone == '--bbox_format needs --bbox or --bbox_file'
    assert complaint('--input', photo, '--bbox', 'full', '--smooth') == '--smooth is for videos'
    assert complaint('--input', photo, '--bbox', 'full', '--side_by_side') == '--side_by_side is for videos'
    assert complaint('--input', photo, '--bbox', 'full', '--every_frame') == '--every_frame is for videos'
    assert complaint('--input', 'a.mp4', '--detect', '--every_frame') == '--every_frame needs --bbox'
    folder = photo.with_suffix('.mp4')  # holds images, whatever it is called
    folder.mkdir()
    assert complaint('--input', folder, '--bbox', 'full', '--smooth') == '--smooth is for videos'
    assert 'from 0 to 1' in complaint('--input', photo, '--detect', '--detector_threshold', 'nan')


def test_the_original_placement_needs_a_depth(photo):
    told = complaint('--input', photo, '--bbox', 'full', '--placement', 'original')
    assert told == '--placement original needs --root_depth: the original has no other source of the depth'


@pytest.mark.parametrize('words', [
    '--input a.jpg', '--bbox full', '--bbox_format xyxy', '--bbox_file a', '--detect', '--smooth',
    '--side_by_side', '--turntable', '--every_frame', '--output out'])
def test_the_page_takes_its_images_and_boxes_itself(words):
    assert complaint('--serve', *words.split()).startswith(f'{words.split()[0]} does not go with --serve')
    assert complaint('--serve', '--root_depth', 3, 4) == '--root_depth takes one number with --serve'


@pytest.mark.parametrize('option', ['--input', '--output', '--bbox_file', '--detector_weights'])
def test_empty_paths(option):
    assert complaint(option, '') == f'{option} is empty: give a path'


def test_negative_numbers_in_any_form():
    words = ['--bbox', '-1e3', '-5', '-.5', '-inf', '--port', '-h', 'a=-1e3', '-', '--']
    assert plain_words(words) == ['--bbox', ' -1e3', ' -5', ' -.5', ' -inf', '--port', '-h', 'a=-1e3', '-', '--']


@pytest.mark.parametrize('option, told', [
    ('--bbox -1e3 0 5 5', 'photo.jpg: --bbox: -1e3 0 5 5 lies outside the image of 180 x 240 pixels'),
    ('--bbox -inf 0 5 5', 'photo.jpg: --bbox: a box is four numbers in pixels, x y w h, not -inf 0 5 5'),
    ('--bbox full --princpt -1e7 5', '--princpt must be two finite numbers of pixels, at most 1000000'),
    ('--bbox full --focal -1e3', '--focal must be a positive number of pixels, from 1 to 1000000')])
def test_negative_numbers_are_values(photo, option, told):
    assert complaint('--input', photo, *option.split()) == told


@pytest.mark.timeout(320)
def test_exit_code_and_one_line(tmp_path):
    ran = subprocess.run([sys.executable, str(ROOT / 'main' / 'demo.py'), '--input', ''], cwd=tmp_path, text=True,
                         capture_output=True, timeout=300, env=os.environ | {'OMP_NUM_THREADS': '1'})
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, '', 'error: --input is empty: give a path\n')


def test_a_page_that_cannot_start_leaves_the_signals_alone():
    before = signal.getsignal(signal.SIGTERM)
    assert '--port 70000: cannot listen there' in complaint('--serve', '--port', 70000)
    assert complaint('--serve', '--host', '300.1.1.1').startswith('--host 300.1.1.1 --port 8765: cannot listen there')
    assert signal.getsignal(signal.SIGTERM) is before
