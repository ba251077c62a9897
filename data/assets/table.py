"""Which files each data set needs, for what, where they come from, and which setting does without them."""
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from data.assets.schema import Arrays, Coco, IfPresent, Keyed, Listed
from data.Human36M.Human36M import SUBJECTS
from data.settings import Settings

PUBLISHED = 'the annotation archives of I2L-MeshNet (github.com/mks0601/I2L-MeshNet_RELEASE, "Data")'
ROOTNET = 'the RootNet results of I2L-MeshNet (same page), or: python tool/rootnet_from_gt.py {}'
TRAIN = ('train',)
TEST = ('test',)
TRAIN_TEST = ('train', 'test')


@dataclass(frozen=True)
class Asset:
    """One file.

    Attributes:
        path: Below the data folder.
        holds: What it is for.
        splits: Those that need it.
        source: Where to get it.
        layout: The form of a JSON file (data/assets/schema.py), or the shape of an array.
        setting: (field, value) of the settings that does without it.
        body: The only body model it is needed with.
        optional: Only what it `holds` is missed.
    """
    path: str
    holds: str
    splits: tuple[str, ...]
    source: str
    layout: object
    setting: tuple[str, object] | None = None
    body: str | None = None
    optional: bool = False


def fit(joints: int) -> dict[str, Any]:
    """Schema of the parameters of a body model with so many joints."""
    return {'pose': (3 * joints,), 'shape': (10,), 'trans': (3,)}


def rootnet(name: str, file: str, key: str, splits: tuple[str, ...] = TEST) -> Asset:
    """RootNet's file of a data set."""
    return Asset(f'{name}/rootnet_output/{file}', 'boxes and root depths', splits, ROOTNET.format(name),
                 Listed(key, dict(bbox=(4,), root_cam=(3,))), setting=('use_gt_info', True))


def regressor(path: str, joints: str, splits: tuple[str, ...]) -> Asset:
    """A joint regressor of SMPL."""
    source = 'the repository of I2L-MeshNet (same place below its data/ folder)'
    return Asset(path, f'the {joints} joints of an SMPL mesh', splits, source, (17, 6890), body='smpl')


def h36m_regressor(splits: tuple[str, ...]) -> Asset:
    """The regressor of the Human3.6M joints."""
    return regressor('Human36M/J_regressor_h36m_correct.npy', 'Human3.6M', splits)


def box(cfg: Settings, splits: tuple[str, ...], has_rootnet: bool = True) -> object:
    """Schema of an annotated box: a test that has RootNet's boxes does without."""
    if splits != TRAIN and has_rootnet and not cfg.use_gt_info:
        return IfPresent((4,))
    return (4,)


def human36m(cfg: Settings) -> Iterator[Asset]:
    """The files of Human3.6M."""
    lens = dict(R=(3, 3), t=(3,), f=(2,), c=(2,))
    index = dict.fromkeys(('action_idx', 'subaction_idx', 'cam_idx', 'frame_idx'), ())
    frame = ('action', 'sub-action', 'frame')
    for splits, subjects in zip((TRAIN, TEST), SUBJECTS[cfg.h36m_protocol], strict=True):
        people = Coco(index, dict(bbox=box(cfg, splits)))
        for subject in subjects:
            stem = f'Human36M/annotations/Human36M_subject{subject}_'
            yield Asset(f'{stem}data.json', 'the list of images', splits, PUBLISHED, people)
            yield Asset(f'{stem}camera.json', 'the cameras', splits, PUBLISHED, Keyed(('camera',), lens))
            yield Asset(f'{stem}joint_3d.json', 'the joints', splits, PUBLISHED, Keyed(frame, (17, 3)))
            if splits == TRAIN:
                yield Asset(f'{stem}smpl_param.json', 'the SMPL fits', splits, PUBLISHED, Keyed(frame, fit(24)))
    yield h36m_regressor(TRAIN_TEST)
    yield rootnet('Human36M', 'bbox_root_human36m_output.json', 'image_id')


def muco(cfg: Settings) -> Iterator[Asset]:
    """The files of MuCo-3DHP."""
    people = dict(bbox=box(cfg, TRAIN), keypoints_cam=(21, 3), keypoints_img=[(21, 2), (21, 3)])
    yield Asset('MuCo/data/MuCo-3DHP.json', 'images, cameras and joints', TRAIN, PUBLISHED,
                Coco(dict(f=(2,), c=(2,)), people))
    yield Asset('MuCo/data/smpl_param.json', 'the SMPL fits', TRAIN, PUBLISHED, Keyed(('annotation',), fit(24)))
    yield h36m_regressor(TRAIN)


def without_keypoints(person: dict) -> bool:
    """Whether a COCO annotation is a crowd, or nobody's keypoints: the loader leaves it out."""
    return bool(person.get('iscrowd')) or person.get('num_keypoints') == 0


def mscoco(cfg: Settings) -> Iterator[Asset]:
    """The files of MS COCO."""
    usable = dict(iscrowd=IfPresent(()), num_keypoints=IfPresent(()), bbox=(4,))
    train = Coco({}, dict(**usable, keypoints=(51,)), without_keypoints)
    test = Coco({}, annotation=None)
    if cfg.use_gt_info:
        test = Coco({}, usable, without_keypoints)
    fits = dict(smpl_param=fit(24), cam_param=dict(focal=(2,), princpt=(2,)))
    source = 'cocodataset.org, "2017 Train/Val annotations"'
    for splits, part, layout in ((TRAIN, 'train', train), (TEST, 'val', test)):
        path = f'MSCOCO/annotations/person_keypoints_{part}2017.json'
        yield Asset(path, 'people and their keypoints', splits, source, layout)
    yield Asset('MSCOCO/annotations/coco_smplifyx_train.json', 'the SMPL fits', TRAIN, PUBLISHED,
                Keyed(('annotation',), fits))
    yield regressor('MSCOCO/J_regressor_coco_hip_smpl.npy', 'MS COCO', TRAIN)
    yield rootnet('MSCOCO', 'bbox_root_coco_output.json', 'image_id')


def gendered_bodies(cfg: Settings, name: str, stem: str, source: str,
                    has_rootnet: bool) -> Iterator[Asset]:
    """The files of 3DPW, and of SURREAL, which is converted to the same layout."""
    camera = dict(focal=(2,), princpt=(2,))
    body = fit(24) | dict(shape=[(10,), (300,)])
    if cfg.pw3d_gender == 'annotated':
        body['gender'] = {'male', 'female', 'neutral'}
    for split in ('train', 'validation', 'test'):
        person = dict(bbox=box(cfg, (split,), has_rootnet), smpl_param=body)
        yield Asset(f'{name}/data/{stem}_{split}.json', 'people and their SMPL bodies', (split,), source,
                    Coco(dict(sequence=str, cam_param=camera), person))
    yield h36m_regressor(('validation', 'test'))


def pw3d(cfg: Settings) -> Iterator[Asset]:
    """The files of 3DPW."""
    source = f'{PUBLISHED}, or made by: python tool/3DPW/convert.py'
    yield from gendered_bodies(cfg, 'PW3D', '3DPW', source, has_rootnet=True)
    yield rootnet('PW3D', 'bbox_root_pw3d_output.json', 'ann_id', ('validation', 'test'))


def surreal(cfg: Settings) -> Iterator[Asset]:
    """The files of SURREAL."""
    yield from gendered_bodies(cfg, 'SURREAL', 'SURREAL', 'python tool/SURREAL/convert.py', has_rootnet=False)


def freihand(cfg: Settings) -> Iterator[Asset]:
    """The files of FreiHAND."""
    source = f'{PUBLISHED}, or made by: python tool/FreiHAND/convert.py'
    # the published cam_param holds these two alone: poses and translations are in camera space
    camera = dict(focal=(2,), princpt=(2,))
    for splits, part, hand in ((TRAIN, 'train', dict(mano_param=fit(16))), (TEST, 'eval', {})):
        yield Asset(f'FreiHAND/data/freihand_{part}_coco.json', 'the list of images', splits, source,
                    Coco(dict(db_idx=()), dict(bbox=box(cfg, splits))))
        yield Asset(f'FreiHAND/data/freihand_{part}_data.json', 'cameras and hands', splits, source,
                    Keyed(('hand',), dict(cam_param=camera, **hand)))
    for name, points in (('xyz', 21), ('verts', 778)):
        yield Asset(f'FreiHAND/data/evaluation_{name}.json', 'ground truth, to score the test here', TEST,
                    'FreiHAND_pub_v2_eval.zip of the official release (lmb.informatik.uni-freiburg.de)',
                    Arrays((points, 3)), optional=True)
    yield rootnet('FreiHAND', 'bbox_root_freihand_output.json', 'image_id')


def synthetic(cfg: Settings) -> Iterator[Asset]:
    """None: the program draws the images itself."""
    yield from ()


TABLES = {'Human36M': human36m, 'MuCo': muco, 'MSCOCO': mscoco, 'PW3D': pw3d, 'FreiHAND': freihand,
          'SURREAL': surreal, 'Synthetic': synthetic}


def assets_of(name: str, cfg: Settings) -> list[Asset] | None:
    """The Assets that a data set needs with these settings; None for a data set that is not in the tables."""
    if name not in TABLES:
        return None
    return [asset for asset in TABLES[name](cfg) if is_needed(asset, cfg)]


def is_needed(asset: Asset, cfg: Settings) -> bool:
    """Whether a file is needed with these settings."""
    if asset.body not in (None, cfg.human_model):
        return False
    if asset.setting is None:
        return True
    field, value = asset.setting
    return getattr(cfg, field) != value
