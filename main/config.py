"""Configuration: the dataclass `Config`, the one global object `cfg`, presets and typed overrides.

    cfg.load('nano')                                        # a preset of main/configs, or the path of a YAML file
    cfg.override(['train_batch_size=8', 'trainset_3d=[Human36M]'])
    cfg.set_args('0-3', 'lixel', continue_train=False)

Only main/* and common/base.py import `cfg`; all other code takes values, or a Config as an argument.
"""
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.devices.cpus import core_count
from common.errors import UserError
from main.config_check import check_heat_maps, fields_by_key, rule_of, setting, typed_values
from main.config_text import preset_path, read_settings, read_words

ROOT = Path(__file__).resolve().parent.parent
CORES = core_count()
MANY = 10 ** 6


@dataclass
class Config:
    """Every setting with its default, the published recipe for bodies."""
    # ---- Data ----
    trainset_3d: list[str] = setting(['Human36M', 'MuCo'], are_datasets=True)  # with 3-D joints
    trainset_2d: list[str] = setting(['MSCOCO'], are_datasets=True)  # with 2-D joints only
    testset: str = setting('PW3D', are_datasets=True)
    # Folders and files: relative ones count from the repository root, never from the current folder.
    data_dir: str = setting(str(ROOT / 'data'), is_path=True)  # one sub-folder per data set
    human_model_dir: str = setting(str(ROOT / 'data' / 'human_models'), is_path=True)  # SMPL, MANO
    output_dir: str = setting(str(ROOT / 'output'), is_path=True)  # log, model_dump, result, vis
    cache_dir: str = setting(str(ROOT / 'output' / 'cache'), is_path=True)  # what starts leave for later ones
    use_index: bool = True  # keep parsed annotations in cache_dir, and map them into memory
    body_model: str = setting('auto', choices=('auto', 'smpl', 'mano', 'open_body', 'open_hand'))  # auto: by the sets
    use_gt_info: bool = False  # test boxes and root depths from the annotations, not RootNet
    rootnet_box_format: str = setting('xywh', choices=('xywh', 'xyxy'))  # xyxy: two corners
    exclude: list[str] = setting([])  # images left out of the test, by the end of the path
    missing_image: str = setting('skip', choices=('skip', 'error'))  # skip: train on another one
    max_missing_images: float = setting(0.05, at_least=0, at_most=1)  # skip: share of a set's images
    # A body fitted farther from the annotated joints than this is not learnt from: 3-D, millimetres; 2-D, lixels.
    fit_limit_mm: float = setting(25.0, above=0)
    fit_limit_lixel: float = setting(3.0, above=0)
    coco_fit_check: str = setting('published', choices=('published', 'exact'))  # the pelvis of 2-D fits
    # Human3.6M. Protocol 1: trains on subjects 1 5 6 7 8 9, tests on 11; 2: on 1 5 6 7 8, and 9 11.
    h36m_protocol: int = setting(2, choices=(1, 2))
    h36m_train_every: int = setting(5, above=0)  # every n-th frame for training
    h36m_test_every: int = setting(64, above=0)  # every n-th frame for testing
    h36m_train_cameras: list[int] = setting([])  # cameras for training; empty: all
    h36m_test_cameras: list[int] = setting([4])  # cameras for testing; empty: all
    pw3d_gender: str = setting('annotated', choices=('annotated', 'neutral'))  # of the target mesh
    # Synthetic
    synthetic_train_size: int = setting(50000, above=0, at_most=10 ** 9)  # training samples
    synthetic_test_size: int = setting(500, above=0, at_most=10 ** 9)  # test samples
    # Degrees between a person's heading and the camera; 180: all round.
    synthetic_max_heading: float = setting(75.0, at_least=0, at_most=180)
    synthetic_img_size: int = setting(160, at_least=32, at_most=4096)  # side of the images, pixels
    synthetic_occlusion: float = setting(0.0, at_least=0, at_most=1)  # share of images with an obstacle
    synthetic_cache: bool | str = setting(False, is_path=True)  # true: <output_dir>/cache; or a folder
    # Augmentation; the rotation is at most twice its standard deviation.
    aug_scale: float = setting(0.25, at_least=0, below=1)  # largest change of the box's size
    aug_rotation: float = setting(30.0, at_least=0)  # standard deviation, degrees
    aug_color: float = setting(0.2, at_least=0, below=1)  # largest change of a colour channel

    # ---- Network ----
    resnet_type: int = setting(50, choices=(18, 34, 50, 101, 152))  # depth of the two backbones
    resnet_width: int = setting(64, above=0, at_most=512)  # channels of their first stage
    head_width: int = setting(256, above=0, at_most=4096)  # channels of the up-sampling heads
    input_img_shape: tuple[int, int] = (256, 256)  # height, width of the network input, pixels
    output_hm_shape: tuple[int, int, int] = (64, 64, 64)  # depth, height, width, lixels
    sigma: float = setting(2.5, above=0)  # of the Gaussian heat maps, lixels
    # True: ImageNet weights by torchvision; false: random; or a file.
    pretrained_backbone: bool | str = setting(True, is_path=True)

    # ---- Loss ----
    normal_loss_weight: float = setting(0.1, at_least=0)  # of the surface normal loss
    edge_loss_weight: float = setting(1.0, at_least=0)  # of the edge length loss
    heatmap_loss_weight: float = setting(0.0, at_least=0)  # of the heat maps' cross-entropy
    joint_xy_weight: float = setting(1.0, at_least=0)  # param stage: of x and y against z
    orig_joint_loss: bool = True  # losses on the annotated joints; false: a smoother mesh

    # ---- Optimisation ----
    stage: str = setting('lixel', choices=('lixel', 'param'))  # param: the parameter regressor alone; lixel: the rest
    lr: float = setting(1e-4, above=0)  # learning rate at the start
    lr_dec_factor: float = setting(10.0, above=0)  # divides it at each lr_dec_epoch ('step')
    lr_schedule: str = setting('step', choices=('step', 'cosine'))  # cosine: to zero over the stage
    lixel_epochs: int | None = setting(None, above=0, at_most=MANY)  # none: 13, hands 25
    pose_epochs: int = setting(0, at_least=0)  # of those, the first ones train PoseNet alone
    param_epochs: int = setting(5, above=0, at_most=MANY)  # of the param stage, which follows
    # These replace the derived lr_dec_epoch and end_epoch below.
    given_lr_dec_epoch: list[int] | None = setting(None, key='lr_dec_epoch')
    given_end_epoch: int | None = setting(None, key='end_epoch', above=0, at_most=MANY)
    warmup_iters: int = setting(0, at_least=0, at_most=10 ** 9)  # of rising learning rate
    optimizer: str = setting('adam', choices=('adam', 'adamw'))
    weight_decay: float = setting(0.0, at_least=0)
    clip_grad: float = setting(0.0, at_least=0)  # largest norm of the gradient; 0: no limit
    grad_accum: int = setting(1, above=0, at_most=MANY)  # batches in one optimiser step
    train_batch_size: int = setting(16, above=0, at_most=MANY)  # samples per GPU and batch
    test_batch_size: int = setting(16, above=0, at_most=MANY)  # samples per GPU and batch
    freeze_pose: bool = False  # lixel stage: train the mesh half alone, on PoseNet as it is
    freeze_bn: bool = False  # param stage: keep the frozen networks' BatchNorm (published: it moves)
    sync_bn: bool = False  # DistributedDataParallel: BatchNorm over all processes

    # ---- Machine ----
    gpu_ids: str = ''  # the text of --gpu; empty: GPU 0, or the CPU where there is none
    num_thread: int = setting(min(CORES, 1024), at_least=0, at_most=1024)  # loader processes; 0: none
    amp: str = setting('none', choices=('none', 'bf16', 'fp16'))  # mixed precision
    compile: bool = False  # torch.compile the network
    memory_format: str = setting('auto', choices=('auto', 'channels_last', 'contiguous'))  # auto: what is faster
    seed: int = setting(0, at_least=0, at_most=2 ** 63 - 1)  # of weights, order and augmentation

    # ---- Run ----
    continue_train: bool = False  # resume the highest snapshot
    keep_snapshots: int = setting(0, at_least=0)  # the last snapshots, and the best; 0: all
    # Steps between snapshots within an epoch, each in place of the last; 0: none.
    snapshot_every: int = setting(1000, at_least=0)
    validate_every: int = setting(0, at_least=0)  # epochs from one validation to the next; 0: none
    log_every: int = setting(20, above=0)  # steps between two lines of the training log
    tensorboard: bool = False  # also write TensorBoard events (needs the package tensorboard)
    vis: bool = False  # test: also draw the results into output/vis

    # ---- Derived values: true after any override ----
    @property
    def human_model(self) -> str:
        """Name of the body model: `body_model`, or by the data sets when that is 'auto'."""
        used = {*self.trainset_3d, *self.trainset_2d, self.testset}
        if self.body_model != 'auto':
            return self.body_model
        if 'FreiHAND' in used:
            return 'mano'
        if 'Synthetic' in used:
            return 'open_body'
        return 'smpl'

    @property
    def is_hand(self) -> bool:
        """Whether the body model is a hand."""
        return self.human_model in ('mano', 'open_hand')

    @property
    def bbox_3d_size(self) -> float:
        """Depth range of the z lixels, metres."""
        return 0.3 if self.is_hand else 2.0

    @property
    def end_epoch(self) -> int:
        """The epoch at which the stage ends; epochs are counted over both stages."""
        if self.given_end_epoch is not None:
            return self.given_end_epoch
        end = self.lixel_epochs or (25 if self.is_hand else 13)
        if self.stage == 'param':
            end += self.param_epochs
        return end

    @property
    def lr_dec_epoch(self) -> list[int]:
        """Epochs at which the 'step' schedule divides the learning rate; 5 later in the param stage."""
        if self.given_lr_dec_epoch is not None:
            return list(self.given_lr_dec_epoch)
        epochs = [17, 21] if self.is_hand else [10, 12]
        if self.stage == 'param':
            epochs = [epoch + 5 for epoch in epochs]
        return epochs

    def stage_end(self, stage_start: int) -> int:
        """`end_epoch`; but a cosine over the param stage has its own length, wherever the lixel stage was left."""
        if self.stage == 'param' and self.lr_schedule == 'cosine' and self.given_end_epoch is None:
            return stage_start + self.param_epochs
        return self.end_epoch

    # ---- Changing it ----
    def override(self, items: list[str]) -> None:
        """Set values from `['key=value', ...]`, with types checked. UserError: unknown key or wrong value."""
        self.update(read_words(items, KINDS))

    def load(self, name: str) -> None:
        """Start again from the defaults, then apply a preset (see PRESETS) or a YAML file's values."""
        path = preset_path(name)
        changes = read_settings(path, KINDS)
        vars(self).update(vars(Config()))
        self.update(changes, source=f'{path}: ')

    def update(self, changes: dict[str, Any], source: str = '') -> None:
        """Apply {key: value}; nothing changes when one of them is wrong.

        Raises:
            UserError: unknown key, wrong type or a value out of range; the message begins with `source`.
        """
        try:
            values = typed_values(Config, changes, ROOT)
        except UserError as error:
            raise UserError(f'{source}{error}') from error
        vars(self).update(values)

    def set_args(self, gpu_ids: str | None = None, stage: str = 'lixel', continue_train: bool = False) -> None:
        """What the command line says: GPUs ('0-3', '0,2', 'cpu'; None: GPU 0 or the CPU), stage, resume or not.

        Chooses the GPUs, so call it before anything uses CUDA. UserError: bad text or a GPU that is not there.
        """
        from common.devices.gpus import select_gpus  # imports PyTorch, which --help does not need
        self.update({'gpu_ids': gpu_ids or '', 'stage': stage, 'continue_train': continue_train})
        select_gpus(gpu_ids)

    def check(self) -> None:
        """Settings that exclude each other. UserError. Called when a training or a test begins."""
        trained_on = {*self.trainset_3d, *self.trainset_2d}
        if self.testset == 'FreiHAND' and trained_on != {'FreiHAND'}:
            raise UserError('testset=FreiHAND needs trainset_3d=[FreiHAND] trainset_2d=[]: hands and bodies '
                            'do not share a network (--cfg hand sets all three)')
        self.check_shapes()

    def check_training(self) -> None:
        """The same for trainings alone, before images are drawn, which may take hours. UserError."""
        size = self.train_batch_size
        if size < 2:
            raise UserError(f'train_batch_size={size}: batch normalisation needs at least two samples per device')
        sets = {*self.trainset_3d, *self.trainset_2d}
        if sets == {'Synthetic'} and size * self.grad_accum > self.synthetic_train_size:
            raise UserError(f'one step takes {size * self.grad_accum} samples: synthetic_train_size must be as large')

    def check_shapes(self, source: str = '') -> None:
        """UserError, beginning with `source`, unless the network makes such heat maps from such images."""
        check_heat_maps(self.input_img_shape, self.output_hm_shape, source)

    def resolved(self) -> dict[str, Any]:
        """All settings and derived values as plain types, for the log and the snapshots."""
        values = {key: getattr(self, key) for key in (*FIELDS, 'human_model', 'bbox_3d_size')}
        for key, value in values.items():
            if isinstance(value, tuple):
                values[key] = list(value)
            elif key in FIELDS and rule_of(FIELDS[key]).is_path and isinstance(value, str):
                if Path(value).is_relative_to(ROOT):
                    values[key] = str(Path(value).relative_to(ROOT))
        return values


FIELDS = fields_by_key(Config)
KINDS = {key: field.type for key, field in FIELDS.items()}


cfg = Config()
