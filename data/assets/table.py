"""Which files each data set needs, for what, where they come from, and which setting does without them."""
from dataclasses import dataclass

from data.assets.schema import Arrays, Coco, Keyed, Listed
from data.Human36M.Human36M import SUBJECTS

PUBLISHED = 'the annotation archives of I2L-MeshNet (github.com/mks0601/I2L-MeshNet_RELEASE, "Data")'
ROOTNET = 'the RootNet results of I2L-MeshNet (same page), or: python tool/rootnet_from_gt.py {}'
TRAIN, TEST, TRAIN_TEST = ('train',), ('test',), ('train', 'test')


@dataclass(frozen=True)
class Asset:
    """One file.

    path: below the data folder. holds: what it is for. splits: those that need it. source: where to get it. layout:
    the form of a JSON file (data/assets/schema.py), or the shape of an array. setting: (field, value) of the settings
    that does without it. body: the only body model it is needed with. optional: only what it `holds` is missed.
    """
    path: str
    holds: str
    splits: tuple[str, ...]
    source: str
    layout: object
    setting: tuple[str, object] | None = None
    body: str | None = None
    optional: bool = False


def fit(joints, **more):
    """Schema of the parameters of a body model with so many joints."""
    return dict(pose=(3 * joints,), shape=(10,), trans=(3,), **more)


def rootnet(name, file, key, splits=TEST):
    """RootNet's file of a data set."""
    return Asset(f'{name}/rootnet_output/{file}', 'boxes and root depths', splits, ROOTNET.format(name),
                 Listed(key, dict(bbox=(4,), root_cam=(3,))), setting=('use_gt_info', True))


def regressor(path, joints, splits):
    """A joint regressor of SMPL."""
    source = 'the repository of I2L-MeshNet (same place below its data/ folder)'
    return Asset(path, f'the {joints} joints of an SMPL mesh', splits, source, (17, 6890), body='smpl')


def h36m_regressor(splits):
    return regressor('Human36M/J_regressor_h36m_correct.npy', 'Human3.6M', splits)


def human36m(protocol):
    lens = dict(R=(3, 3), t=(3,), f=(2,), c=(2,))
    index = dict.fromkeys(('subject', 'action_idx', 'subaction_idx', 'cam_idx', 'frame_idx'), ())
    frame = ('action', 'sub-action', 'frame')
    for splits, subjects in zip((TRAIN, TEST), SUBJECTS[protocol], strict=True):
        for subject in subjects:
            stem = f'Human36M/annotations/Human36M_subject{subject}_'
            yield Asset(f'{stem}data.json', 'the list of pictures', splits, PUBLISHED, Coco(index))
            yield Asset(f'{stem}camera.json', 'the cameras', splits, PUBLISHED, Keyed(('camera',), lens))
            yield Asset(f'{stem}joint_3d.json', 'the joints', splits, PUBLISHED, Keyed(frame, (17, 3)))
            if splits == TRAIN:
                yield Asset(f'{stem}smpl_param.json', 'the SMPL fits', splits, PUBLISHED, Keyed(frame, fit(24)))
    yield h36m_regressor(TRAIN_TEST)
    yield rootnet('Human36M', 'bbox_root_human36m_output.json', 'image_id')


def muco():
    people = dict(keypoints_cam=(21, 3), keypoints_img=[(21, 2), (21, 3)])
    yield Asset('MuCo/data/MuCo-3DHP.json', 'pictures, cameras and joints', TRAIN, PUBLISHED,
                Coco(dict(f=(2,), c=(2,)), people))
    yield Asset('MuCo/data/smpl_param.json', 'the SMPL fits', TRAIN, PUBLISHED, Keyed(('annotation',), fit(24)))
    yield h36m_regressor(TRAIN)


def mscoco():
    people = Coco({}, dict(iscrowd=(), num_keypoints=(), keypoints=(51,)))
    fits = dict(smpl_param=fit(24), cam_param=dict(focal=(2,), princpt=(2,)))
    source = 'cocodataset.org, "2017 Train/Val annotations"'
    for splits, part in ((TRAIN, 'train'), (TEST, 'val')):
        path = f'MSCOCO/annotations/person_keypoints_{part}2017.json'
        yield Asset(path, 'people and their keypoints', splits, source, people)
    yield Asset('MSCOCO/annotations/coco_smplifyx_train.json', 'the SMPL fits', TRAIN, PUBLISHED,
                Keyed(('annotation',), fits))
    yield regressor('MSCOCO/J_regressor_coco_hip_smpl.npy', 'MS COCO', TRAIN)
    yield rootnet('MSCOCO', 'bbox_root_coco_output.json', 'image_id')


def gendered_bodies(name, stem, source):
    """The files of 3DPW, and of SURREAL, which is converted to the same layout."""
    camera = dict(focal=(2,), princpt=(2,))
    body = fit(24, gender={'male', 'female', 'neutral'}) | dict(shape=[(10,), (300,)])
    for split in ('train', 'validation', 'test'):
        yield Asset(f'{name}/data/{stem}_{split}.json', 'people and their SMPL bodies', (split,), source,
                    Coco(dict(sequence=str, cam_param=camera), dict(smpl_param=body)))
    yield h36m_regressor(('validation', 'test'))


def pw3d():
    yield from gendered_bodies('PW3D', '3DPW', f'{PUBLISHED}, or made by: python tool/3DPW/convert.py')
    yield rootnet('PW3D', 'bbox_root_pw3d_output.json', 'ann_id', ('validation', 'test'))


def freihand():
    source = f'{PUBLISHED}, or made by: python tool/FreiHAND/convert.py'
    camera = dict(R=(3, 3), t=(3,), focal=(2,), princpt=(2,))
    for splits, part, hand in ((TRAIN, 'train', dict(mano_param=fit(16))), (TEST, 'eval', {})):
        yield Asset(f'FreiHAND/data/freihand_{part}_coco.json', 'the list of pictures', splits, source,
                    Coco(dict(db_idx=())))
        yield Asset(f'FreiHAND/data/freihand_{part}_data.json', 'cameras and hands', splits, source,
                    Keyed(('hand',), dict(cam_param=camera, **hand)))
    for name, points in (('xyz', 21), ('verts', 778)):
        yield Asset(f'FreiHAND/data/evaluation_{name}.json', 'ground truth, to score the test here', TEST,
                    'FreiHAND_pub_v2_eval.zip of the official release (lmb.informatik.uni-freiburg.de)',
                    Arrays((points, 3)), optional=True)
    yield rootnet('FreiHAND', 'bbox_root_freihand_output.json', 'image_id')


TABLES = {
    'Human36M': lambda cfg: human36m(cfg.h36m_protocol),
    'MuCo': lambda cfg: muco(),
    'MSCOCO': lambda cfg: mscoco(),
    'PW3D': lambda cfg: pw3d(),
    'FreiHAND': lambda cfg: freihand(),
    'SURREAL': lambda cfg: gendered_bodies('SURREAL', 'SURREAL', 'python tool/SURREAL/convert.py'),
    'Synthetic': lambda cfg: (),
}


def assets_of(name, cfg):
    """The Assets that a data set needs with these settings; None for a data set that is not in the tables."""
    if name not in TABLES:
        return None
    return [asset for asset in TABLES[name](cfg)
            if (asset.setting is None or getattr(cfg, asset.setting[0]) != asset.setting[1])
            and asset.body in (None, cfg.human_model)]
