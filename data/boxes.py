"""Boxes of people, and for tests the depths of their roots: from the annotations, or from RootNet's file."""
import functools
import logging
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.utils.preprocessing import looks_like_corners, process_bbox
from common.utils.transforms import depth_from_box
from data.rootnet import LOWEST_OVERLAP, RootNetFile, SourceCheck
from data.sample import Camera

log = logging.getLogger(__name__)
Box = list[float] | np.ndarray  # (4,) x, y, width, height in pixels


class Boxes:
    """Gives a loader the box of each sample, and keeps count of those that cannot be used.

    dataset: MeshDataset, of which the settings, the load check and the class attribute `rootnet` are used.
    """

    def __init__(self, dataset):
        self.dataset, self.cfg, self.check = dataset, dataset.cfg, dataset.check
        self.estimates, self.told = 0, 0  # depths estimated, depths read
        self.source = SourceCheck(self.cfg.input_img_shape)

    @property
    def depth_source(self):
        """Where the root depths come from, a text for the report."""
        told = 'RootNet file' if self.rootnet else 'annotations'
        if not self.estimates:
            return told
        return f'{told}, {self.estimates} estimates from the box' if self.told else 'estimate from the box'

    def get(self, key: int | str, bbox: Box | None, img_shape: tuple[int, int], camera: Camera | None = None,
            true_depth: float | None = None, where: str = '') -> tuple[np.ndarray | None, float | None]:
        """(box, root depth) of a sample: in training `annotated` and None, else `for_test`."""
        if self.dataset.training:
            return self.annotated(bbox, img_shape, where), None
        return self.for_test(key, bbox, img_shape, camera, true_depth, where)

    def annotated(self, bbox: Box | None, img_shape: tuple[int, int], where: str) -> np.ndarray | None:
        """Processed box (4,) float32 of an annotated one (4,) xywh; None, counted, if it is empty or off the image.

        img_shape: (height, width). where: names the record in messages. UserError: `bbox` is None.
        """
        if bbox is None:
            remedy = 'download the file again'
            if self.dataset.rootnet and not self.dataset.training:
                remedy = f'a test takes the boxes of {self.rootnet_path()} then; where to get it: ' \
                    f'python tool/check_assets.py {self.dataset.name}'
            raise UserError(f'{where} has no bbox: {remedy}')
        height, width = img_shape
        box = process_bbox(bbox, width, height, self.cfg.input_img_shape)
        if box is None:
            empty = np.isfinite(bbox).all() and bbox[2] * bbox[3] <= 0
            self.check.skip('empty box, sample skipped' if empty else 'box off the image, sample skipped', where,
                            suspicious=not empty)
        elif looks_like_corners(bbox, width, height):
            self.check.skip('box leaves the image by more than half its size: are the boxes two corners, not x, y, '
                            'width, height?', where)
        return box

    def for_test(self, key: int | str, bbox: Box | None, img_shape: tuple[int, int], camera: Camera | None,
                 true_depth: float | None = None, where: str = '') -> tuple[np.ndarray | None, float | None]:
        """(box (4,) float32, root depth in metres) of a test sample; (None, None) if it has no usable box.

        From RootNet's file, unless use_gt_info=true; then `bbox` and `true_depth` count. A depth that neither of them
        knows is estimated: a box of bbox_3d_size metres, at this depth, is seen as large as the processed box; but it
        stays None where the test item carries a target mesh, which knows it.
        UserError: bbox is None, and RootNet's file does not list the person.
        """
        entry = self.rootnet.by_key.get(str(key)) if self.rootnet else None
        if entry is not None:
            self.told += 1
            if bbox is not None:
                self.source.add(entry[0], bbox, img_shape)
            return entry
        if self.rootnet:
            self.check.skip('not in the RootNet file, annotated box used', where)
        box = self.annotated(bbox, img_shape, where)
        if box is None:
            return None, None
        if camera is None:  # no sample to test with: the load check says so
            return box, None
        if self.cfg.use_gt_info and (true_depth is not None or self.dataset.mesh_target_at_test):
            self.told += 1
            return box, true_depth
        self.estimates += 1
        return box, depth_from_box(box, camera.focal, self.cfg.bbox_3d_size)

    @functools.cached_property
    def rootnet(self):
        """The RootNetFile, or None where it is not wanted or not there; the latter with a notice."""
        if self.cfg.use_gt_info or self.dataset.rootnet is None:
            return None
        _, key, unit = self.dataset.rootnet
        path = self.rootnet_path()
        if not path.exists():
            log.warning('%s: %s is missing: annotated boxes and depths estimated from their size take its place '
                        '(use_gt_info=true: annotated depths)', self.dataset.name, path)
            return None
        return RootNetFile(path, key, unit, self.cfg.rootnet_box_format)

    def rootnet_path(self) -> Path:
        """Where RootNet's file for this split belongs."""
        return self.dataset.folder / rootnet_file(self.dataset.rootnet[0], self.dataset.split)

    def check_source(self) -> None:
        """UserError if RootNet's boxes are those of other people than the annotated ones."""
        median = self.source.median()
        if median is not None and median < LOWEST_OVERLAP:
            raise UserError(
                f'{self.dataset.name}: RootNet file and annotations are not from the same source: the boxes of '
                f'{self.rootnet.path} overlap the annotated ones by {median:.2f} (median IoU of the first '
                f'{len(self.source.overlaps)}, at least {LOWEST_OVERLAP} is expected); data/README.md, "Testing", says '
                'which file belongs to which')


def rootnet_file(name, split):
    """The name of RootNet's file for a split: that of the test, `name`, ends in _validation before its suffix there."""
    return str(Path(name).with_stem(f'{Path(name).stem}_validation')) if split == 'validation' else name
