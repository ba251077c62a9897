"""What is looked at many at a time gives what looking at each gives: checks, meshes, JSON."""
import copy
import json

import msgspec
import numpy as np
import pytest

from common.files import json_text
from data.checks import load_check
from data.checks.bulk import unsuspicious
from data.placed_fit import place_fit, place_fits
from data.records import CocoFile
from tests.data_tools import bits

SETS = [('Human36M', 'train'), ('Human36M', 'test'), ('MuCo', 'train'), ('MSCOCO', 'train'), ('PW3D', 'test'),
        ('FreiHAND', 'train')]
VALUES = (0, -1, np.nan, np.inf, -np.inf, 1e3, -1e4, 1e5, 1e7, 1e30, 20, 13, .001)


def parts_of(sample):
    """The arrays of a sample, each with a way to change it."""
    owners = [sample, sample.camera, sample.fit_camera, sample.fit]
    return [array for owner in owners if owner is not None for array in vars(owner).values()
            if isinstance(array, np.ndarray)]


def spoil(sample, rng):
    """Change one number, a whole array, or leave one out."""
    kind = rng.integers(8)
    if kind == 0:
        sample.root_depth = float(rng.choice(VALUES))
    elif kind == 1:
        setattr(sample, str(rng.choice(['camera', 'joint_valid', 'joint_cam', 'fit', 'fit_camera'])), None)
    elif kind == 2 and sample.joint_img is not None:
        sample.joint_valid = (rng.random((len(sample.joint_img), 1)) < rng.random()).astype(np.float32)
    else:
        arrays = parts_of(sample)
        array = arrays[rng.integers(len(arrays))]
        if kind == 3:
            array *= rng.choice([1e-3, .1, 10, 1e3, -1])
        else:
            array.flat[rng.integers(array.size)] = rng.choice(VALUES)


@pytest.mark.parametrize(('name', 'split'), SETS)
def test_what_passes_in_bulk_would_pass_alone(open_set, name, split):
    data = open_set(name, split)
    rng = np.random.default_rng(0)
    samples = [data.samples[int(number)] for number in rng.integers(len(data), size=300)]
    for sample in samples[60:]:
        spoil(sample, rng)
    size = data.cfg.bbox_3d_size
    good = unsuspicious(samples, data.joint_set, size, needs_camera=not data.training)
    assert good[:60].mean() > .6 and 0 < good[60:].mean() < .8
    for is_good, sample in zip(good, samples, strict=True):
        if not is_good:
            continue
        check = load_check.LoadCheck(name, 'a file', data.rules if data.training else None, None, data.joint_set, size,
                                     1., data.mesh_target_at_test and not data.training)
        check.seen = load_check.CHECKED - 1  # the one that is looked at counts
        before = copy.deepcopy(sample)
        assert check._take(sample, None) and not check.counts and bits(sample) == bits(before)


def test_a_large_set_gets_the_same_report_as_a_small_one(open_set, monkeypatch):
    """With the bulk check from the third sample on, and without it."""
    monkeypatch.setattr(load_check, 'CHUNK', 2)
    for name, split in SETS:
        closely = open_set(name, split)
        with monkeypatch.context() as patch:
            patch.setattr(load_check, 'CHECKED', 2)
            patch.setattr('data.checks.bulk.FEW', 1)
            quickly = open_set(name, split)
        assert quickly.check.counts == {key: count for key, count in closely.check.counts.items() if 'mesh' not in key}
        assert len(quickly) == len(closely) and quickly.check.total == closely.check.total


@pytest.mark.parametrize(('name', 'split'), [('Human36M', 'train'), ('PW3D', 'test'), ('FreiHAND', 'train')])
def test_meshes_of_a_batch(open_set, name, split):
    data = open_set(name, split)
    samples = [sample for sample in data.samples if sample.fit is not None] * 3
    for placed, sample in zip(place_fits(samples, data.body), samples, strict=True):
        alone = place_fit(sample, data.body)
        np.testing.assert_allclose(placed.vertices, alone.vertices, atol=2e-6)
        np.testing.assert_allclose(placed.joints, alone.joints, atol=2e-6)
        assert bits([placed.pose, placed.camera]) == bits([alone.pose, alone.camera])


TEXTS = ['{"a": [1, 2.5, "x\\u00e9", null, true], "b": {"c": []}}', '[NaN, -Infinity, 1e999, 1e-999]', '"\\ud800"', '7',
         '[12345678901234567890123, -0.0, 0.1, 1.7976931348623157e308]', '{"a": 1, "a": 2}', '"\u00e9"', ' [ ] ', '""',
         '{"x": {"y": NaN}, "z": 5}', f'[{"1" * 400}]']
BROKEN = ['', '{', '[1,]', '{"a" 1}', 'nan', '01', '[1] 2', "['a']", '"\n"', '[' * 100000, '1' * 5000, '"\udcff"',
          '\ufeff1']


@pytest.mark.parametrize('text', TEXTS)
def test_json_says_what_the_standard_library_says(text):
    want = json.loads(text)
    data = text.encode()
    assert repr(json_text.decode(data)) == repr(want)
    if isinstance(want, dict):
        found = {name: json_text.decode(value) if isinstance(value, msgspec.Raw) else value
                 for name, value in json_text.fields(data).items()}
        assert repr(found) == repr(want)
    if isinstance(want, list):
        found = [json_text.decode(value) if isinstance(value, msgspec.Raw) else value
                 for value in json_text.elements(data)]
        assert repr(found) == repr(want)


@pytest.mark.parametrize('text', BROKEN)
def test_what_is_no_json_is_refused(text):
    for decode in (json_text.decode, json_text.fields, json_text.elements):
        with pytest.raises((ValueError, RecursionError)):
            decode(text.encode('utf-8', 'surrogateescape'))


def test_records_stay_text_until_they_are_asked_for(tmp_path):
    path = tmp_path / 'people.json'
    content = {'images': [{'id': 1, 'file_name': 'a.jpg', 'width': 4, 'height': 3}],
               'annotations': [{'id': 5, 'image_id': 1, 'unused': [[1] * 100] * 100}, {'id': 6, 'image_id': 1}]}
    path.write_text(json.dumps(content))
    people = CocoFile(path, 'people')
    assert all(isinstance(text, msgspec.Raw) for text in people.annotations)
    pairs = list(people.pairs())
    assert [(image.image_file(), person['id']) for image, person in pairs] == [('a.jpg', 5), ('a.jpg', 6)]
    assert isinstance(pairs[0][1].content['unused'], msgspec.Raw) and str(pairs[1][1]) == f'{path}: annotation 6'
