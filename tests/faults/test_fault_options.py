"""Every option of every program: absent, doubled, of the wrong type, out of range. Exit code 2 and one line."""
import argparse
import importlib

import pytest

from main import demo, test, train
from tests.demo_tools import write_image, write_snapshot
from tests.faults.commands import refusal, run, says
from tool import (
    benchmark,
    check_assets,
    export_weights,
    mean_pose,
    plot_log,
    rootnet_from_gt,
    synthetic_sheet,
)

PROGRAMS = {'train': train, 'test': test, 'demo': demo, 'benchmark': benchmark, 'check_assets': check_assets,
            'export_weights': export_weights, 'mean_pose': mean_pose, 'plot_log': plot_log,
            'rootnet_from_gt': rootnet_from_gt, 'synthetic_sheet': synthetic_sheet,
            **{f'{name} converter': importlib.import_module(f'tool.{name}.convert')
               for name in ('3DPW', 'FreiHAND', 'SURREAL')}}


class Parsed(Exception):
    """A program has made its parser; `args` are the words as it understood them."""


@pytest.fixture
def parse(monkeypatch):
    """parse(program, words...) -> (its ArgumentParser, what it understands)."""
    def capture(real):
        def parse_args(self, argv=None):
            error = Parsed()
            error.args = self, real(self, argv)
            raise error
        return parse_args

    def parse(program, *words):
        with pytest.MonkeyPatch.context() as patch:
            for name in ('parse_args', 'parse_intermixed_args'):
                patch.setattr(argparse.ArgumentParser, name, capture(getattr(argparse.ArgumentParser, name)))
            with pytest.raises(Parsed) as caught:
                PROGRAMS[program].main([str(word) for word in words])
        return caught.value.args
    return parse


def options_of(parser):
    return [action for action in parser._actions if action.option_strings and action.dest != 'help']


def positionals(program):
    return {'export_weights': ['a', 'b'], 'rootnet_from_gt': ['PW3D'], 'synthetic_sheet': ['a.png']}.get(
        program, ['folder'] if 'converter' in program else [])


def good_values(action):
    """Two values that argparse takes for an option."""
    if action.choices:
        return [str(value) for value in list(action.choices)[:2]]
    return ['1', '2']


@pytest.mark.parametrize('program', PROGRAMS)
def test_every_option_without_its_value_of_the_wrong_type_and_doubled(program, parse, capsys):
    main, first = PROGRAMS[program].main, positionals(program)
    parser = parse(program, *first)[0]
    assert options_of(parser) or program == 'export_weights'
    for action in options_of(parser):
        name = action.option_strings[0]
        if action.nargs == 0:
            says(refusal(capsys, main, *first, f'{name}=x'), f"{name}: ignored explicit argument 'x'")
            assert vars(parse(program, *first, name, name)[1])[action.dest] is True
            continue
        says(refusal(capsys, main, *first, name), f'{name}: expected ')
        if action.type in (int, float):
            says(refusal(capsys, main, *first, name, *['x'] * (action.nargs if isinstance(action.nargs, int) else 1)),
                 f"{name}: invalid {action.type.__name__} value: 'x'")
        if action.choices:
            says(refusal(capsys, main, *first, name, 'x'), f"{name}: invalid choice: 'x'")
        one, two = ([name, *[value] * (action.nargs if isinstance(action.nargs, int) else 1)]
                    for value in good_values(action))
        if name != '--bbox':
            says(refusal(capsys, main, *one, *two), f'^{name} is given twice: leave out one of them$')
        else:
            found = str(vars(parse(program, *first, *one, *two)[1])[action.dest])
            assert one[1] in found and two[1] in found


PATHS = {'snapshot', 'cfg', 'input', 'output', 'bbox_file', 'detector_weights', 'json', 'out', 'raw', 'file', 'logs',
         'human_model_dir', 'files'}
NO_PATHS = {'options', 'overrides', 'names', 'name', 'gpu', 'parts', 'host'}


@pytest.mark.parametrize('program', PROGRAMS)
def test_every_path_is_written_out(program, parse, capsys, monkeypatch, tmp_path):
    """~ is the home folder, and $NAME is refused; every text that an option takes is known to be a path or none."""
    monkeypatch.setenv('HOME', str(tmp_path))
    main, first = PROGRAMS[program].main, positionals(program)
    for action in parse(program, *first)[0]._actions:
        if action.nargs == 0 or action.choices or action.type in (int, float) or action.dest == 'bbox':
            continue
        assert action.dest in PATHS | NO_PATHS, action.dest
        if action.dest not in PATHS:
            continue
        here = first
        words = [action.option_strings[0], '$HOME/a'] if action.option_strings else ['$HOME/a']
        if not action.option_strings:
            here = [] if action.dest != 'out' else first[:-1]
        if action.dest in ('input', 'bbox_file', 'detector_weights', 'output'):
            words += {'input': ['--bbox', 'full'], 'output': ['--input', 'x', '--bbox', 'full'],
                      'bbox_file': ['--input', 'x'], 'detector_weights': ['--input', 'x', '--detect']}[action.dest] \
                if program == 'demo' else []
        says(refusal(capsys, main, *here, *words, *(['b'] if action.dest == 'snapshot' and here == [] else [])),
             r'\$HOME/a: \$NAME is not replaced here')
        if action.type:
            assert str(action.type('~/a')) == f'{tmp_path}/a'


@pytest.mark.parametrize('program', PROGRAMS)
def test_unknown_options_and_positionals_that_are_absent(program, capsys):
    main, first = PROGRAMS[program].main, positionals(program)
    says(refusal(capsys, main, *first, '--no_such_option'), 'unrecognized arguments: --no_such_option')
    if first:
        says(refusal(capsys, main), 'the following arguments are required: ')


GPU, SCORE = ('--gpu', 'cpu'), ('--input', 'x', '--detect', '--detector_threshold')
USAGE = {
    'empty snapshot': ('train', ['--snapshot', ''], '--snapshot: it is empty'),
    'empty snapshot of a test': ('test', ['--snapshot='], '--snapshot: it is empty'),
    'two starts': ('train', ['--continue', '--snapshot', 'x'], 'give one of them'),
}
OUT_OF_RANGE = {
    'no GPU': ('train', ['--gpu', ''], '--gpu "": write ids such as'),
    'no GPU in a test': ('test', ['--gpu='], '--gpu "": write ids such as'),
    'falling ids': ('train', ['--gpu', '3-1'], 'write ids such as'),
    'millions of GPUs': ('train', ['--gpu', '0-99999999999'], 'write ids such as'),
    'foreign digits': ('train', ['--gpu', '٣'], 'write ids such as'),
    'GPUs as a setting': ('train', ['gpu_ids=1'], 'gpu_ids=1 has no effect, .*--gpu IDS'),
    'no preset': ('train', ['--cfg', 'big'], '--cfg big: neither a preset .body, hand, nano, nano_hand. nor'),
    'absent snapshot': ('train', ['--snapshot', '/nowhere/a'], 'no snapshot /nowhere/a'),
    'nothing to continue': ('train', ['--continue'], '--continue: there is no snapshot_<epoch>.pth.tar in'),
    'param first': ('train', ['--stage', 'param'], 'first python main/train.py --stage lixel, then'),
    'no setting': ('train', ['lr'], '"lr" is not an option: write key=value'),
    'no key': ('train', ['=3'], '"=3" is not an option: write key=value'),
    'key of two parts': ('train', ['sigma.x=3'], '"sigma.x=3" is not an option'),
    'unknown setting': ('train', ['xyzzy=3'], 'unknown option "xyzzy": main/config.py lists all there are'),
    'empty folder': ('train', ['output_dir='], 'output_dir is empty: name a folder'),
    'lr is a text': ('train', ['lr=abc'], '^lr=abc: must be a number$'),
    'lr without end': ('train', ['lr=.inf'], '^lr=inf: must be a finite number$'),
    'lr is no number': ('train', ['lr=.nan'], '^lr=nan: must be a finite number$'),
    'one side': ('train', ['input_img_shape=[128]'], r'^input_img_shape=\[128\]: must be a list of 2, each of them'),
    'list of decays': ('train', ['lr_dec_epoch=5'], '^lr_dec_epoch=5: must be a list, each of them a whole number'),
    'half an epoch': ('train', ['end_epoch=1.5'], '^end_epoch=1.5: must be a whole number or null$'),
    'no epoch': ('train', ['end_epoch=0'], '^end_epoch=0: must be above 0$'),
    'preset of no name': ('train', ['--cfg', ''], '^--cfg is empty: name a preset'),
    'folder as settings': ('train', ['--cfg', '/'], '^--cfg / cannot be read .Is a directory.: name a YAML file$'),
    'seed of 30 digits': ('train', [f'seed={10 ** 30}'], 'seed=10+: must (be a whole number|not be above)'),
    'wide network': ('train', ['resnet_width=100000'], 'resnet_width=100000: must not be above 512'),
    'interpolation': ('train', ['output_dir=${oc.env:HOME}'], 'cannot read the options: .*settings cannot use'),
    'growing text': ('train', ['lr_dec_epoch=[&a [x,x],*a]'], 'settings cannot use names for parts'),
    'batch of one': ('train', ['train_batch_size=1'], 'batch normalisation needs at least two samples'),
    'nested list': ('train', ['lr_dec_epoch=' + '[' * 3000], 'lists are nested too deeply'),
    'huge image': ('train', ['input_img_shape=[32768,32768]', 'output_hm_shape=[8,8192,8192]'], 'pixels up to 4096'),
    'no snapshot named': ('test', [], 'name a snapshot by --test_epoch N .in .*: none. or by --snapshot FILE'),
    'negative epoch': ('test', ['--test_epoch', '-1'], 'no snapshot_-1.pth.tar in .*epochs there: none'),
    'absent epoch': ('test', ['--test_epoch', '99'], 'no snapshot_99.pth.tar in'),
    'two snapshots': ('test', ['--test_epoch', '1', '--snapshot', 'x'], '--test_epoch and --snapshot both name'),
    'score': ('demo', [*SCORE, '2'], '--detector_threshold is a score from 0 to 1'),
    'no score': ('demo', [*SCORE, 'nan'], '--detector_threshold is a score from 0 to 1'),
    'port': ('demo', ['--serve', '--port', '70000'], '--port 70000: cannot listen there'),
    'settings doubled': ('train', ['lr=1', 'seed=3', 'lr=2'], '^lr=... is given twice: leave out one of them$'),
    'absent image': ('demo', ['--input', '/nowhere/a.jpg', '--bbox', 'full'], '--input /nowhere/a.jpg: no such file'),
    'page and image': ('demo', ['--serve', '--input', 'x'], '--input does not go with --serve'),
    'snapshot of no data set': ('export_weights', ['/nowhere/a', 'b'], 'no snapshot /nowhere/a'),
    'unknown data set': ('check_assets', ['3DPW'], 'unknown data set or body model "3DPW"'),
    'settings of a check doubled': ('check_assets', ['PW3D', 'lr=1', 'lr=1'], '^lr=... is given twice: leave out'),
    'settings of a check': ('check_assets', ['PW3D', 'lr=x'], 'lr=x: must be a number'),
    'mean of nothing': ('mean_pose', ['--samples', '0'], '--samples 0: must be 1 or more'),
    'log of no name': ('plot_log', [''], 'RUN: it is empty'),
    'absent log': ('plot_log', ['/nowhere'], '/nowhere: no metrics.jsonl there'),
    'smoothing': ('plot_log', ['--smooth', '0'], '--smooth 0: must be 1 or more'),
    'boxes of no test': ('rootnet_from_gt', ['Synthetic'], '"Synthetic" is no data set whose test uses root depths'),
    'sheet of no ending': ('synthetic_sheet', ['a.foo', '--rows', '1', '--columns', '1'], 'cannot write a.foo: '),
    'sheet without a name': ('synthetic_sheet', [''], 'out: it is empty'),
    'sheet of specks': ('synthetic_sheet', ['a.png', '--size', '1'], 'synthetic_img_size=1: must be at least 32'),
    'sheet of walls': ('synthetic_sheet', ['a.png', '--size', '5000'], 'synthetic_img_size=5000: must not be above'),
    'sheet of no heading': ('synthetic_sheet', ['a.png', '--max_heading', 'nan'], 'must be a finite number'),
    'sheet of negative heading': ('synthetic_sheet', ['a.png', '--max_heading', '-5'], 'must not be negative'),
    'sheet all hidden': ('synthetic_sheet', ['a.png', '--occlusion', '2'], 'occlusion=2.0: must not be above 1'),
    'sample beyond all': ('synthetic_sheet', ['a', '--samples', '9' * 26], 'no index of 2.31 or above'),
    'samples in a file': ('synthetic_sheet', [__file__, '--samples', '1'], 'cannot write .*: choose another place'),
    'numbers nowhere': ('benchmark', [*GPU, '--json', '/nowhere/a.json'], '--json /nowhere/a.json: name a file, in a'),
    'numbers in a folder': ('benchmark', [*GPU, '--json', '/'], '--json /: name a file, in a folder that is there'),
    'numbers without a name': ('benchmark', [*GPU, '--json', ''], '--json: it is empty'),
    'weights without a name': ('export_weights', ['a', ''], 'out: it is empty'),
    'image without a name': ('plot_log', ['--out', ''], '--out: it is empty'),
    'no fits': ('check_assets', ['Synthetic', '--fits', '--fit_num', '-1'], '--fit_num -1: must be 1 or more'),
    'fits into a file': ('check_assets', ['Synthetic', '--fits', '--fit_num', '1', f'output_dir={__file__}'],
                         'cannot write .*: choose another place'),
    'half an option': ('train', ['--snap', 'a'], 'unrecognized arguments: --snap'),
    'no rows': ('synthetic_sheet', ['a.png', '--rows', '0'], '--rows, --columns and --size are at least 1'),
    'negative sample': ('synthetic_sheet', ['a', '--samples', '3', '-1'], '--samples not negative'),
    'absent FreiHAND': ('FreiHAND converter', ['/nowhere'], '/nowhere/training_K.json is missing|MANO .*is missing'),
    'absent 3DPW': ('3DPW converter', ['/nowhere'], 'no sequence files in /nowhere/sequenceFiles/train'),
    'absent SURREAL': ('SURREAL converter', ['/nowhere'], 'no .*_info.mat below /nowhere'),
    'every 0th frame': ('SURREAL converter', ['/nowhere', '--every', '0'], '--every 0: must be 1 or more'),
    'network of no width': ('benchmark', [*GPU, 'resnet_width=0'], 'resnet_width=0: must be above 0'),
    'part of nothing': ('benchmark', [*GPU, '--cfg', 'nano', '--parts', 'x'], '--parts x: some of inference'),
}


@pytest.mark.parametrize('case', USAGE)
def test_usage(case, capsys):
    program, words, told = USAGE[case]
    says(refusal(capsys, PROGRAMS[program].main, *words), told)


@pytest.mark.parametrize('case', OUT_OF_RANGE)
def test_out_of_range(case, capsys, tmp_path):
    program, words, told = OUT_OF_RANGE[case]
    if program in ('train', 'test', 'demo'):
        gpu = () if any('--gpu' in word for word in words) else GPU
        folder = () if any('output_dir' in word for word in words) else (f'output_dir={tmp_path}',)
        words = [*gpu, *folder, *words]
    says(refusal(capsys, PROGRAMS[program].main, *words), told)


CAMERA = {'focal length': (['--focal', 'nan'], '--focal must be a positive number of pixels'),
          'principal point': (['--princpt', 'inf', '0'], '--princpt must be two finite numbers'),
          'box of letters': (['--bbox', *'abcd'], 'a box is four numbers in pixels, x y w h, not a b c d'),
          'results in a file': (['--output', 'photo.jpg'], 'photo.jpg.*: cannot write there .(Not a dir|File ex)')}


@pytest.fixture(scope='module')
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp('scene')
    return write_snapshot(folder / 'snapshot_0.pth.tar'), write_image(folder / 'photo.jpg')


@pytest.mark.parametrize('case', CAMERA)
def test_numbers_of_the_demo(case, scene, tmp_path, capsys):
    snapshot, image = scene
    words, told = CAMERA[case]
    words = [str(image) if word == 'photo.jpg' else word for word in words]
    boxes = () if '--bbox' in words else ('--bbox', 'full')
    words = [*GPU, f'output_dir={tmp_path}', '--snapshot', snapshot, '--input', image, *boxes, *words]
    says(refusal(capsys, demo.main, *words), told)


@pytest.mark.parametrize('program', PROGRAMS)
def test_help_ends_with_0(program, capsys):
    assert run(PROGRAMS[program].main, '--help') == 0
    assert 'usage: ' in capsys.readouterr().out
