"""Random input for every parser: it is taken, or refused in one line; no other error, no hang, no heap of memory.

A few inputs each, the same in every run. To fuzz a parser for five minutes, with new inputs each time:

    FUZZ_SECONDS=300 python -m pytest -s --timeout 900 tests/faults/test_fuzz.py -k coco
"""
import io
import json
import pickle
import shutil
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.boxes import check_box
from common.devices.gpus import parse_gpu_ids
from common.errors import UserError
from common.files import images
from common.files.arrays import read_arrays
from common.human_model import get_human_model, mano
from common.human_model.model_spec import ARRAY_NAMES, load_model_file
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state
from main.config import FIELDS, Config
from main.model import get_model
from tests.faults.fuzz import EDITS, SCALARS, TEXT, VALUES, edited, fuzz, mutated, refused
from tests.py2_pickles import as_official, chumpy_array, chumpy_select, dump, sparse_columns
from tests.tiny import tiny_config

pytestmark = pytest.mark.filterwarnings('ignore::RuntimeWarning')  # of NumPy, about numbers of a forged file


def test_gpu():
    def check(text):
        if not refused(parse_gpu_ids, text):
            ids = parse_gpu_ids(text)
            assert len(set(ids)) == len(ids) and all(0 <= i < 10 ** 4 for i in ids)
    fuzz(check, st.text('0123456789,- cpu٣²', max_size=12) | TEXT)


def test_overrides():
    names = sorted(FIELDS)
    values = st.text('0123456789.e-+[],{}&*!~#\'": ainftrue$', max_size=12) | TEXT | SCALARS.map(str)
    words = st.tuples(st.sampled_from(names) | TEXT, values).map('='.join) | TEXT

    def check(words):
        config = Config()
        before = config.resolved()
        if refused(config.override, words):
            assert config.resolved() == before
        else:
            assert set(config.resolved()) == set(before)
            refused(config.check)
    fuzz(check, st.lists(words, min_size=1, max_size=3))


def test_settings_file(tmp_path):
    path = tmp_path / 'a.yaml'
    good = [b'lr: 1e-3\ntrainset_3d: [MuCo, Human36M]\ninput_img_shape: [128, 128]\nend_epoch: null\n',
            b'exclude:\n- a.jpg\n- b.jpg\nsynthetic_cache: true # here\ntestset: "PW3D"\n']

    def check(data):
        path.write_bytes(data)
        refused(Config().load, str(path))
    fuzz(check, mutated(good) | st.binary(max_size=40) | st.text('ab:[]{}-&*\n "\'', max_size=30).map(str.encode))


def test_box():
    numbers = st.floats() | st.integers(-10, 300) | st.integers(-10, 300).map(str) | SCALARS

    def check(box, form):
        if not refused(check_box, box, 200, 100, form):
            found = check_box(box, 200, 100, form)
            assert found.shape == (4,) and np.isfinite(found).all() and (found[2:] > 0).all()
    fuzz(check, st.lists(numbers, min_size=4, max_size=4) | VALUES, st.sampled_from((None, 'xywh', 'xyxy')))


def test_box_file(tmp_path):
    path = tmp_path / 'boxes.json'
    good = [{'a.jpg': [[1, 2, 30, 40], [5, 6, 70, 80]]}, [[[1, 2, 30, 40]], [], None],
            [{'image': 'a.jpg', 'bbox': [1, 2, 30, 40]}, {'frame': 3, 'bbox': 'full'}]]

    def check(data):
        path.write_bytes(data)
        if not refused(read_box_file, path):
            table = read_box_file(path)
            refused(table.check_images, [Path('a.jpg')])
            refused(table.check_frames, Path('a.mp4'), 5)
            for box in table.of_image(Path('a.jpg'), 0) + table.of_frame(Path('a.mp4'), 3):
                refused(check_box, box, 200, 100)
    contents = st.builds(lambda content, edits: edited(json.loads(json.dumps(content)), edits),
                         st.sampled_from(good), EDITS)
    raw = [json.dumps(content).encode() for content in good]
    fuzz(check, mutated(raw) | contents.map(lambda value: json.dumps(value).encode()))


def tiny_models():
    """Small pickles and archives that use all that model files use."""
    values = np.arange(12.).reshape(4, 3)
    arrays = {'v_template': values, 'f': np.eye(3, dtype='u4')}
    select = chumpy_select(chumpy_array(values), np.arange(6), (2, 3))
    stored = dict(arrays, J_regressor=sparse_columns(values), shapedirs=select, weights=chumpy_array(values))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return [dump(stored, 0), dump(stored, 2), pickle.dumps(arrays, 4), pickle.dumps(arrays, 5), file.getvalue()]


def test_model_file(tmp_path):
    path = tmp_path / 'model.pkl'
    whole = dump(as_official({'v_template': np.zeros((778, 3)), 'shapedirs': np.zeros((778, 3, 10)),
                              'J_regressor': np.zeros((16, 778))}), 2)

    def check(data):
        path.write_bytes(data)
        if not refused(read_arrays, path, ARRAY_NAMES):
            assert all(isinstance(array, np.ndarray) for array in read_arrays(path, ARRAY_NAMES).values())
        assert refused(load_model_file, mano.SPEC, path)
    fuzz(check, mutated([*tiny_models(), whole]))


def test_coco_records(tiny_datasets, stand_in_bodies, tmp_path, open_set):
    """Through the real loader: the people, their fits, and the boxes and depths of the test."""
    for name in ('MSCOCO', 'Human36M'):  # the latter has a joint regressor
        shutil.copytree(tiny_datasets / name, tmp_path / name)
    files = {'train': ('annotations/person_keypoints_train2017.json', 'annotations/coco_smplifyx_train.json'),
             'test': ('annotations/person_keypoints_val2017.json', 'rootnet_output/bbox_root_coco_output.json')}
    contents = {file: (tmp_path / 'MSCOCO' / file).read_text() for split in files.values() for file in split}

    def check(split, which, edits):
        file = files[split][which]
        path = tmp_path / 'MSCOCO' / file
        path.write_text(json.dumps(edited(json.loads(contents[file]), edits)))
        try:
            refused(lambda: list(all_items(open_set('MSCOCO', split, data_dir=tmp_path))))
        finally:
            path.write_text(contents[file])
    fuzz(check, st.sampled_from(('train', 'test')), st.sampled_from((0, 1)), EDITS)


def all_items(data):
    for index in range(len(data)):
        inputs, targets, meta = data[index]
        assert all(np.isfinite(value).all() for part in (inputs, targets, meta) for value in part.values())
        yield index


@pytest.fixture(scope='module')
def snapshot():
    """A snapshot of a tiny network, as bytes, with all that a resume needs but the optimiser; and its network."""
    config, human_model = tiny_config('/nonexistent'), get_human_model('open_hand')
    config.override(['body_model=open_hand'])
    torch.manual_seed(0)
    model = get_model(config, human_model, 'test')
    state = {'step': 1, 'step_size': 2, 'samples': 9, 'scaler': {}, 'random': random_state.capture()}
    content = {'epoch': 3, 'network': checkpoint.pack_network(model), 'optimizer': {}, 'state': state,
               'meta': snapshot_meta.record(config, human_model, 0)}
    return content, model


def test_snapshot(snapshot, tmp_path):
    """Bytes of the whole file, and of the pickle in a small one, with a checksum that is right again."""
    content, model = snapshot
    path = tmp_path / 'a'
    few = dict(list(content['network'].items())[:20])
    torch.save({**content, 'network': few}, path)
    small = path.read_bytes()
    torch.save({**content, 'network': {'module.a': torch.zeros(2)}}, path, _use_new_zipfile_serialization=False)
    legacy = path.read_bytes()

    def check(data, inner):
        path.write_bytes(data if inner is None else with_pickle(small, inner))
        refused(use, path, model)
    inner = zipfile.ZipFile(io.BytesIO(small)).read('a/data.pkl')
    fuzz(check, mutated([small, legacy]), st.none() | mutated([inner]))


def with_pickle(file, content):
    """A file of torch.save around another pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as source, zipfile.ZipFile(out, 'w') as target:
        for name in source.namelist():
            target.writestr(name, content if name.endswith('data.pkl') else source.read(name))
    return out.getvalue()


def use(path, model):
    """What test and demo do with a snapshot."""
    content = checkpoint.read(path)
    meta = snapshot_meta.describe(content, 'x')
    config = Config()
    snapshot_meta.adopt(meta, config, path)
    config.check()
    checkpoint.load_network(model, content, path)


def test_values_of_a_snapshot(snapshot, tmp_path):
    content, model = snapshot
    path = tmp_path / 'a'

    def check(meta, epoch, state, part):
        change = {'meta': meta, 'epoch': epoch, 'state': state}[part]
        torch.save({**content, part: change}, path)
        refused(use, path, model)
    metas = st.builds(lambda edits: edited(json.loads(json.dumps(content['meta'])), edits), EDITS)
    fuzz(check, metas, VALUES, VALUES, st.sampled_from(('meta', 'epoch', 'state')))


def test_image(tmp_path):

    path, image = tmp_path / 'a', np.random.default_rng(0).integers(0, 255, (12, 9, 3), np.uint8)
    good = [cv2.imencode(ending, image)[1].tobytes() for ending in ('.jpg', '.png', '.bmp', '.webp', '.tiff', '.ppm')]

    def read(path):
        try:
            assert images.read_image(path).dtype == np.uint8
        except (OSError, ValueError) as error:  # the data sets replace such an image
            raise UserError(str(error)) from error

    def check(data):
        path.write_bytes(data)
        refused(read, path)
    fuzz(check, mutated(good))
