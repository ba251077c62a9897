"""From a snapshot to meshes: the class that the demo, its page and other programs use."""
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.demo.inputs.boxes import check_box
from common.demo.inputs.images import Photo, read_image
from common.demo.outputs.record import JointReader
from common.demo.people.body import root_row
from common.demo.people.placer import Placer
from common.demo.people.predictor import BoxPredictor, NetworkInfo
from common.demo.pipeline import Pipeline
from common.devices.gpus import devices
from common.devices.wrap import use_channels_last, wrap
from common.errors import UserError, one_line, shown
from common.human_model import HumanModel, get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from data.codec import LixelCodec
from data.files import read_regressor
from data.joint_set import COCO, HUMAN36M
from main.bundled import SNAPSHOT
from main.config import Config
from main.model import Model, get_model


class Predictor(Pipeline):
    """Meshes, joints and parameters of people, from images and boxes.

        predictor = Predictor('snapshot_8.pth.tar', 'cuda')
        arrays = predictor(image, [[120, 40, 210, 480]])

    Args:
        snapshot: path of the network; default: the bundled one, which knows drawn people only.
        device: 'cpu', 'cuda', 'cuda:1'; None: the GPUs that this process sees, or the CPU.
        stage: 'lixel' for the lixel mesh alone; None: the snapshot's.
        left_hand: for left hands, by a network for right ones.
        focal: of the camera, one or two numbers, pixels; None: by the image.
        princpt: principal point, (2,) pixels; None: the middle of the image.
        root_depth: metres from the camera to the root joint, one for all people or one each; None: estimated.
        placement: 'fitted', or 'original' as in the original's demo, which needs root depths.
        joint_set: of the joints that are returned: 'all' of the body model, 'smpl', 'h36m' or 'coco'.
        axes: of OBJ files that are written: 'y_up' or 'camera'.
        config: gives batch size, precision and folders; changed to the network of the snapshot.
    Raises:
        UserError: the snapshot cannot be used, or not like this; no camera has such values.
    """

    def __init__(self, snapshot: str | Path = SNAPSHOT, device: str | torch.device | None = None, *,
                 stage: str | None = None, left_hand: bool = False, focal: list[float] | None = None,
                 princpt: list[float] | None = None, root_depth: list[float] | None = None, placement: str = 'fitted',
                 joint_set: str = 'all', axes: str = 'y_up', config: Config | None = None) -> None:
        if config is None:
            config = Config()
        predictor = load_predictor(config, snapshot, stage, left_hand, device)
        human_model = predictor.human_model
        placer = Placer(config.bbox_3d_size, focal, princpt, root_depth)
        if placement == 'original':
            placer.root_row = root_row(human_model).cpu().numpy()
            predictor.antialias = False  # as the original
        doubts = []
        if predictor.info.warning:
            doubts.append(predictor.info.warning)
        super().__init__(predictor, placer, joint_reader(human_model, joint_set, config.data_dir), doubts, axes)
        self.warned = False

    def __call__(self, image: np.ndarray | str | Path, boxes: Sequence[Any]) -> dict[str, np.ndarray]:
        """The people of one image. P people, V vertices, J joints (`self.joints.names`).

        Args:
            image: (H, W, 3) uint8 RGB, or the path of an image file, whose EXIF then gives the focal length.
            boxes: x, y, width, height of each person, pixels; or 'full' for the whole image.
        Returns:
            {name: array}, float32; `PIXELS`: x right, y down, a pixel centre at integers; `CAMERA`: metres, camera
            space, x right, y down, z forward, the camera in the origin. Of every network:
            bbox (P, 4): as given, pixels. crop_bbox (P, 4): the enlarged box that the network saw, pixels.
            confidence (P,), joint_confidence (P, joints of the network): 0..1. root_depth (P,): metres.
            lixel_joints_img (P, J, 2): PIXELS. lixel_joints_cam (P, J, 3): CAMERA.
            lixel_vertices_img (P, V, 3): x, y PIXELS; z metres relative to the root joint.
            lixel_vertices_cam (P, V, 3): CAMERA.
            faces (F, 3) int32: vertex numbers. focal (2,), princpt (2,) float64: of the camera, pixels.
            Of the param stage also:
            param_joints_img (P, J, 2): PIXELS. param_joints_cam (P, J, 3), param_vertices_cam (P, V, 3): CAMERA.
            pose (P, K * 3): axis-angle, radians, the root joint first. betas (P, 10): shape.
            trans (P, 3) float64: metres; body_model(pose, betas) + trans = param_vertices_cam (left hands: with x
            negated).
        Raises:
            UserError: the image or a box cannot be used.
        """
        if self.warnings and not self.warned:
            self.warned = True
            warnings.warn(self.warnings[0], stacklevel=2)
        if isinstance(image, (str, Path)):
            photo = read_image(image)
        else:
            photo = Photo(np.asarray(image))
        pixels = photo.image
        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
            raise UserError(f'an image is an array (height, width, 3) of uint8, RGB; this one: {pixels.shape}, '
                            f'{pixels.dtype}')
        if not len(boxes):
            raise UserError('give a box for each person: x, y, width, height in pixels')
        height, width = pixels.shape[:2]
        checked = [check_box(box, width, height, 'xywh', f'box {number}') for number, box in enumerate(boxes)]
        camera, people = self.placer(self.predictor.predict(pixels, checked), (height, width), photo.film_focal)
        record = self.record('', (height, width), camera)
        arrays = record.stacked(people)
        arrays['faces'] = np.asarray(record.faces, np.int32)
        arrays['focal'] = camera.focal
        arrays['princpt'] = camera.princpt
        return arrays


def read_network(config: Config, path: str | Path, stage: str | None = None) -> tuple[Model, snapshot_meta.Meta]:
    """The network of a snapshot in test mode, and the `meta` of the snapshot.

    Args:
        config: takes the network's values, and gives all others.
        path: of the snapshot.
        stage: 'lixel' or 'param'; None: the snapshot's.
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
    model = get_model(config, get_human_model(config.human_model, model_dir=config.human_model_dir), 'test')
    checkpoint.load_network(model, content, path, regressor_optional=config.stage == 'lixel')
    return model, meta


def load_predictor(config: Config, path: str | Path, stage: str | None = None, left_hand: bool = False,
                   device: str | torch.device | None = None) -> BoxPredictor:
    """What runs the network of a snapshot on boxes; see `Predictor` and `read_network` for the arguments and errors."""
    model, meta = read_network(config, path, stage)
    human_model = model.human_model
    if left_hand and not human_model.is_hand:
        raise UserError(f'--left is for hands; {path} was trained with the body model {config.human_model}')
    found = devices()
    if device is not None:
        found = [named_device(device)]
    channels_last = use_channels_last(config, found[0])
    net = wrap(prepare_for_inference(model, found[0], channels_last), found, config.amp)
    codec = LixelCodec(config.input_img_shape, config.output_hm_shape, config.bbox_3d_size)
    info = NetworkInfo(str(Path(path).resolve()), config.stage, human_model.name, human_model.gender,
                       human_model.is_hand, left_hand, tuple(human_model.joint_set.joints_name),
                       snapshot_meta.trained_on(meta) == {'Synthetic'}, snapshot_meta.has_trained_maps(meta))
    return BoxPredictor(net, human_model, codec, info, config.test_batch_size * len(found), found[0])


def named_device(name: str | torch.device) -> torch.device:
    """The device of a name such as 'cuda:0'. UserError: there is none here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f'device {shown(str(name))} cannot be used here: {one_line(error)}') from error
    return device


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
    sets = {'smpl': own, 'h36m': HUMAN36M, 'coco': COCO}
    if name not in sets:
        raise UserError(f'joint_set {shown(name)}: one of all, {", ".join(sets)}')
    joint_set = sets[name]
    if name == 'smpl':
        regressor = regressor[:human_model.kinematic_joint_num]
    elif name in human_model.regressors:
        regressor = human_model.regressor(name)
    else:
        regressor = read_regressor(data_dir, name, human_model.vertex_num)
    count = len(regressor)
    skeleton = tuple(pair for pair in joint_set.skeleton if max(pair) < count)
    return JointReader(joint_set.joints_name[:count], regressor, skeleton)
