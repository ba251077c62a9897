"""Where the files come from: the folders of the original, RootNet's boxes of another source, exact COCO fits."""
import json
import logging
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from data.rootnet import SourceCheck, overlap
from tests.golden.check_coco_fit import LIMIT, fits_used, open_recorded

GOLDEN = Path(__file__).resolve().parents[1] / 'golden'
ROOTNET = 'rootnet_output/bbox_root_pw3d_output.json'
SPLITS = [('Human36M', 'train'), ('Human36M', 'test'), ('MuCo', 'train'), ('MSCOCO', 'train'), ('MSCOCO', 'test'),
          ('PW3D', 'train'), ('PW3D', 'validation'), ('PW3D', 'test'), ('FreiHAND', 'train'), ('FreiHAND', 'test')]


@pytest.fixture
def original_tree(tiny_datasets, stand_in_bodies, tmp_path):
    """The folders of the original program, whose data folder holds links to where the data sets are kept."""
    data = tmp_path / 'data'
    for name in ('Human36M', 'MuCo', 'MSCOCO', 'PW3D', 'FreiHAND'):
        (data / name).mkdir(parents=True)
        for path in (tiny_datasets / name).iterdir():
            (data / name / path.name).symlink_to(path)
    body_folder = tmp_path / 'common/utils/smplpytorch/smplpytorch/native/models'
    hand_folder = tmp_path / 'common/utils/manopth/mano/models'
    for folder, pattern in ((body_folder, 'basicModel_*'), (hand_folder, 'MANO_*')):
        folder.mkdir(parents=True)
        for path in stand_in_bodies.glob(pattern):
            (folder / path.name).symlink_to(path)
    return data, body_folder, hand_folder


@pytest.mark.parametrize(('name', 'split'), SPLITS)
def test_the_folders_of_the_original_load_unchanged(name, split, original_tree, open_set):
    data_dir, body_folder, hand_folder = original_tree
    models = hand_folder if name == 'FreiHAND' else body_folder
    data = open_set(name, split, f'human_model_dir={models}', data_dir=data_dir)
    wanted = open_set(name, split)
    assert len(data) == len(wanted) and not data.check.counts['image missing']
    got, expected = (each.get_item(0, None) for each in (data, wanted))
    for part, expected_part in zip(got, expected, strict=True):
        for key, value in expected_part.items():
            np.testing.assert_array_equal(part[key], value)


def spread_out(content: dict) -> None:
    """Put people, whose ids count up, beside each other."""
    for person in content['annotations']:
        person['bbox'] = [10 + 30 * (person['id'] % 5), 40, 25, 60]


@pytest.mark.parametrize('shift', [0, 3])
def test_boxes_of_another_source_stop_the_test(shift, open_set, changed):
    data_dir = changed('PW3D', 'data/3DPW_test.json', spread_out)
    rootnet = data_dir / 'PW3D' / ROOTNET
    entries = json.loads(rootnet.read_text())
    for entry in entries:
        entry['bbox'] = [7 + 30 * ((entry['ann_id'] + shift) % 5), 30, 31, 80]  # around the box of that person
    rootnet.write_text(json.dumps(entries))
    if shift == 0:
        assert len(open_set('PW3D', 'test', data_dir=data_dir)) == 5
        return
    with pytest.raises(UserError, match='PW3D: RootNet file and annotations are not from the same source: the boxes of '
                                        '.*bbox_root_pw3d_output.json overlap the annotated ones by 0.00 .* first 5'):
        open_set('PW3D', 'test', data_dir=data_dir)


def test_one_box_elsewhere_stops_nothing(open_set, changed):
    def move(content: list) -> None:
        content[0]['bbox'] = [0, 0, 10, 10]
    assert len(open_set('PW3D', 'test', data_dir=changed('PW3D', ROOTNET, move))) == 5


def test_the_overlap_of_boxes():
    assert overlap([0, 0, 10, 10], [0, 0, 10, 10]) == 1
    assert overlap([0, 0, 10, 10], [5, 0, 10, 10]) == pytest.approx(1 / 3)
    assert overlap([0, 0, 10, 10], [20, 0, 10, 10]) == overlap([0, 0, 0, 0], [0, 0, 0, 0]) == 0


def test_a_narrow_person_overlaps_its_widened_box():
    """A box of RootNet has the input's aspect ratio: five times as large as that of somebody who stands upright."""
    check = SourceCheck((256, 256))
    narrow = [200., 100., 40., 200.]
    check.add(np.array([95., 75., 250., 250.]), narrow, (400, 400))
    assert check.median() > .9
    check.add(np.array([0., 0., 10., 10.]), [0., 0., 400., 400.], (400, 400))  # the whole image says nothing
    assert len(check.overlaps) == 1


@pytest.mark.parametrize('rule', ['published', 'exact'])
def test_exact_coco_fits_are_learnt_from_as_published_or_all(rule, stand_in_bodies, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        data, error = open_recorded(GOLDEN / 'coco_fit_check.npz', stand_in_bodies, tmp_path / 'data',
                                    f'coco_fit_check={rule}')
    expected = error <= LIMIT if rule == 'published' else np.ones(48, bool)
    np.testing.assert_array_equal(fits_used(data), expected)
    assert 'MSCOCO: of the first 48 fits, coco_fit_check=published leaves 24, coco_fit_check=exact 48' in [
        record.getMessage() for record in caplog.records]
