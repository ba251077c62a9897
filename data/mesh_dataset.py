"""MeshDataset: everything that the data sets have in common. A loader only parses."""
import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from common.errors import UserError
from common.files.images import check_size, read_image
from common.human_model import get_human_model
from common.utils.preprocessing import AugParams, color_scale, crop_image
from data.boxes import Boxes, BoxRules, rootnet_place
from data.checks.load_check import LoadCheck
from data.checks.parsing import Exclusion
from data.checks.replaced import Replaced
from data.checks.tally import MISSING
from data.codec import LixelCodec
from data.dataset import Item, sample_rng, with_float_image
from data.evaluation import report
from data.evaluation.evaluator import Errors, EvalBatch, Evaluator, JointTruth, MeshTruth
from data.evaluation.mesh_errors import EvalJoints
from data.fit_bodies import FitBodies, require_kind
from data.joint_set import JointSet
from data.opening import open_samples
from data.placed_fit import place_fit
from data.sample import Sample
from data.settings import Settings
from data.target import TargetRules, build_targets

log = logging.getLogger(__name__)


class MeshDataset(Dataset):
    """Base class of the data sets. `data/<Name>/<Name>.py` defines `class <Name>(MeshDataset)` with one method,

    load()        yields one `Sample` (data/sample.py) per person or hand of `self.split`, in pixels and metres,

    and says where it differs, as class attributes:

    joint_set     JointSet of the samples' joints; None: the set annotates no joints
    has_3d        False: the joints are 2-D only (the set then belongs into trainset_2d)
    allow_flip    False: never mirror (right hands only)
    fit_models    names of the body models that the fits are parameters of
    fit_check     None, or how fits are compared with the joints: '3d' (Human3.6M joints), '2d' (COCO joints)
    zero_large_betas   shapes with a coefficient beyond 3 become a zero target
    mesh_target_at_test   test items carry the fitted mesh, and the evaluation compares with it
    splits        the splits it has, out of 'train', 'validation', 'test'
    suspect       the file to name when many samples make no sense
    rootnet       None, or (file under the data set's folder, key, metres per unit) of test boxes and root depths
    kept          attributes that load() sets: plain values, kept with the samples (data/index.py)
    images_are_files   False: `img_path` is not a file, since `load_image` makes the image

    It may override `load_image`, to make images instead of reading them, `make_samples`, to hand out a lazy sequence
    instead of packed samples, `compare` and `print_eval_result`, to write files for instance. load() has `self.folder`,
    `self.boxes`, data/files.py and data/records.py at hand, and may set `self.protocol`, a text for the report.

    `data[i]` is (inputs, targets, meta_info), dictionaries of float32 arrays: in training `img` (3, height, width) in
    0..1 and what `build_targets` lists; else `img`, the target `fit_mesh_coord_cam` (V, 3) metres in camera space
    if mesh_target_at_test, and `bb2img_trans` (2, 3).
    """
    joint_set: JointSet | None = None
    has_3d: bool = True
    allow_flip: bool = True
    fit_models: tuple[str, ...] = ('smpl',)
    fit_check: str | None = None
    zero_large_betas: bool = True
    mesh_target_at_test: bool = False
    splits: tuple[str, ...] = ('train', 'validation', 'test')
    suspect: str = 'the annotation file'
    rootnet: tuple[str, str, float] | None = None
    images_are_files: bool = True
    kept: tuple[str, ...] = ('protocol',)

    def __init__(self, split: str, cfg: Settings) -> None:
        self.name = type(self).__name__
        self.split = split
        self.cfg = cfg
        if split not in self.splits:
            raise UserError(f'{self.name} has no split "{split}": it has {", ".join(self.splits)}')
        self.training = split == 'train'
        self.epoch = 0
        self.replaced = Replaced(self.name, self.training and cfg.missing_image != 'error')
        self.protocol = f'{self.name} {split}'
        self.folder = Path(cfg.data_dir) / self.name
        self.human_model = get_human_model(cfg.human_model, cfg.human_model_dir)
        require_kind(self.human_model, self.fit_models, self.name)
        self.body = FitBodies(self.human_model, self.fit_models, self.training, cfg)
        self.codec = LixelCodec(cfg.input_img_shape, cfg.output_hm_shape, cfg.bbox_3d_size)
        self.check = LoadCheck(
            self.name, self.suspect, self.rules if self.training else None,
            cfg.missing_image if self.images_are_files else None, self.joint_set, cfg.bbox_3d_size,
            cfg.max_missing_images, self.mesh_target_at_test and not self.training)
        place = rootnet_place(self.rootnet, self.folder, split, cfg.rootnet_box_format)
        rules = BoxRules(self.training, cfg.input_img_shape, cfg.bbox_3d_size, place, cfg.use_gt_info,
                         self.mesh_target_at_test)
        self.boxes = Boxes(self.name, rules, self.check)
        self.exclusion = Exclusion(() if self.training else cfg.exclude, f'{self.name} {split}')
        self.samples = self.make_samples()
        if not len(self.samples):
            raise UserError(f'{self.name} {split}: no sample can be used; suspect {self.suspect} in {self.folder}')
        if not self.training:
            _ = self.evaluator  # a missing regressor file is noticed now

    @functools.cached_property
    def rules(self) -> TargetRules:
        """How training targets are made."""
        check = self.body.fit_check(self.fit_check)
        return TargetRules(self.body, self.codec, self.joint_set, self.has_3d, self.zero_large_betas, check)

    # ---- what a loader defines ----
    def load(self) -> Iterator[Sample]:
        """Yield the Samples of self.split."""
        raise NotImplementedError

    def load_image(self, sample: Sample) -> np.ndarray:
        """The image of a Sample: (H, W, 3) uint8 RGB. Raises OSError or ValueError if there is none."""
        return read_image(sample.img_path, sample.img_shape)

    def make_samples(self) -> Any:
        """The sequence of all Samples."""
        return open_samples(self)

    # ---- samples ----
    def __len__(self) -> int:
        return len(self.samples)

    def set_epoch(self, epoch: int) -> None:
        """Choose the random numbers of an epoch."""
        self.epoch = epoch

    def __getitem__(self, index: int) -> Item:
        """Sample `index`, in training with an augmentation that is a function of (cfg.seed, epoch, index)."""
        return self.get(index, sample_rng(self.cfg.seed, self.epoch, index))

    def get(self, index: int, rng: np.random.Generator) -> Item:
        """Sample `index`, augmented at random in training. There, one that cannot be used is replaced by another.

        Raises:
            UserError: A sample of a test cannot be used, or too many of a training.
        """
        return with_float_image(self.compact(index, rng))

    def compact(self, index: int, rng: np.random.Generator | None = None) -> Item:
        """`get` (without an rng `self[index]`) in the form that is sent to the device, which makes the float image.

        The inputs are `img` (height, width, 3) uint8 and `color_scale` (3,): see `float_image`.
        """
        rng = rng or sample_rng(self.cfg.seed, self.epoch, index)
        strength = (self.cfg.aug_scale, self.cfg.aug_rotation, self.cfg.aug_color)
        while True:
            aug = None
            if self.training:
                aug = AugParams.random(rng, self.allow_flip, strength)
            try:
                return self.compact_item(index, aug)
            except (OSError, ValueError) as error:
                self.replaced.note(index, error, self.check.counts[MISSING], len(self))
                index = int(rng.integers(len(self)))

    def get_item(self, index: int, aug: AugParams | None) -> Item:
        """Sample `index` with the given AugParams, None for none: (inputs, targets, meta_info).

        Raises:
            OSError, ValueError: Its image or its targets cannot be used; the message names the sample.
        """
        return with_float_image(self.compact_item(index, aug))

    def compact_item(self, index: int, aug: AugParams | None) -> Item:
        """The item of `get_item` as it is sent to the device: see `compact`."""
        sample = self.samples[index]
        aug = aug or AugParams()
        if aug.flip and not self.allow_flip:
            aug = AugParams(aug.scale, aug.rot, aug.color)
        image = self.load_image(sample)
        check_size(image, sample.img_shape, sample.img_path)
        patch, img2bb_trans, bb2img_trans = crop_image(image, sample.bbox, aug, self.cfg.input_img_shape)
        if self.training:
            targets, meta_info = build_targets(sample, aug, img2bb_trans, self.rules)
            if sample.fit is not None and not targets['fit_mesh_img'].any():
                self.check.masked_later(index, f'{sample.img_path}, id {sample.ann_id}')
        else:
            targets = {}
            meta_info = {'bb2img_trans': bb2img_trans}
            if self.mesh_target_at_test:
                targets['fit_mesh_coord_cam'] = place_fit(sample, self.body, aug.flip).vertices
        if not all(np.isfinite(value).all() for value in targets.values()):
            raise ValueError(f'{self.name}: the targets of {sample.img_path}, id {sample.ann_id} are not finite')
        return {'img': patch, 'color_scale': color_scale(aug)}, targets, meta_info

    @functools.cached_property
    def eval_joints(self) -> EvalJoints:
        """The joints that are compared."""
        annotated = self.joint_set
        if self.mesh_target_at_test:
            annotated = None
        return self.body.eval_joints(self.human_model, annotated)

    @functools.cached_property
    def evaluator(self) -> Evaluator:
        """Compares predictions with what the set is annotated with. UserError: a regressor file is missing."""
        if self.mesh_target_at_test:
            truth = MeshTruth(self.body.eval_joints(self.body()), same_topology=not self.body.is_foreign)
            return Evaluator(self.name, self.codec, self.eval_joints, truth)
        if self.joint_set is not None and self.has_3d:
            return Evaluator(self.name, self.codec, self.eval_joints, JointTruth(self.joint_set))
        return Evaluator(self.name, self.codec, None, None)

    def evaluate(self, outs: Mapping[str, np.ndarray], start: int) -> Errors:
        """Errors of a batch of predictions for the samples start, start + 1, ...: {metric: (B, ...)}, millimetres.

        The names of the metrics end in _lixel or _param; there are none where there is nothing to compare with.

        Args:
            outs: mesh_coord_img (B, V, 3), img space, and bb2img_trans (B, 2, 3); in the param stage mesh_coord_cam
                (B, V, 3), root-relative metres; with mesh_target_at_test mesh_coord_cam_target (B, V, 3), metres.
            start: Index of the first sample.
        Raises:
            UserError: A prediction is not finite.
        """
        batch = self.evaluator.batch(outs, self.eval_samples(start, len(outs['mesh_coord_img'])))
        if self.cfg.vis:
            folder = Path(self.cfg.output_dir) / 'vis'
            report.draw_batch(folder, self.name, batch, self.load_image, self.human_model.face)
        return self.compare(batch)

    def eval_samples(self, start: int, count: int) -> Sequence[Sample]:
        """The Samples of a test batch."""
        return [self.samples[index] for index in range(start, start + count)]

    def compare(self, batch: EvalBatch) -> Errors:
        """The metrics of `evaluate`."""
        return self.evaluator.errors(batch)

    def print_eval_result(self, results: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Log what all batches gave, joined: {metric: (N, ...)}.

        Returns:
            The summary: what was tested how, `metrics` (means over the samples) and `per_joint_mm`.
        """
        description: dict[str, Any] = {'testset': self.name, 'protocol': self.protocol, 'samples': len(self),
                       'excluded': self.exclusion.count, 'root_depth': self.boxes.depth_source}
        if self.check.skip_reasons:
            description['skipped'] = self.check.skipped()
        summary = report.summarise(results, description, self.eval_joints if results else None)
        log.info('%s', report.as_text(summary))
        return summary
