"""From a snapshot to the demo's predictor, and the joints that it reports."""
from pathlib import Path

from common.demo.outputs.record import JointReader
from common.demo.people.predictor import NetworkInfo, Predictor
from common.devices.gpus import devices
from common.devices.wrap import wrap
from common.errors import UserError
from common.human_model import HumanModel, get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from data.codec import LixelCodec
from data.files import read_regressor
from data.joint_set import COCO, HUMAN36M
from main.config import Config
from main.model import get_model


def load_predictor(config: Config, path: str | Path, stage: str | None = None, left_hand: bool = False) -> Predictor:
    """The network of a snapshot, with the body model and the sizes recorded there.

    Args:
        config: takes these values, and gives all others.
        path: of the snapshot.
        stage: 'lixel' or 'param'; None: the snapshot's.
        left_hand: for left hands, by a network for right ones.
    Raises:
        UserError: the snapshot cannot be used, or not like this.
    """
    content = checkpoint.read(path)
    snapshot_meta.warn_of_unfinished(content, path)
    meta = snapshot_meta.describe(content, path)
    if config.body_model not in ('auto', meta['human_model']):
        raise UserError(f'{path} was trained with the body model {meta["human_model"]}, not {config.body_model}')
    snapshot_meta.adopt(meta, config, path, stage)
    config.check()
    human_model = get_human_model(config.human_model, model_dir=config.human_model_dir)
    if left_hand and not human_model.is_hand:
        raise UserError(f'--left is for hands; {path} was trained with the body model {config.human_model}')
    model = get_model(config, human_model, 'test')
    checkpoint.load_network(model, content, path, regressor_optional=config.stage == 'lixel')
    found = devices()
    net = wrap(prepare_for_inference(model, found[0]), found, config.amp)
    codec = LixelCodec(config.input_img_shape, config.output_hm_shape, config.bbox_3d_size)
    info = NetworkInfo(str(Path(path).resolve()), config.stage, human_model.name, human_model.gender,
                       human_model.is_hand, left_hand, tuple(human_model.joint_set.joints_name),
                       snapshot_meta.trained_on(meta) == {'Synthetic'}, snapshot_meta.has_trained_maps(meta))
    return Predictor(net, human_model, codec, info, config.test_batch_size * len(found), found[0])


def joint_reader(human_model: HumanModel, name: str, data_dir: str | Path) -> JointReader:
    """The joints of --joint_set, read from meshes of a body model.

    Args:
        human_model: the body model.
        name: 'all' of the body model, 'smpl', 'h36m' or 'coco'.
        data_dir: with the regressors of the data sets.
    Raises:
        UserError: the body model has no such joints.
    """
    own = human_model.joint_set
    regressor = human_model.get_buffer('joint_regressor').cpu().numpy()
    if name == 'all':
        return JointReader(own.joints_name, regressor, own.skeleton)
    if human_model.is_hand:
        raise UserError(f'--joint_set {name} is a set of body joints; for hands there is only: all')
    joint_set = {'smpl': own, 'h36m': HUMAN36M, 'coco': COCO}[name]
    if name == 'smpl':
        regressor = regressor[:human_model.kinematic_joint_num]
    elif name in human_model.regressors:
        regressor = human_model.regressor(name)
    else:
        regressor = read_regressor(data_dir, name, human_model.vertex_num)
    count = len(regressor)
    skeleton = tuple(pair for pair in joint_set.skeleton if max(pair) < count)
    return JointReader(joint_set.joints_name[:count], regressor, skeleton)
