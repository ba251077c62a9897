"""Records of the data sets' files that are laid out in another way, not finite, or in other units: one line that names
the file and the record, or masked and counted."""
import copy
import json

import numpy as np
import pytest

from common.errors import UserError
from tests.data_tools import HANDS
from tests.faults.commands import says

CHECK = 'check_assets.py {}'
SUBJECT = 'annotations/Human36M_subject1_'


def first(content, kind='annotations'):
    return content[kind][0]


def each(content, change):
    """Apply `change` to every record of a dictionary or list."""
    for record in content.values() if isinstance(content, dict) else content:
        change(record)


def scale(record, key, factor):
    record[key] = (np.array(record[key], np.float64) * factor).tolist()


def scale_frames(content, factor):
    for frames in content['2'].values():
        for frame in frames:
            frames[frame] = (np.array(frames[frame]) * factor).tolist()


def put(*keys, value):
    """A change of one value: keys lead to it."""
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value
    return change


def without(*keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]
    return change


NAN, INF = float('nan'), float('inf')
# (data set, split, settings, file, change, what is told)
COCO_FILE = 'annotations/person_keypoints_train2017.json'
FITS = 'annotations/coco_smplifyx_train.json'
CHANGES = {
    'list for a dictionary': ('MuCo', 'train', 'data/smpl_param.json', lambda c: [c],
                              'smpl_param.json holds a list where a dictionary belongs .*Download it again'),
    'number for a list': ('PW3D', 'train', 'data/3DPW_train.json', lambda c: 3, 'is not a COCO-style file'),
    'no annotations': ('PW3D', 'train', 'data/3DPW_train.json', without('annotations'), 'is not a COCO-style file'),
    'annotations are one': ('MSCOCO', 'train', COCO_FILE, lambda c: {**c, 'annotations': c['annotations'][0]},
                            'has no list "annotations"'),
    'no person at all': ('MSCOCO', 'train', COCO_FILE, put('annotations', value=[]),
                         'MSCOCO train: no sample can be used; suspect'),
    'record is a text': ('MuCo', 'train', 'data/MuCo-3DHP.json', put('images', 0, value='x'),
                         'MuCo-3DHP.json: image number 0 of the list is not a dictionary'),
    'without an id': ('MuCo', 'train', 'data/MuCo-3DHP.json', without('images', 0, 'id'),
                      'MuCo-3DHP.json: image number 0 of the list has no id'),
    'id is a list': ('MuCo', 'train', 'data/MuCo-3DHP.json', put('images', 0, 'id', value=[1]),
                     r'image \[1\] has an invalid id, neither a number nor a text'),
    'image not listed': ('MuCo', 'train', 'data/MuCo-3DHP.json', put('annotations', 0, 'image_id', value=77),
                         'MuCo-3DHP.json: annotation 0 is of image 77, which is not in "images"'),
    'file name is none': ('MSCOCO', 'train', COCO_FILE, put('images', 0, 'file_name', value=5),
                          'image 0 has an invalid file_name'),
    'file name with a null': ('MSCOCO', 'train', COCO_FILE, put('images', 0, 'file_name', value='a\0b'),
                              'image 0 has an invalid file_name'),
    'width is a text': ('PW3D', 'test', 'data/3DPW_test.json', put('images', 0, 'width', value='200'),
                        'image 0 has an invalid width or height .200, 240'),
    'height is 0': ('PW3D', 'test', 'data/3DPW_test.json', put('images', 0, 'height', value=0),
                    'image 0 has an invalid width or height'),
    'height without end': ('PW3D', 'test', 'data/3DPW_test.json', put('images', 0, 'height', value=INF),
                           'image 0 has an invalid width or height'),
    'box of three': ('PW3D', 'test', 'data/3DPW_test.json', put('annotations', 0, 'bbox', value=[1, 2, 3]),
                     r'has the bbox \[1, 2, 3\], not x, y, width, height'),
    'box is a number': ('PW3D', 'test', 'data/3DPW_test.json', put('annotations', 0, 'bbox', value=4), 'the bbox 4'),
    'box of texts': ('PW3D', 'test', 'data/3DPW_test.json', put('annotations', 0, 'bbox', value=['1'] * 4), 'the bbox'),
    'box of 400 digits': ('PW3D', 'test', 'data/3DPW_test.json',
                          put('annotations', 0, 'bbox', value=[10 ** 400, 0, 5, 5]), 'has the bbox'),
    'pose of 71': ('MSCOCO', 'train', FITS, put('104', 'smpl_param', 'pose', value=[0.] * 71),
                   r'annotation 104: smpl_param has a pose of the shape \(71,\), expected \(72,\)'),
    'shape of 300': ('MuCo', 'train', 'data/smpl_param.json', lambda c: each(c, put('shape', value=[0.] * 300)),
                     r'annotation \d+ has a shape of the shape \(300,\), expected \(10,\)'),
    'trans of 2': ('MuCo', 'train', 'data/smpl_param.json', lambda c: each(c, put('trans', value=[0., 4.])),
                   r'annotation \d+ has a trans of the shape \(2,\), expected \(3,\)'),
    'pose of texts': ('MuCo', 'train', 'data/smpl_param.json', lambda c: each(c, put('pose', value=['a'] * 72)),
                      r'smpl_param.json: annotation \d+ has a pose that is not an array of numbers'),
    'fit is a number': ('MuCo', 'train', 'data/smpl_param.json', lambda c: dict.fromkeys(c, 5),
                        r'smpl_param.json: annotation \d+ is not a dictionary'),
    'empty fit': ('MSCOCO', 'train', FITS, put('104', value={}),
                  'smplifyx_train.json: annotation 104 has no smpl_param'),
    'empty parameters': ('MSCOCO', 'train', FITS, put('104', 'smpl_param', value={}),
                         'annotation 104: smpl_param has no pose'),
    'empty camera': ('MSCOCO', 'train', FITS, put('104', 'cam_param', value={}),
                     'annotation 104: cam_param has no focal'),
    'fit without trans': ('MSCOCO', 'train', FITS, without('104', 'smpl_param', 'trans'),
                          'annotation 104: smpl_param has no trans'),
    'focal of one': ('MuCo', 'train', 'data/MuCo-3DHP.json', put('images', 0, 'f', value=[1.]),
                     r'image 0 has a f of the shape \(1,\), expected \(2,\)'),
    'focal is null': ('MuCo', 'train', 'data/MuCo-3DHP.json', put('images', 0, 'f', value=None),
                      r'image 0 has a f of the shape \(\), expec'),
    'keypoints of 16': ('MSCOCO', 'train', COCO_FILE, put('annotations', 0, 'keypoints', value=[1.] * 48),
                        r'annotation 100 has a keypoints of the shape \(48,\), expected \(17, 3\)'),
    'joints of 20': ('MuCo', 'train', 'data/MuCo-3DHP.json',
                     put('annotations', 0, 'keypoints_cam', value=[[0., 0., 4000.]] * 20),
                     r'annotation 0 has a keypoints_cam of the shape'),
    'huge joints': ('MuCo', 'train', 'data/MuCo-3DHP.json',
                    put('annotations', 0, 'keypoints_cam', value=[[10 ** 400, 0, 1]] * 21),
                    'annotation 0 has a keypoints_cam that is not an array of numbers'),
    'rotation of 2 x 3': ('Human36M', 'train', f'{SUBJECT}camera.json', put('1', 'R', value=[[1, 0, 0], [0, 1, 0]]),
                          r'subject1_camera.json: camera 1 has a R of the shape \(2, 3\), expected \(3, 3\)'),
    'camera is missing': ('Human36M', 'train', f'{SUBJECT}camera.json', without('1'),
                          'subject1_camera.json has no camera 1'),
    'camera is a text': ('Human36M', 'train', f'{SUBJECT}camera.json', put('1', value='x'),
                         'camera 1 is not a dictionary'),
    'camera not finite': ('Human36M', 'train', f'{SUBJECT}camera.json', lambda c: each(c, lambda r: r.update(
        t=[NAN] * 3)), 'samples make no sense .*translation t is not finite.*suspect Human36M_subject.*camera.json'),
    'camera in metres': ('Human36M', 'train', f'{SUBJECT}camera.json', lambda c: each(c, lambda r: scale(
        r, 't', 1e-3)), 'samples make no sense .*suspect Human36M_subject.*camera.json'),
    'joints in metres': ('Human36M', 'train', f'{SUBJECT}joint_3d.json', lambda c: scale_frames(c, 1e-3),
                         'joints of impossible size: are they in another unit .metres, millimetres'),
    'MuCo in metres': ('MuCo', 'train', 'data/MuCo-3DHP.json', lambda c: each(
        c['annotations'], lambda r: scale(r, 'keypoints_cam', 1e-3)), 'joints of impossible size.*another unit'),
    'fits in millimetres': ('PW3D', 'train', 'data/3DPW_train.json', lambda c: each(
        c['annotations'], lambda r: scale(r['smpl_param'], 'trans', 1e3)), 'fit of impossible distance.*another unit'),
    'poses in degrees': ('PW3D', 'train', 'data/3DPW_train.json', lambda c: each(
        c['annotations'], lambda r: scale(r['smpl_param'], 'pose', 180 / np.pi)), 'two whole turns: is it in degrees'),
    'hands in millimetres': ('FreiHAND', 'train', 'data/freihand_train_data.json', lambda c: each(
        c, lambda r: scale(r['mano_param'], 'trans', 1e3)), 'fit of impossible distance: .*another unit'),
    'depths in millimetres': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', lambda c: each(
        c, lambda r: scale(r, 'root_cam', 1e3)), 'root depth of impossible size: is it in another unit'),
    'depths in metres': ('Human36M', 'test', 'rootnet_output/bbox_root_human36m_output.json', lambda c: each(
        c, lambda r: scale(r, 'root_cam', 1e-3)), 'root depth of impossible size: is it in another unit'),
    'depths behind': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', lambda c: each(
        c, lambda r: scale(r, 'root_cam', -1)), 'root depth not above 0, sample skipped'),
    'depths not finite': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', lambda c: each(
        c, lambda r: scale(r, 'root_cam', NAN)), 'root depth not above 0, sample skipped'),
    'RootNet is a dictionary': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', lambda c: {'a': c},
                                'holds a dict where a list belongs'),
    'RootNet without boxes': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', without(0, 'bbox'),
                              r'bbox_root_pw3d_output.json: the entry ann_id \d+ has no bbox'),
    'root of two': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', put(0, 'root_cam', value=[1, 2]),
                    r'the entry ann_id \d+ has a root_cam of the shape \(2,\), expected \(3,\)'),
    'box of RootNet': ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', put(0, 'bbox', value='full'),
                       'has a bbox that is not an array of numbers'),
    'no such hand': ('FreiHAND', 'train', 'data/freihand_train_data.json', without('0'),
                     'freihand_train_data.json has no hand 0'),
    'hand without a camera': ('FreiHAND', 'test', 'data/freihand_eval_data.json', without('0', 'cam_param'),
                              'freihand_eval_data.json: hand 0 has no cam_param'),
    'hand that cannot be tested': ('FreiHAND', 'test', 'rootnet_output/bbox_root_freihand_output.json',
                                   put(0, 'bbox', value=[900., 900., 5., 5.]),
                                   'box off the image|3 of the 4 test images can be used'),
    'gender': ('PW3D', 'test', 'data/3DPW_test.json', put('annotations', 0, 'smpl_param', 'gender', value='x'),
               "SMPL has no 'x' model; there is neutral, male, female"),
}


@pytest.mark.parametrize('fault', CHANGES)
def test_record(fault, open_set, changed):
    name, split, file, change, told = CHANGES[fault]
    with pytest.raises(UserError) as error:
        open_set(name, split, data_dir=changed(name, file, lambda content: change(content)))
    message = str(error.value)
    assert '\n' not in message and len(message) < 700
    says(message, told.format(name))


def test_a_change_is_one(tiny_datasets):
    """The changes above change something: a test with one that does nothing would be of no use."""

    for name, _, file, change, _ in CHANGES.values():
        content = json.loads((tiny_datasets / name / file).read_text())
        before = copy.deepcopy(content)
        new = change(content)
        assert repr(content if new is None else new) != repr(before)


def test_a_test_of_freihand_that_leaves_images_out_ends_at_once(open_set):
    with pytest.raises(UserError, match='FreiHAND: 3 of the 4 test images can be used, .*leave exclude empty'):
        open_set('FreiHAND', 'test', *HANDS, 'exclude=[00000001.png]')


@pytest.mark.parametrize(('change', 'told'), [
    (lambda truth: truth[:3], r'has the shape \(3, 21, 3\), expected \(4, 21, 3\)'),
    (lambda truth: [[[NAN] * 3] * 21] * 4, 'has values that are not finite: download it again'),
    (lambda truth: [1, [2]], 'is not an array of numbers .*: download it again'),
    (lambda truth: {'a': 1}, 'holds a dict where a list belongs')])
def test_released_truth_of_freihand(change, told, open_set, changed):

    data_dir = changed('FreiHAND', 'data/freihand_eval_data.json', lambda content: None)
    for name, points in (('xyz', 21), ('verts', 778)):
        truth = [[[0.1, 0.1, 0.6]] * points] * 4
        path = data_dir / 'FreiHAND' / 'data' / f'evaluation_{name}.json'
        path.write_text(json.dumps(change(truth) if name == 'xyz' else truth))
    with pytest.raises(UserError, match=told) as error:
        open_set('FreiHAND', 'test', *HANDS, data_dir=data_dir)
    assert 'evaluation_xyz.json' in str(error.value)
