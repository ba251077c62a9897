"""Checks while a data set is loaded: what makes no sense is masked or skipped, counted, and reported once."""
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from common.errors import UserError
from common.files.listing import KnownFiles
from common.utils.preprocessing import crop_affine, looks_like_corners
from data.checks.bulk import unsuspicious
from data.checks.joints import mask_joints
from data.checks.limits import LARGEST_DEPTH, box_fault, camera_fault, fit_fault
from data.checks.tally import CHECKED, MISSING, Tally
from data.checks.truth import ALL, NOTHING, Truth, truth_of
from data.checks.units import odd_unit, wrong_shape
from data.joint_set import JointSet
from data.placed_fit import PlacedFit, is_plausible, place_fits
from data.sample import Fit, Sample
from data.target import TargetRules, fit_error

log = logging.getLogger(__name__)
CHUNK = 256        # samples that are looked at together
MAX_SHARE = 0.05   # of them that may be bad
MAX_BAD = 2        # bad samples that a set of any size may have


class LoadCheck(Tally):
    """Looks at the samples of one data set on their way into the list.

    Args:
        name: Of the data set.
        suspect: The file to name when too many samples are bad.
        rules: Of the training targets, or None where fits are not used.
        missing_image: 'error' or 'skip'; None: the images are not files.
        joint_set: Of the samples' joints.
        bbox_3d_size: Metres, size of a body or hand; None: unknown, and so are wrong units.
        max_missing: Share of the samples whose images may be missing.
        needs_fit: The fit is what a test compares with.
    """

    def __init__(self, name: str, suspect: str, rules: TargetRules | None, missing_image: str | None,
                 joint_set: JointSet | None = None, bbox_3d_size: float | None = None,
                 max_missing: float = 1., needs_fit: bool = False) -> None:
        super().__init__(name)
        self.suspect = suspect
        self.rules = rules
        self.missing_image = missing_image
        self.joint_set = joint_set
        self.bbox_3d_size = bbox_3d_size
        self.max_missing = max_missing
        self.needs_fit = needs_fit
        self.files = KnownFiles()
        self.late: set[int] = set()  # samples whose meshes turned out implausible in the training
        self.truth: Truth | None = None  # what any of them has to learn from; None: not looked at

    def masked_later(self, index: int, where: str) -> None:
        """Count a mesh of impossible size or place beyond the first CHECKED; warns at the 1st, 10th, 100th, ..."""
        if index in self.late:
            return
        self.late.add(index)
        count = len(self.late)
        if count in (1, 10, 100, 1000, 10000, 100000):
            log.warning('%s: masked meshes of impossible size or place, read so far by this process: %d '
                        '(the last: %s); suspect %s', self.name, count, where, self.suspect)

    def filter(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples that can be used, their bad parts masked.

        Raises:
            UserError: Too many are bad, or one has an array of another shape than data/sample.py says.
        """
        samples = iter(samples)
        while chunk := list(itertools.islice(samples, CHUNK)):
            if self.seen < CHECKED:
                good = np.zeros(len(chunk), bool)
                meshes = self._place(chunk)
            else:
                good = unsuspicious(chunk, self.joint_set, self.bbox_3d_size, self.rules is None)
                meshes = {}
            for number, sample in enumerate(chunk):
                self.total += 1
                if good[number]:
                    self._look_for_image(sample)
                    self._note_truth(sample)
                if good[number] or self._take(sample, meshes.get(number)):
                    yield sample
        self.files = KnownFiles()  # the lists may be long
        self._stop_if_too_many()
        self._stop_if_images_are_missing()

    def _place(self, samples: Sequence[Sample]) -> dict[int, PlacedFit]:
        """The meshes of those fits that can be placed, by the numbers of the samples."""
        if self.rules is None:
            return {}
        numbers = []
        for number, sample in enumerate(samples):
            if sample.fit is not None and (sample.fit_camera or sample.camera) is not None:
                if not wrong_shape(sample, self.joint_set) and not self._fit_fault(sample, sample.fit):
                    numbers.append(number)
        placed = place_fits([samples[number] for number in numbers], self.rules.body)
        return dict(zip(numbers, placed, strict=True))

    def _take(self, sample: Sample, mesh: PlacedFit | None) -> bool:
        """Look closely at a sample, mask its bad parts and count them; whether it can be used."""
        where = f'{sample.img_path}, id {sample.ann_id}'
        odd = wrong_shape(sample, self.joint_set)
        if odd:
            raise UserError(f'{self.name}: {odd} ({where}); suspect {self.suspect}, '
                            f'and see python tool/check_assets.py {self.name}')
        reason_to_skip = self._reason_to_skip(sample)
        if reason_to_skip:
            self.skip_sample(reason_to_skip, where, suspicious=True)
        else:
            self._look_for_image(sample)
            self._look_at(sample, where, mesh)
        if self.seen == CHECKED:
            self._stop_if_too_many()
        return not reason_to_skip

    def _look_at(self, sample: Sample, where: str, mesh: PlacedFit | None) -> None:
        """Mask what is wrong in a sample, and note what is left to learn from."""
        rejected = self.rejected
        problem = self._mask(sample, mesh)
        if problem:
            self.skip(problem, where, suspicious=True)
        elif self.seen < CHECKED:
            self.seen += 1
        self._note_truth(sample, is_rejected=self.rejected > rejected)

    def _note_truth(self, sample: Sample, is_rejected: bool = False) -> None:
        """Note what a sample has to learn from. is_rejected: its fit is too far from the annotated joints."""
        if self.rules is None or self.truth == ALL:
            return
        truth = truth_of(sample, self.joint_set, self.rules.body('neutral').joint_set, self.rules.has_3d)
        if is_rejected:
            truth &= ~Truth.FIT
        self.truth = truth | (self.truth or NOTHING)

    def _reason_to_skip(self, sample: Sample) -> str | None:
        """Why a sample cannot be used at all, or None."""
        height, width = sample.img_shape
        fault = box_fault(sample.bbox, sample.img_shape)
        if fault:
            return fault
        if looks_like_corners(sample.bbox, width, height):
            self.skip('centre of the box off the image: are the boxes two corners, not x, y, width, height?',
                      sample.img_path)
        if self.rules is None and sample.camera is None:
            return 'no camera to test with'
        if sample.camera is not None:
            fault = camera_fault(sample.camera, sample.img_shape)
        if fault:
            return fault
        if sample.root_depth is not None and not 0 < sample.root_depth <= LARGEST_DEPTH:
            return 'root depth not above 0'
        if self.needs_fit and sample.fit is not None:
            fault = self._fit_fault(sample, sample.fit)
            if fault:
                return fault
        return None

    def _look_for_image(self, sample: Sample) -> None:
        """Count the sample if its image is missing."""
        if self.missing_image is None or self.files.exists(sample.img_path):
            return
        if self.missing_image == 'error':
            raise UserError(f'{self.name}: the image {sample.img_path} is missing (missing_image=skip: train '
                            f'without it)')
        self.skip(MISSING, sample.img_path)

    def _mask(self, sample: Sample, mesh: PlacedFit | None) -> str | None:
        """Take out the parts that cannot be; returns what is wrong with them, or looks like another unit, or None."""
        problem = mask_joints(sample, self.joint_set) or self._mask_fit(sample, mesh)
        if problem is None and self.bbox_3d_size is not None:
            problem = odd_unit(sample, self.bbox_3d_size)
        return problem

    def _mask_fit(self, sample: Sample, mesh: PlacedFit | None) -> str | None:
        """Take out a fit that cannot be; returns what was wrong, or None."""
        rules = self.rules
        if sample.fit is None:
            return None
        fault = self._fit_fault(sample, sample.fit)
        if fault:
            sample.fit = None
            return f'{fault}, masked'
        if (sample.fit_camera or sample.camera) is None:
            sample.fit = None
            return 'fit without a camera, masked'
        if rules is None or mesh is None or self.seen >= CHECKED:
            return None
        if not is_plausible(mesh.vertices, mesh.camera, sample.img_shape, rules.codec.bbox_3d_size):
            sample.fit = None
            return 'mesh of impossible size or place, masked'
        self.fits += 1
        self._count_fit(mesh, sample, rules)
        return None

    def _fit_fault(self, sample: Sample, fit: Fit) -> str | None:
        """What is impossible about the fit of a sample, or about its own camera, or None."""
        fault = fit_fault(fit, self.bbox_3d_size)
        if fault is None and sample.fit_camera is not None:
            fault = camera_fault(sample.fit_camera, sample.img_shape)
        return fault

    def _count_fit(self, placed: PlacedFit, sample: Sample, rules: TargetRules) -> None:
        """Count a fit that the check of the rules rejects; the 2-D check also by each of its two rules."""
        check = rules.fit_check
        if check is None:
            return
        img2bb_trans = crop_affine(sample.bbox, 1, 0, rules.codec.input_img_shape)
        self.rejected += fit_error(placed, sample, False, img2bb_trans, rules, check) > check.limit
        if check.kind == '2d':
            for name, published_pelvis in (('published', True), ('exact', False)):
                variant = replace(check, published_pelvis=published_pelvis)
                self.left[name] += fit_error(placed, sample, False, img2bb_trans, rules, variant) <= check.limit

    def _stop_if_images_are_missing(self) -> None:
        missing = self.counts[MISSING]
        if missing > self.max_missing * self.total:
            raise UserError(f'{self.name}: {missing} of {self.total} samples have no image, the first: '
                            f'{self.first[MISSING]}. At most {self.max_missing:.0%} may be missing; '
                            f'max_missing_images={missing / self.total:.2g} or more goes on without them')

    def _stop_if_too_many(self) -> None:
        if self.bad > max(MAX_BAD, MAX_SHARE * self.seen):
            raise UserError(f'{self.name}: {self.bad} of the first {self.seen} samples make no sense '
                            f'({self.counted(self.counts)}); suspect {self.suspect}')

    def state(self) -> dict[str, Any]:
        """All counts, as plain values."""
        truth = None
        if self.truth is not None:
            truth = self.truth.value
        return {**super().state(), 'truth': truth}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the counts of an earlier start."""
        super().restore(state)
        self.truth = None
        if state['truth'] is not None:
            self.truth = Truth(state['truth'])
