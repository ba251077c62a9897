"""Boxes of people, and for tests the depths of their roots: from the annotations, or from RootNet's file."""
import functools
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.utils.preprocessing import looks_like_corners, process_bbox
from common.utils.transforms import depth_from_box
from data.checks.load_check import LoadCheck
from data.files import is_there
from data.rootnet import LOWEST_OVERLAP, RootNetFile, SourceCheck
from data.sample import Camera

log = logging.getLogger(__name__)
STATE = ('estimates', 'known', 'has_rootnet')
Box = list[float] | np.ndarray  # (4,) x, y, width, height in pixels


@dataclass(frozen=True)
class RootNetPlace:
    """RootNet's file of a test, which may be missing.

    Attributes:
        path: Where it belongs.
        key: What names a person there: 'image_id' or 'ann_id'.
        unit: Metres per unit of its depths.
        box_format: Of its boxes: 'xywh' or 'xyxy'.
    """
    path: Path
    key: str
    unit: float
    box_format: str


@dataclass(frozen=True)
class BoxRules:
    """How a data set finds its boxes and root depths.

    Attributes:
        training: Whether the annotated boxes are for training, which needs no root depths.
        input_img_shape: (height, width) of the network input, pixels.
        bbox_3d_size: Metres, size of a body or hand.
        rootnet: RootNet's file; None: the set has none.
        use_gt_info: Take the annotated boxes and depths of a test, not RootNet's.
        mesh_has_depth: Test items carry a target mesh, which knows the root depth.
    """
    training: bool
    input_img_shape: tuple[int, int]
    bbox_3d_size: float
    rootnet: RootNetPlace | None
    use_gt_info: bool
    mesh_has_depth: bool


def rootnet_place(rootnet: tuple[str, str, float] | None, folder: Path, split: str,
                  box_format: str) -> RootNetPlace | None:
    """Where a split has RootNet's file. rootnet: as of MeshDataset. folder: of the data set."""
    if rootnet is None:
        return None
    name, key, unit = rootnet
    return RootNetPlace(folder / rootnet_file(name, split), key, unit, box_format)


class Boxes:
    """Gives a loader the box of each sample, and keeps count of those that cannot be used.

    Args:
        name: Of the data set.
        rules: Where boxes and depths come from.
        check: Counts what cannot be used.
    Attributes:
        estimates: Number of depths estimated.
        known: Number of depths read.
        has_rootnet: Whether RootNet's file was read.
    """

    def __init__(self, name: str, rules: BoxRules, check: LoadCheck) -> None:
        self.name = name
        self.rules = rules
        self.check = check
        self.estimates = 0
        self.known = 0
        self.has_rootnet = False
        self.source = SourceCheck(rules.input_img_shape)

    @property
    def depth_source(self) -> str:
        """Where the root depths come from, a text for the report."""
        source = 'annotations'
        if self.has_rootnet:
            source = 'RootNet file'
        if not self.estimates:
            return source
        if not self.known:
            return 'estimate from the box'
        return f'{source}, {self.estimates} estimates from the box'

    def get(self, key: int | str, bbox: Box | None, img_shape: tuple[int, int], camera: Camera | None = None,
            true_depth: float | None = None, where: object = '') -> tuple[np.ndarray | None, float | None]:
        """(box, root depth) of a sample: in training `annotated` and None, else `for_test`."""
        if self.rules.training:
            return self.annotated(bbox, img_shape, where), None
        return self.for_test(key, bbox, img_shape, camera, true_depth, where)

    def annotated(self, bbox: Box | None, img_shape: tuple[int, int],
                  where: object) -> np.ndarray | None:
        """The processed box of an annotated one.

        Args:
            bbox: (4,) xywh, pixels.
            img_shape: (height, width), pixels.
            where: Names the record in messages: a text, or what becomes one only then.
        Returns:
            (4,) float32 xywh; None, counted, for a box that is empty or off the image.
        Raises:
            UserError: `bbox` is None.
        """
        if bbox is None:
            raise self._no_box(where)
        height, width = img_shape
        box = process_bbox(bbox, width, height, self.rules.input_img_shape)
        if box is None:
            if np.isfinite(bbox).all() and bbox[2] * bbox[3] <= 0:
                self.check.skip_sample('empty box', str(where))
            else:
                self.check.skip_sample('box off the image', str(where), suspicious=True)
        elif looks_like_corners(bbox, width, height):
            self.check.skip('box leaves the image by more than half its size: are the boxes two corners, not x, y, '
                            'width, height?', str(where))
        return box

    def _no_box(self, where: object) -> UserError:
        remedy = 'download the file again'
        if self.rules.rootnet and not self.rules.training:
            remedy = f'a test takes the boxes of {self.rules.rootnet.path} then; where to get it: ' \
                f'python tool/check_assets.py {self.name}'
        return UserError(f'{where} has no bbox: {remedy}')

    def for_test(self, key: int | str, bbox: Box | None, img_shape: tuple[int, int], camera: Camera | None,
                 true_depth: float | None = None, where: object = '') -> tuple[np.ndarray | None, float | None]:
        """Box and root depth of a test sample.

        From RootNet's file, unless use_gt_info=true; then `bbox` and `true_depth` count. Otherwise the depth is
        estimated so that a square of bbox_3d_size metres fills the processed box; but it stays None where the test item
        carries a target mesh, which knows it.

        Args:
            key: Names the person in RootNet's file.
            bbox: (4,) annotated box xywh, pixels, or None.
            img_shape: (height, width), pixels.
            camera: The camera, or None.
            true_depth: Annotated root depth, metres, or None.
            where: Names the record in messages.
        Returns:
            (4,) float32 and metres; (None, None) if there is no usable box.
        Raises:
            UserError: `bbox` is None, and RootNet's file does not list the person.
        """
        if self.rootnet:
            entry = self.rootnet.by_key.get(str(key))
            if entry is not None:
                self.known += 1
                if str(key) in self.rootnet.repeated:
                    self.check.skip('several times in the RootNet file, the last one used', str(where))
                if bbox is not None:
                    self.source.add(entry[0], bbox, img_shape)
                return entry
            self.check.skip('not in the RootNet file, annotated box used', str(where))
        box = self.annotated(bbox, img_shape, where)
        if box is None:
            return None, None
        if camera is None:  # no sample to test with: the load check says so
            return box, None
        if self.rules.use_gt_info and (true_depth is not None or self.rules.mesh_has_depth):
            self.known += 1
            return box, true_depth
        self.estimates += 1
        return box, depth_from_box(box, camera.focal, self.rules.bbox_3d_size)

    @functools.cached_property
    def rootnet(self) -> RootNetFile | None:
        """The RootNetFile, or None where it is not wanted or not there; the latter with a notice."""
        place = self.rules.rootnet
        if self.rules.use_gt_info or place is None:
            return None
        if not is_there(place.path):
            log.warning('%s: %s is missing: annotated boxes and depths estimated from their size take its place '
                        '(use_gt_info=true: annotated depths)', self.name, place.path)
            return None
        self.has_rootnet = True
        return RootNetFile(place.path, place.key, place.unit, place.box_format)

    def state(self) -> dict[str, int]:
        """All counts, as plain values."""
        return {name: getattr(self, name) for name in STATE}

    def restore(self, state: dict[str, int]) -> None:
        """Take over the counts of an earlier start."""
        for name in STATE:
            setattr(self, name, state[name])

    def check_source(self) -> None:
        """UserError if RootNet's boxes are those of other people than the annotated ones."""
        median = self.source.median()
        if median is not None and median < LOWEST_OVERLAP and self.rootnet:
            raise UserError(
                f'{self.name}: RootNet file and annotations are not from the same source: the boxes of '
                f'{self.rootnet.path} overlap the annotated ones by {median:.2f} (median IoU of the first '
                f'{len(self.source.overlaps)}, at least {LOWEST_OVERLAP} is expected); data/README.md, "Testing", says '
                'which file belongs to which')


def rootnet_file(name: str, split: str) -> str:
    """The name of RootNet's file for a split: that of the test, `name`, or NAME_validation.json beside it."""
    path = Path(name)
    if split == 'validation':
        path = path.with_stem(f'{path.stem}_validation')
    return str(path)
