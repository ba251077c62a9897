"""MeshDataset: everything that the data sets have in common. A loader only parses."""
import functools
import logging
import traceback
from pathlib import Path

import numpy as np
from torch.utils.data import Dataset

from common.errors import UserError, one_line
from common.files.images import check_size, read_image
from common.human_model import get_human_model
from common.utils.preprocessing import AugParams, crop_image
from data import files
from data.boxes import Boxes
from data.checks.load_check import MISSING, LoadCheck
from data.codec import LixelCodec
from data.dataset import PackedList, sample_rng
from data.evaluation.mesh_evaluation import MeshEvaluation
from data.joint_set import COCO, HUMAN36M, add_pelvis
from data.target import FitCheck, TargetRules, build_targets, place_fit

log = logging.getLogger(__name__)
HANDS = ('mano', 'open_hand')
MAX_REPLACED = 20  # different unusable samples that one process replaces in a training before it stops


class MeshDataset(MeshEvaluation, Dataset):
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

    It may override `load_image(sample)`, to make images instead of reading them, and `make_samples()`, to hand out
    samples from a lazy sequence instead of a packed list. load() has `self.folder`, `self.boxes` (data/boxes.py),
    data/files.py and data/records.py at hand, and may set `self.protocol`, a text for the test report.

    `data[i]` is (inputs, targets, meta_info), dictionaries of float32 arrays: in training `img` (3, height, width) in
    0..1 and what `build_targets` lists; else `img`, the target `fit_mesh_coord_cam` (V, 3) metres in camera space
    if mesh_target_at_test, and `bb2img_trans` (2, 3).
    """
    joint_set = None
    has_3d = True
    allow_flip = True
    fit_models = ('smpl',)
    fit_check = None
    zero_large_betas = True
    mesh_target_at_test = False
    splits = ('train', 'validation', 'test')
    suspect = 'the annotation file'
    rootnet = None

    def __init__(self, split, cfg):
        self.name, self.split, self.cfg = type(self).__name__, split, cfg
        if split not in self.splits:
            raise UserError(f'{self.name} has no split "{split}": it has {", ".join(self.splits)}')
        self.training = split == 'train'
        self.aug_strength = cfg.aug_scale, cfg.aug_rotation, cfg.aug_color
        self.epoch = self.excluded = 0
        self.replaced = set()  # indices of unusable samples
        self.protocol, self.folder = f'{self.name} {split}', Path(cfg.data_dir) / self.name
        self.human_model = get_human_model(cfg.human_model, cfg.human_model_dir)
        if self.human_model.is_hand not in {model in HANDS for model in self.fit_models}:
            raise UserError(f'{self.name} shows {"bodies" if self.human_model.is_hand else "hands"}, which the body '
                            f'model {self.human_model.name} is not made for')
        self.codec = LixelCodec(cfg.input_img_shape, cfg.output_hm_shape, cfg.bbox_3d_size)
        self.check = LoadCheck(self.name, self.suspect, self.rules if self.training else None,
                               cfg.missing_image if type(self).load_image is MeshDataset.load_image else None,
                               self.joint_set, cfg.bbox_3d_size, cfg.max_missing_images,
                               self.mesh_target_at_test and not self.training)
        self.boxes = Boxes(self)
        self.samples = self.make_samples()
        self.boxes.check_source()
        if not len(self.samples):
            raise UserError(f'{self.name} {split}: no sample can be used; suspect {self.suspect} in {self.folder}')
        if not self.training and self.has_truth:
            _ = self.eval_joints  # a missing regressor file is noticed now

    # ---- what a loader defines ----
    def load(self):
        """Yield the Samples of self.split."""
        raise NotImplementedError

    def load_image(self, sample):
        """The image of a Sample: (H, W, 3) uint8 RGB. Raises OSError or ValueError if there is none."""
        return read_image(sample.img_path, sample.img_shape)

    def make_samples(self):
        """The sequence of all Samples."""
        return PackedList(self._without_excluded(self.check.filter(self._parsed())))

    # ---- samples ----
    def __len__(self):
        return len(self.samples)

    def set_epoch(self, epoch):
        """Choose the random numbers of an epoch."""
        self.epoch = epoch

    def __getitem__(self, index):
        """Sample `index`, in training with an augmentation that is a function of (cfg.seed, epoch, index)."""
        return self.get(index, sample_rng(self.cfg.seed, self.epoch, index))

    def get(self, index, rng):
        """Sample `index`, augmented at random in training. There, one that cannot be used is replaced by another.

        UserError: a sample of a test cannot be used, or too many of a training.
        """
        while True:
            try:
                aug = AugParams.random(rng, self.allow_flip, self.aug_strength) if self.training else None
                return self.get_item(index, aug)
            except (OSError, ValueError) as error:
                self._count_unusable(index, error)
                index = int(rng.integers(len(self)))

    def get_item(self, index, aug):
        """Sample `index` with the given AugParams, None for none: (inputs, targets, meta_info).

        Raises OSError or ValueError, naming the sample, if its image or its targets cannot be used.
        """
        sample, aug = self.samples[index], aug or AugParams()
        if aug.flip and not self.allow_flip:
            aug = AugParams(aug.scale, aug.rot, aug.color)
        image = self.load_image(sample)
        check_size(image, sample.img_shape, sample.img_path)
        img, img2bb_trans, bb2img_trans = crop_image(image, sample.bbox, aug, self.cfg.input_img_shape)
        if self.training:
            targets, meta_info = build_targets(sample, aug, img2bb_trans, self.rules)
            if sample.fit is not None and not targets['fit_mesh_img'].any():
                self.check.masked_later(index, f'{sample.img_path}, id {sample.ann_id}')
        else:
            targets, meta_info = {}, {'bb2img_trans': bb2img_trans}
            if self.mesh_target_at_test:
                targets['fit_mesh_coord_cam'] = place_fit(sample, self.body, aug.flip).vertices
        if not all(np.isfinite(value).all() for value in targets.values()):
            raise ValueError(f'{self.name}: the targets of {sample.img_path}, id {sample.ann_id} are not finite')
        return {'img': img}, targets, meta_info

    def _count_unusable(self, index, error):
        known = index in self.replaced  # from an earlier epoch
        self.replaced.add(index)
        count, absent = len(self.replaced), self.check.counts[MISSING]
        # the images that were reported as missing at the start, and allowed, are no reason to stop
        allowed = MAX_REPLACED + absent
        if not self.training or self.cfg.missing_image == 'error' or count > allowed or count == len(self):
            raise UserError(f'{self.name}: {count} samples could not be used, the last of them: {error}') from error
        if not known:
            log.warning('%s: sample %d cannot be used and is replaced: %s', self.name, index, error)

    def _parsed(self):
        """What load() yields. UserError, with the place, for a record that is not laid out as load() expects."""
        last, foreign_fits = None, self.training and self.human_model.name not in self.fit_models
        if foreign_fits:
            log.warning('%s: its fits are of %s and are not used to train %s', self.name, ' or '.join(self.fit_models),
                        self.human_model.name)
        try:
            for sample in self.load():
                if foreign_fits:
                    sample.fit = None
                yield sample
                last = sample.ann_id
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            raise UserError(f'{self.name}: the record after id {last} is not laid out as expected: '
                            f'{type(error).__name__} {one_line(error)} ({Path(place.filename).name}, line '
                            f'{place.lineno}); python tool/check_assets.py {self.name} names the file and the record '
                            f'in {self.folder}') from error

    def _without_excluded(self, samples):
        """Samples of a test without the images named in cfg.exclude. UserError for a name that fits none."""
        names = set() if self.training else {str(name) for name in self.cfg.exclude}
        found, endings = set(), tuple(f'/{name}' for name in names)
        for sample in samples:
            if endings and f'/{sample.img_path}'.endswith(endings):
                found |= {name for name in names if f'/{sample.img_path}'.endswith(f'/{name}')}
                self.excluded += 1
            else:
                yield sample
        if names - found:
            raise UserError(f'exclude: {self.name} {self.split} has no image {sorted(names - found)[0]}')

    # ---- body model ----
    def body(self, gender='neutral'):
        """The HumanModel that fits of this gender are parameters of."""
        name = self.human_model.name
        if not self.training and name not in self.fit_models:
            name = self.fit_models[0]  # targets of a test, whatever body the network predicts
        if (name, gender) == (self.human_model.name, 'neutral'):
            return self.human_model
        return _body(name, self.cfg.human_model_dir, gender)

    def regressor(self, name, body=None):
        """(17, V) joint regressor 'h36m' or 'coco' of the body model. UserError: file missing."""
        body = body or self.human_model
        if name in body.regressors:
            return body.regressor(name)
        return files.read_regressor(self.cfg.data_dir, name, body.vertex_num)

    @functools.cached_property
    def rules(self):
        """TargetRules of the training targets."""
        check = None
        if self.fit_check == '3d':
            check = FitCheck(self.regressor('h36m'), HUMAN36M, '3d', self.cfg.fit_limit_mm / 1000)
        elif self.fit_check == '2d':
            check = FitCheck(add_pelvis(self.regressor('coco')), COCO, '2d', self.cfg.fit_limit_lixel,
                             published_pelvis=self.cfg.coco_fit_check == 'published')
        return TargetRules(self.body, self.codec, self.joint_set, self.has_3d, self.zero_large_betas, check)


@functools.lru_cache(maxsize=4)
def _body(name, model_dir, gender):
    return get_human_model(name, model_dir, gender)
