"""Configuration: typed overrides, presets, derived values, mistakes; the text of --gpu."""
import os

import pytest

from common.devices import gpus
from common.devices.gpus import parse_gpu_ids, select_gpus
from common.errors import UserError
from main.config import ROOT, Config

HAND = ['trainset_3d=[FreiHAND]', 'trainset_2d=[]', 'testset=FreiHAND']
BODY = ['trainset_3d=[Human36M,MuCo]', 'trainset_2d=[MSCOCO]', 'testset=PW3D']


def test_published_defaults():
    config = Config()
    assert (config.trainset_3d, config.trainset_2d, config.testset) == (['Human36M', 'MuCo'], ['MSCOCO'], 'PW3D')
    assert (config.resnet_type, config.input_img_shape, config.output_hm_shape) == (50, (256, 256), (64, 64, 64))
    assert (config.sigma, config.lr, config.lr_dec_factor) == (2.5, 1e-4, 10)
    assert (config.normal_loss_weight, config.edge_loss_weight, config.heatmap_loss_weight) == (0.1, 1, 0)
    assert config.joint_xy_weight == 1
    assert (config.train_batch_size, config.test_batch_size, config.use_gt_info) == (16, 16, False)
    assert (config.human_model, config.bbox_3d_size) == ('smpl', 2.0)


@pytest.mark.parametrize(('sets', 'stage', 'decay', 'end'), [
    (BODY, 'lixel', [10, 12], 13), (BODY, 'param', [15, 17], 18),
    (HAND, 'lixel', [17, 21], 25), (HAND, 'param', [22, 26], 30)])
def test_schedule_of_both_stages_and_kinds(sets, stage, decay, end):
    config = Config()
    config.override(sets)
    for _ in range(2):  # saying it twice is the same as once
        config.set_args('cpu', stage)
        config.override([f'stage={stage}'])
        assert (config.lr_dec_epoch, config.end_epoch) == (decay, end)


def test_derived_values_follow_every_override():
    config = Config()
    config.override(HAND)
    assert (config.human_model, config.bbox_3d_size, config.is_hand) == ('mano', 0.3, True)
    config.override(BODY)
    assert (config.human_model, config.bbox_3d_size, config.is_hand) == ('smpl', 2.0, False)
    config.override(['testset=Synthetic'])
    assert config.human_model == 'open_body'
    config.override(['body_model=open_hand'])
    assert (config.human_model, config.bbox_3d_size, config.end_epoch) == ('open_hand', 0.3, 25)


def test_overrides_are_typed_and_the_last_one_wins():
    config = Config()
    config.override(['lr=1e-3', 'amp=bf16', 'trainset_2d=[]', 'input_img_shape=[128,96]', 'pretrained_backbone=false'])
    assert (config.lr, config.amp, config.trainset_2d, config.input_img_shape) == (1e-3, 'bf16', [], (128, 96))
    assert config.pretrained_backbone is False
    config.override(['lr=1', 'end_epoch=1', 'lr_dec_epoch=[1,2]'])
    assert (config.lr, config.end_epoch, config.lr_dec_epoch) == (1.0, 1, [1, 2]) and isinstance(config.lr, float)
    config.override(['lr=2', 'end_epoch=null', 'lr_dec_epoch=null'])
    assert (config.lr, config.end_epoch, config.lr_dec_epoch) == (2.0, 13, [10, 12])


@pytest.mark.parametrize(('item', 'says'), [
    ('train_batchsize=8', 'unknown option "train_batchsize": did you mean train_batch_size'),
    ('train_batch_size=8.5', 'train_batch_size=8.5'), ('lr=fast', 'lr=fast'),
    ('train_batch_size=0', 'must be above 0'), ('synthetic_train_size=0', 'must be above 0'),
    ('clip_grad=-1', 'must not be negative'), ('num_thread=-1', 'must not be negative'),
    ('keep_snapshots=-1', 'must not be negative'), ('aug_scale=1', 'must be below 1'),
    ('trainset_3d=Human36M', 'trainset_3d=Human36M'),
    ('trainset_3d=[Human36]', 'did you mean Human36M'), ('stage=mesh', 'one of lixel, param'),
    ('resnet_type=51', 'one of 18, 34, 50, 101, 152'), ('input_img_shape=[256]', 'input_img_shape'),
    ('human_model=smpl', 'unknown option "human_model": did you mean human_model_dir'), ('lr', 'write key=value'),
    ('lr=[', 'cannot read the options'), ('sigma.x=1', 'sigma')])
def test_mistakes_are_one_line_and_change_nothing(item, says):
    config = Config()
    before = config.resolved()
    with pytest.raises(UserError) as error:
        config.override(['seed=5', item])
    assert says in str(error.value) and '\n' not in str(error.value)
    assert config.resolved() == before


def test_presets_and_files(tmp_path):
    config = Config()
    config.override(['seed=5'])
    config.load('hand')
    assert (config.human_model, config.seed) == ('mano', 0)  # a preset starts from the defaults
    config.check()
    config.load('nano')
    assert config.human_model == 'open_body' and config.input_img_shape == (128, 128)
    config.load('nano_hand')
    assert config.human_model == 'open_hand' and config.bbox_3d_size == 0.3
    own = tmp_path / 'own.yaml'
    own.write_text('lr: 0.5\nend_epoch: 3\n')
    config.load(str(own))
    assert (config.lr, config.end_epoch, config.testset) == (0.5, 3, 'PW3D')
    own.write_text('learn: 0.5\n')
    with pytest.raises(UserError, match='own.yaml: unknown option "learn"'):
        config.load(str(own))
    with pytest.raises(UserError, match='body, hand, nano'):
        config.load('big')


@pytest.mark.parametrize(('text', 'place'), [
    ('lr: 1\nsigma: [1\n', ' near line 3'), ('lr: 1\n sigma: 2\n', ' near line 2'), ('lr: "1', ''), ('lr: 1: 2', '')])
def test_what_is_not_yaml_is_told_in_plain_words(tmp_path, text, place):
    """Not in those of the parser, which are about its own state."""
    path = tmp_path / 'own.yaml'
    path.write_text(text)
    says = rf'own.yaml is not a YAML file of settings \(not written as YAML{place}: see to its brackets, quotes, colons'
    with pytest.raises(UserError, match=says) as error:
        Config().load(str(path))
    for words in (error.value, refused_words('input_img_shape=[128,')):
        assert 'unicode' not in str(words) and 'parsing' not in str(words) and 'line 1' not in str(words)


def refused_words(*words):
    with pytest.raises(UserError, match='not written as YAML: see to its brackets') as error:
        Config().override(list(words))
    return error.value


TEXTS = ('2024_05_01', 'runs/exp #3', '1e3', 'no', 'null', '0x10', '000123', '12:30:45', 'x: y', "it's", '"a"', '[a]',
         '2024-05-01', '.5', 'a, b', ' - a', '1.0')


@pytest.mark.parametrize('text', TEXTS)
def test_texts_are_taken_as_they_stand(text, tmp_path):
    """In a word, and in quotes in a YAML file; a truth value of a setting that may be either stays one."""
    config = Config()
    quoted = f'"{text}"' if ',' in text else text
    config.override([f'output_dir={tmp_path}/{text}', f'exclude=[{quoted}]'])
    assert config.output_dir == f'{tmp_path}/{text}'
    assert config.exclude == [text.strip().strip('"')]
    config.override([f'pretrained_backbone={text}'])
    assert config.pretrained_backbone == (False if text == 'no' else str(ROOT / text))


@pytest.mark.parametrize('text', ['2024_05_01', '1e3', '000123', '0x10', '12:30:45', '1.0', 'no', '2024-05-01'])
def test_texts_of_a_file_are_taken_as_they_stand(text, tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text(f'output_dir: {text}  # a remark\nexclude: [{text}, "b"]\nlr: 1e-3\nsynthetic_cache: yes\n')
    config = Config()
    config.load(str(own))
    assert (config.output_dir, config.exclude) == (str(ROOT / text), [text, 'b'])
    assert (config.lr, config.synthetic_cache) == (1e-3, True)


def test_a_file_of_settings_with_a_byte_order_mark(tmp_path):
    (tmp_path / 'own.yaml').write_bytes(b'\xef\xbb\xbflr: 0.5\n')
    config = Config()
    config.load(str(tmp_path / 'own.yaml'))
    assert config.lr == 0.5


def test_elements_of_text_lists():
    config = Config()
    config.override(['exclude=[000123, a b #3 ,"x,y",\'z\',1e3]', 'trainset_2d=[]'])
    assert config.exclude == ['000123', 'a b #3', 'x,y', 'z', '1e3'] and config.trainset_2d == []
    with pytest.raises(UserError, match='exclude=a: must be a list'):
        config.override(['exclude=a'])


@pytest.mark.parametrize('key', ['output_dir', 'data_dir', 'human_model_dir', 'pretrained_backbone', 'synthetic_cache'])
def test_home_is_found_and_variables_are_refused(key, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    own = tmp_path / 'own.yaml'
    own.write_text(f'{key}: ~/runs\n')
    config = Config()
    config.override([f'{key}=~/runs/a'])
    assert getattr(config, key) == f'{tmp_path}/runs/a'
    config.load('~/own.yaml')
    assert getattr(config, key) == f'{tmp_path}/runs'
    for path in ('$HOME/runs', 'a/$X', '${HOME}/a', '~nobody_of_this_name/a'):
        with pytest.raises(UserError, match=key):
            config.override([f'{key}={path}'])
        own.write_text(f'{key}: {path}\n')
        with pytest.raises(UserError):
            config.load(str(own))
    config.override([f'{key}=costs 5 $'])
    assert getattr(config, key) == str(ROOT / 'costs 5 $')


def test_folders_count_from_the_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config()
    assert config.data_dir == str(ROOT / 'data')
    config.override(['output_dir=runs/a', f'data_dir={tmp_path}'])
    assert (config.output_dir, config.data_dir) == (str(ROOT / 'runs' / 'a'), str(tmp_path))
    assert config.resolved()['output_dir'] == 'runs/a'


def test_hands_and_bodies_do_not_mix():
    config = Config()
    config.override(['testset=FreiHAND'])
    with pytest.raises(UserError, match='--cfg hand'):
        config.check()


@pytest.mark.parametrize(('shapes', 'says'), [
    (['output_hm_shape=[64,32,32]'], 'set output_hm_shape=[64,64,64]'),
    (['input_img_shape=[128,96]', 'output_hm_shape=[16,24,32]'], 'set output_hm_shape=[16,32,24]'),
    (['input_img_shape=[100,100]', 'output_hm_shape=[25,25,25]'], 'multiples of 32'),
    (['output_hm_shape=[0,64,64]'], 'at least one lixel')])
def test_heat_maps_must_fit_the_input(shapes, says):
    config = Config()
    config.override(shapes)
    with pytest.raises(UserError) as error:
        config.check()
    assert says in str(error.value)
    config.override(['input_img_shape=[128,96]', 'output_hm_shape=[16,32,24]'])
    config.check()


@pytest.mark.parametrize(('text', 'ids'), [
    ('0', [0]), ('3', [3]), ('0,2', [0, 2]), ('0-3', [0, 1, 2, 3]), ('0,2-3', [0, 2, 3]), ('cpu', [])])
def test_gpu_ids(text, ids):
    assert parse_gpu_ids(text) == ids


@pytest.mark.parametrize('text', ['3-1', 'a', '', '0,0', '0,', '-1', '0-', '0-1,1', '1.5'])
def test_bad_gpu_ids(text):
    with pytest.raises(UserError, match='write ids such as'):
        parse_gpu_ids(text)


@pytest.fixture
def machine(monkeypatch):
    """A pretended machine with as many GPUs as set; CUDA shows those that CUDA_VISIBLE_DEVICES names."""
    state = {'gpus': 4}
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')

    def visible():
        names = [n for n in os.environ['CUDA_VISIBLE_DEVICES'].split(',') if n]
        return len([n for n in names if int(n) < state['gpus']])

    monkeypatch.setattr(gpus.torch.cuda, 'device_count', visible)
    monkeypatch.setattr(gpus, '_count_gpus', lambda: state['gpus'])
    monkeypatch.setattr(gpus, 'TRIAL', 'pass')
    monkeypatch.setattr(gpus, '_VISIBLE_AT_START', None)
    return state


def test_only_the_chosen_gpus_are_visible(machine, monkeypatch):
    for text, shown in (('3', '3'), ('0-3', '0,1,2,3'), ('2,0', '2,0'), (None, '0'), ('cpu', '')):
        select_gpus(text)
        assert os.environ['CUDA_VISIBLE_DEVICES'] == shown
    with pytest.raises(UserError, match='this machine shows 4 GPUs, ids 0, 1, 2, 3'):
        select_gpus('0-7')
    monkeypatch.setattr(gpus, '_VISIBLE_AT_START', '2,3')  # a batch system gave us these two
    select_gpus('1')
    assert os.environ['CUDA_VISIBLE_DEVICES'] == '3'
    monkeypatch.setattr(gpus, '_VISIBLE_AT_START', '')  # an empty list hides all GPUs
    monkeypatch.setattr(gpus, '_count_gpus', lambda: 0)
    select_gpus(None)
    assert os.environ['CUDA_VISIBLE_DEVICES'] == ''


def test_each_process_of_torchrun_takes_one_gpu(machine, monkeypatch):
    monkeypatch.setenv('LOCAL_RANK', '1')
    monkeypatch.setenv('LOCAL_WORLD_SIZE', '2')
    for text, shown in (('2-3', '3'), (None, '1')):
        select_gpus(text)
        assert os.environ['CUDA_VISIBLE_DEVICES'] == shown
    monkeypatch.setenv('LOCAL_RANK', '2')
    with pytest.raises(UserError, match='--nproc_per_node'):
        select_gpus('2-3')


def test_a_process_of_torchrun_sees_its_own_gpu_alone(machine, monkeypatch):
    """Without NVML the first count starts CUDA, and what is visible then stays so."""
    monkeypatch.setenv('LOCAL_RANK', '1')
    monkeypatch.setenv('LOCAL_WORLD_SIZE', '2')
    seen = []
    monkeypatch.setattr(gpus.torch.cuda, 'device_count', lambda: seen.append(os.environ['CUDA_VISIBLE_DEVICES']) or 1)
    select_gpus('2-3')
    assert set(seen) == {'3'}


def test_more_gpus_than_processes_are_noted_once(machine, monkeypatch, caplog):
    monkeypatch.setenv('LOCAL_WORLD_SIZE', '2')
    for rank in '01':
        monkeypatch.setenv('LOCAL_RANK', rank)
        select_gpus('0-3')
    assert caplog.messages == ['--gpu 0-3 names 4 GPUs, but torchrun started 2 processes here: the others stay idle']


def test_a_gpu_that_pytorch_cannot_use_is_named_before_any_data(machine, monkeypatch):
    monkeypatch.setattr(gpus, 'TRIAL', 'raise RuntimeError("CUDA error: no kernel image is available")')
    with pytest.raises(UserError, match=r'--gpu 0-1: PyTorch .* cannot use this GPU \(.*no kernel image.*pytorch.org'):
        select_gpus('0-1')


def test_without_a_gpu_there_is_one_warning(machine, caplog):
    machine['gpus'] = 0
    select_gpus('0-3')
    assert os.environ['CUDA_VISIBLE_DEVICES'] == '' and len(caplog.messages) == 1
    select_gpus(None)
    assert len(caplog.messages) == 1
