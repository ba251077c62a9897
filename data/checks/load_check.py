"""Checks while a data set is loaded: what makes no sense is masked or skipped, counted, and reported once."""
import logging
import os
from collections import Counter
from dataclasses import replace

import numpy as np

from common.errors import UserError
from common.utils.preprocessing import crop_affine, looks_like_corners
from data.checks.limits import LARGEST_DEPTH, camera_fault, fit_fault
from data.checks.units import odd_unit, wrong_shape
from data.sample import Sample
from data.target import PlacedFit, fit_error, is_plausible, place_fit

log = logging.getLogger(__name__)
CHECKED = 1000     # samples whose meshes are looked at
MAX_SHARE = 0.05   # of them that may be bad
MAX_BAD = 2        # bad samples that a set of any size may have
MISSING = 'image missing'


class LoadCheck:
    """Looks at the samples of one data set on their way into the list.

    name: of the data set. suspect: the file to name when too many are bad. rules: TargetRules, or None where fits are
    not used. missing_image: 'error' or 'skip'; None: the images are no files. joint_set: of the samples' joints.
    bbox_3d_size: metres, size of what is looked for; None: unknown, and so are wrong units. max_missing: share of the
    samples whose images may be missing. needs_fit: the fit is what a test compares with.
    """

    def __init__(self, name, suspect, rules, missing_image, joint_set=None, bbox_3d_size=None, max_missing=1.,
                 needs_fit=False):
        self.name, self.suspect, self.rules, self.missing_image = name, suspect, rules, missing_image
        self.joint_set, self.bbox_3d_size = joint_set, bbox_3d_size
        self.max_missing, self.needs_fit = max_missing, needs_fit
        self.counts, self.first = Counter(), {}
        self.seen, self.bad, self.fits, self.rejected = 0, 0, 0, 0
        self.left: Counter[str] = Counter()  # rule of the 2-D fit check -> fits that it leaves
        self.listed = {}  # folder -> names of the files in it
        self.late = set()  # indices of samples whose meshes turned out implausible in the training

    def masked_later(self, index, where):
        """Count a mesh of impossible size or place that was not among the first CHECKED; tells of 1, 10, 100, ..."""
        known = len(self.late)
        self.late.add(index)
        if len(self.late) > known and len(self.late) in (1, 10, 100, 1000, 10000, 100000):
            log.warning('%s: %d of the meshes read so far by this process %s of impossible size or place, masked '
                        '(the last: %s); suspect %s', self.name, len(self.late), 'is' if known == 0 else 'are', where,
                        self.suspect)

    def skip(self, why, where, suspicious=False):
        """Count something that is left out. suspicious: so many of these stop the run."""
        self.counts[why] += 1
        self.first.setdefault(why, where)
        if suspicious and self.seen < CHECKED:
            self.seen += 1
            self.bad += 1

    def filter(self, samples):
        """The samples that can be used, their bad parts masked; a report at the end.

        UserError: too many are bad, or one has an array of another shape than data/sample.py says.
        """
        total = 0
        for sample in samples:
            total += 1
            odd = wrong_shape(sample, self.joint_set)
            if odd:
                raise UserError(f'{self.name}: {odd} ({sample.img_path}, id {sample.ann_id}); suspect {self.suspect}, '
                                f'and see python tool/check_assets.py {self.name}')
            problem = self._problem(sample) or self._mask_joints(sample) or self._mask_fit(sample) or (
                self.bbox_3d_size and odd_unit(sample, self.bbox_3d_size))
            if problem:
                self.skip(problem, f'{sample.img_path}, id {sample.ann_id}', suspicious=True)
            elif self.seen < CHECKED:
                self.seen += 1
            if self.seen == CHECKED:
                self._stop_if_too_many()
            if not (problem and problem.endswith('skipped')):
                yield sample
        self.listed = {}
        self._stop_if_too_many()
        self._stop_if_images_are_missing(total)
        self._report()

    def _problem(self, sample):
        """Why a sample cannot be used at all, or None."""
        height, width = sample.img_shape
        x, y, w, h = sample.bbox
        if not (np.isfinite(sample.bbox).all() and w > 0 and h > 0 and -w < x < width and -h < y < height):
            return 'box off the image, sample skipped'
        if looks_like_corners(sample.bbox, width, height):
            self.skip('centre of the box off the image: are the boxes two corners, not x, y, width, height?',
                      sample.img_path)
        if self.rules is None and sample.camera is None:
            return 'no camera to test with, sample skipped'
        fault = sample.camera and camera_fault(sample.camera, sample.img_shape)
        if fault:
            return f'{fault}, sample skipped'
        if sample.root_depth is not None and not 0 < sample.root_depth <= LARGEST_DEPTH:
            return 'root depth not above 0, sample skipped'
        if self.needs_fit and sample.fit is not None:
            fault = self._fit_fault(sample)
            if fault:
                return f'{fault}, sample skipped'
        if self.missing_image and not self._exists(sample.img_path):
            if self.missing_image == 'error':
                raise UserError(f'{self.name}: the image {sample.img_path} is missing (missing_image=skip: train '
                                f'without it)')
            self.skip(MISSING, sample.img_path)
        return None

    def _exists(self, path):
        """Whether a file is there. Each folder is listed once: to ask for every file would take minutes."""
        folder, name = os.path.split(path)
        if folder not in self.listed:
            self.listed[folder] = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        # the second look is for file systems to which names are the same that differ in case or accents
        return name in self.listed[folder] or (bool(self.listed[folder]) and os.path.exists(path))

    def _mask_joints(self, sample):
        """Take out joints that cannot be; returns what was wrong, or None."""
        present = [a for a in (sample.joint_img, sample.joint_cam) if a is not None]
        if not present:
            return None
        finite = np.all([(np.abs(a) <= LARGEST_DEPTH).all(1) for a in present], axis=0)
        valid = finite if sample.joint_valid is None else finite & (np.ravel(sample.joint_valid) > 0)
        if sample.joint_cam is not None and (sample.joint_cam[valid, 2] <= 0).any():
            sample.joint_img = sample.joint_cam = sample.joint_valid = None
            return 'joints behind the camera, masked'
        root_known = sample.joint_cam is None or self.joint_set is None or valid[self.joint_set.root_idx]
        if not finite.all():
            sample.joint_valid = np.float32(valid)[:, None]
            for joints in present:
                joints[~finite] = 0
        if not root_known:  # depths are relative to it
            sample.joint_cam = None
        return None if finite.all() else 'joints not finite, masked'

    def _mask_fit(self, sample):
        """Take out a fit that cannot be; returns what was wrong, or None."""
        fit, rules = sample.fit, self.rules
        if fit is None:
            return None
        fault = self._fit_fault(sample)
        if fault:
            sample.fit = None
            return f'{fault}, masked'
        if (sample.fit_camera or sample.camera) is None:
            sample.fit = None
            return 'fit without a camera, masked'
        if rules is None or self.seen >= CHECKED:
            return None
        placed = place_fit(sample, rules.body)
        if not is_plausible(placed.vertices, placed.camera, sample.img_shape, rules.codec.bbox_3d_size):
            sample.fit = None
            return 'mesh of impossible size or place, masked'
        self.fits += 1
        if rules.fit_check:
            self._count_fit(placed, sample)
        return None

    def _fit_fault(self, sample: Sample) -> str | None:
        """What is impossible about the fit of a sample, or about its own camera, or None."""
        fault = fit_fault(sample.fit, self.bbox_3d_size)
        if fault is None and sample.fit_camera is not None:
            fault = camera_fault(sample.fit_camera, sample.img_shape)
        return fault

    def _count_fit(self, placed: PlacedFit, sample: Sample) -> None:
        """Count a fit that the check of the rules rejects; the 2-D check also by each of its two rules."""
        rules = self.rules
        check = rules.fit_check
        img2bb_trans = crop_affine(sample.bbox, 1, 0, rules.codec.input_img_shape)
        self.rejected += fit_error(placed, sample, False, img2bb_trans, rules) > check.limit
        if check.kind == '2d':
            for name, published_pelvis in (('published', True), ('exact', False)):
                variant = replace(check, published_pelvis=published_pelvis)
                self.left[name] += fit_error(placed, sample, False, img2bb_trans, rules, variant) <= check.limit

    def _stop_if_images_are_missing(self, total: int) -> None:
        missing = self.counts[MISSING]
        if missing > self.max_missing * total:
            raise UserError(f'{self.name}: {missing} of {total} samples have no image, the first: '
                            f'{self.first[MISSING]}. At most {self.max_missing:.0%} may be missing; '
                            f'max_missing_images={missing / total:.2g} or more goes on without them')

    def _stop_if_too_many(self):
        if self.bad > max(MAX_BAD, MAX_SHARE * self.seen):
            raise UserError(f'{self.name}: {self.bad} of the first {self.seen} samples make no sense '
                            f'({self._counted()}); suspect {self.suspect}')

    def _report(self):
        if self.counts:
            log.warning('%s: %s', self.name, self._counted())
        if self.rejected:
            log.warning('%s: %d of the first %d fits are too far from the annotated joints to be used', self.name,
                        self.rejected, self.fits)
        if self.left:
            log.warning('%s: of the first %d fits, coco_fit_check=published leaves %d, coco_fit_check=exact %d',
                        self.name, self.fits, self.left['published'], self.left['exact'])

    def skipped(self) -> str:
        """How many samples were skipped, and why; an empty text for none."""
        return self._counted(', sample skipped')

    def _counted(self, ending: str = '') -> str:
        """How often what was found, and where first. ending: of the reasons to count."""
        return '; '.join(f'{count} x {why} (first: {self.first[why]})' for why, count in self.counts.items()
                         if why.endswith(ending))
