"""Configuration: the dataclass `Config`, the one global object `cfg`, presets and typed overrides.

    cfg.load('nano')                                        # a preset of main/configs, or the path of a YAML file
    cfg.override(['train_batch_size=8', 'trainset_3d=[Human36M]'])
    cfg.set_args('0-3', 'lixel', continue_train=False)

Only main/* and common/base.py import `cfg`; all other code is handed values, or a Config as an argument.
"""
import dataclasses
import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from common.device import select_gpus
from common.errors import UserError, shown
from main.config_check import check_heat_maps, check_values
from main.config_file import in_words, read_settings, read_words

ROOT = Path(__file__).resolve().parent.parent
PRESETS = ROOT / 'main' / 'configs'
PATHS = ('data_dir', 'human_model_dir', 'output_dir', 'pretrained_backbone', 'synthetic_cache')
# Derived values that can also be set: the key a user writes -> the field that keeps it (None there: derived).
SETTABLE = {'lr_dec_epoch': 'lr_dec_epoch_override', 'end_epoch': 'end_epoch_override'}


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


@dataclass
class Config:
    """Every setting with its default, the published recipe for bodies."""
    # Data
    trainset_3d: list[str] = field(default_factory=lambda: ['Human36M', 'MuCo'])  # training sets with 3-D joints
    trainset_2d: list[str] = field(default_factory=lambda: ['MSCOCO'])  # training sets with 2-D joints only
    testset: str = 'PW3D'  # test set
    # Folders and files: relative ones count from the repository root, never from the current folder.
    data_dir: str = str(ROOT / 'data')  # folder of the data sets, one sub-folder each
    human_model_dir: str = str(ROOT / 'data' / 'human_models')  # folder of the official SMPL and MANO files
    output_dir: str = str(ROOT / 'output')  # folder for log, model_dump, result and vis
    body_model: str = 'auto'  # auto (by the data sets), smpl, mano, open_body, open_hand
    use_gt_info: bool = False  # test boxes and root depths from the annotations, not from the RootNet files
    rootnet_box_format: str = 'xywh'  # of the boxes in the RootNet files: xywh, or xyxy for two corners
    exclude: list[str] = field(default_factory=list)  # pictures left out of the test, by name or by the end of the path
    missing_image: str = 'skip'  # a picture that cannot be read in training: skip takes another one, error stops
    fit_limit_mm: float = 25.0  # a body fitted farther from the 3-D joints than this is not learnt from, millimetres
    fit_limit_lixel: float = 3.0  # the same for 2-D joints, lixels
    h36m_protocol: int = 2  # Human3.6M: 1 trains on subjects 1 5 6 7 8 9, tests on 11; 2: on 1 5 6 7 8, tests on 9 11
    h36m_train_every: int = 5  # Human3.6M: every n-th frame for training
    h36m_test_every: int = 64  # Human3.6M: every n-th frame for testing
    h36m_train_cameras: list[int] = field(default_factory=list)  # Human3.6M: cameras for training; empty: all
    h36m_test_cameras: list[int] = field(default_factory=lambda: [4])  # Human3.6M: cameras for testing; empty: all
    pw3d_gender: str = 'annotated'  # 3DPW: body of the target mesh: annotated (male or female), neutral
    synthetic_train_size: int = 50000  # samples in one epoch of Synthetic's training split
    synthetic_test_size: int = 500  # samples of its validation and test splits
    synthetic_max_heading: float = 75.0  # degrees between a synthetic person's heading and the camera; 180: all round
    synthetic_img_size: int = 160  # side of the synthetic pictures, pixels
    synthetic_occlusion: float = 0.0  # share of the synthetic pictures in which a box hides a part of the person
    synthetic_cache: bool | str = False  # keep the pictures on disk: true (<output_dir>/cache) or a folder
    aug_scale: float = 0.25  # augmentation: largest change of the box's size, as a share
    aug_rotation: float = 30.0  # augmentation: standard deviation of the rotation, degrees; at most twice that
    aug_color: float = 0.2  # augmentation: largest change of a colour channel, as a share
    # Network
    resnet_type: int = 50  # depth of the two backbones
    resnet_width: int = 64  # channels of their first stage; the other stages grow with it
    head_width: int = 256  # channels of the up-sampling heads
    input_img_shape: tuple[int, int] = (256, 256)  # height, width of the network input, pixels
    output_hm_shape: tuple[int, int, int] = (64, 64, 64)  # depth, height, width of the heat maps, lixels
    sigma: float = 2.5  # of the Gaussian heat maps, lixels
    pretrained_backbone: bool | str = True  # true: ImageNet weights by torchvision; false: random; or a file
    # Loss
    normal_loss_weight: float = 0.1  # weight of the surface normal loss
    edge_loss_weight: float = 1.0  # weight of the edge length loss
    heatmap_loss_weight: float = 0.0  # weight of a cross-entropy on the lixel heat maps (not in the published recipe)
    joint_xy_weight: float = 1.0  # param stage: weight of x and y against z in the joint losses (published: 1)
    orig_joint_loss: bool = True  # losses on the data set's own joints; false: the visually smooth variant
    # Optimisation
    stage: str = 'lixel'  # lixel: everything but the parameter regressor; param: only the parameter regressor
    lr: float = 1e-4  # learning rate at the start
    lr_dec_factor: float = 10.0  # divides the learning rate at each lr_dec_epoch ('step')
    lr_schedule: str = 'step'  # step: published; cosine: to zero over the stage
    lixel_epochs: int | None = None  # length of the lixel stage; none: 13 for bodies, 25 for hands
    pose_epochs: int = 0  # lixel stage: first epochs that train PoseNet alone, several times faster (published: 0)
    param_epochs: int = 5  # length of the param stage, which follows it
    lr_dec_epoch_override: list[int] | None = None  # written lr_dec_epoch=[...]: takes the place of the derived list
    end_epoch_override: int | None = None  # written end_epoch=N: takes the place of the derived end of the stage
    warmup_iters: int = 0  # iterations over which the learning rate rises linearly
    optimizer: str = 'adam'  # adam, adamw
    weight_decay: float = 0.0  # of the optimiser
    clip_grad: float = 0.0  # largest norm of the gradient; 0: no limit
    grad_accum: int = 1  # batches that make up one step of the optimiser
    train_batch_size: int = 16  # samples per GPU and batch
    test_batch_size: int = 16  # samples per GPU and batch
    freeze_pose: bool = False  # lixel stage: train the mesh half alone, on PoseNet as it is
    freeze_bn: bool = False  # param stage: keep the frozen networks' BatchNorm as it is (published: it moves)
    sync_bn: bool = False  # DistributedDataParallel: BatchNorm over all processes
    # Machine
    gpu_ids: str = ''  # the text of --gpu: 0-3, 0,2 or cpu; empty: GPU 0, or the CPU where there is none
    num_thread: int = field(default_factory=lambda: min(_cores(), 16))  # loader processes; 0: none
    amp: str = 'none'  # mixed precision: none, bf16, fp16
    compile: bool = False  # torch.compile the network
    seed: int = 0  # of the initial weights, the order of the samples and their augmentation
    # Run
    continue_train: bool = False  # resume the highest snapshot
    keep_snapshots: int = 0  # how many of the last snapshots to keep; 0: all
    snapshot_every: int = 1000  # steps between snapshots within an epoch, each in place of the last; 0: none
    log_every: int = 20  # steps between two lines of the training log
    tensorboard: bool = False  # also write TensorBoard events (needs the package tensorboard)
    vis: bool = False  # test: also draw the results into output/vis

    # ---- derived values: true after any override ----
    @property
    def human_model(self) -> str:
        """Name of the body model: `body_model`, or by the data sets when that is 'auto'."""
        if self.body_model != 'auto':
            return self.body_model
        used = {*self.trainset_3d, *self.trainset_2d, self.testset}
        return 'mano' if 'FreiHAND' in used else 'open_body' if 'Synthetic' in used else 'smpl'

    @property
    def is_hand(self) -> bool:
        return self.human_model in ('mano', 'open_hand')

    @property
    def bbox_3d_size(self) -> float:
        """Depth range of the z lixels, metres."""
        return 0.3 if self.is_hand else 2.0

    @property
    def end_epoch(self) -> int:
        """The epoch at which the stage ends; epochs are counted over both stages."""
        if self.end_epoch_override is not None:
            return self.end_epoch_override
        lixel = self.lixel_epochs or (25 if self.is_hand else 13)
        return lixel + (self.param_epochs if self.stage == 'param' else 0)

    @property
    def lr_dec_epoch(self) -> list[int]:
        """Epochs at which the 'step' schedule divides the learning rate; 5 later in the param stage."""
        if self.lr_dec_epoch_override is not None:
            return list(self.lr_dec_epoch_override)
        later = 5 if self.stage == 'param' else 0
        return [epoch + later for epoch in ((17, 21) if self.is_hand else (10, 12))]

    # ---- changing it ----
    def override(self, items):
        """Set values from `['key=value', ...]`, with types checked. UserError: unknown key or wrong value."""
        self.update(read_words(items))

    def load(self, name):
        """Start again from the defaults, then apply a preset (see PRESETS) or a YAML file's values."""
        if not name:
            raise UserError('--cfg is empty: name a preset (body, hand, nano, nano_hand) or a YAML file')
        path = PRESETS / f'{name}.yaml'
        if not path.is_file():
            path = Path(name)
        if not path.exists():
            presets = ', '.join(sorted(p.stem for p in PRESETS.glob('*.yaml')))
            raise UserError(f'--cfg {name}: neither a preset ({presets}) nor an existing YAML file')
        changes = read_settings(path)
        for key, value in dataclasses.asdict(Config()).items():
            setattr(self, key, value)
        self.update(changes, source=f'{path}: ')

    def update(self, changes, source=''):
        """Apply {field: value}; nothing changes when one of them is wrong (UserError)."""
        names = {f.name for f in dataclasses.fields(self)} - set(SETTABLE.values()) | set(SETTABLE)
        for key in changes:
            if key not in names and key not in SETTABLE.values():
                near = difflib.get_close_matches(str(key), sorted(names), n=3, cutoff=0.5)
                hint = f'did you mean {", ".join(near)}?' if near else 'main/config.py lists all there are'
                raise UserError(f'{source}unknown option "{shown(key)}": {hint}')
        changes = {SETTABLE.get(key, key): value for key, value in changes.items()}
        told = {kept: name for name, kept in SETTABLE.items()}
        merged, kinds = OmegaConf.structured(self), {f.name: f.type for f in dataclasses.fields(self)}
        for key, value in changes.items():
            try:
                OmegaConf.update(merged, key, value, merge=False)
            except (OmegaConfBaseException, ValueError, TypeError, OverflowError) as error:
                raise UserError(f'{source}{told.get(key, key)}={"" if value is None else shown(value)}: must be '
                                f'{in_words(kinds[key])}') from error
        values = OmegaConf.to_container(merged)
        for f in dataclasses.fields(self):
            if isinstance(f.default, tuple):
                values[f.name] = tuple(values[f.name])
        check_values({told.get(key, key): value for key, value in values.items()}, source)
        for key in PATHS:
            if isinstance(values[key], str):
                values[key] = str(ROOT / values[key])
        for key, value in values.items():
            setattr(self, key, value)

    def set_args(self, gpu_ids=None, stage='lixel', continue_train=False):
        """What the command line says: GPUs ('0-3', '0,2', 'cpu'; None: GPU 0 or the CPU), stage, resume or not.

        Chooses the GPUs, so call it before anything uses CUDA. UserError: bad text or a GPU that is not there.
        """
        self.update({'gpu_ids': gpu_ids or '', 'stage': stage, 'continue_train': continue_train})
        select_gpus(gpu_ids)

    def check(self):
        """Settings that exclude each other. UserError. Called when a training or a test begins."""
        if self.testset == 'FreiHAND' and (set(self.trainset_3d) != {'FreiHAND'} or self.trainset_2d):
            raise UserError('testset=FreiHAND needs trainset_3d=[FreiHAND] trainset_2d=[]: hands and bodies do not '
                            'share a network (--cfg hand sets all three)')
        check_heat_maps(self.input_img_shape, self.output_hm_shape)

    def resolved(self) -> dict:
        """All settings and derived values as plain types, for the log and the snapshots."""
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}
        for key in PATHS:
            if isinstance(values[key], str) and Path(values[key]).is_relative_to(ROOT):
                values[key] = str(Path(values[key]).relative_to(ROOT))
        for key, kept in SETTABLE.items():
            values.pop(kept)
            values[key] = getattr(self, key)
        return {**values, 'human_model': self.human_model, 'bbox_3d_size': self.bbox_3d_size}


cfg = Config()
