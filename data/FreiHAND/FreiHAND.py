"""FreiHAND: right hands, a MANO hand in camera metres. The test is a prediction file, scored on a server or here."""
import functools
import logging
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common import metrics
from common.errors import UserError
from common.utils.transforms import rigid_align
from data.evaluation.evaluator import Errors, EvalBatch
from data.evaluation.mesh_errors import MM, EvalJoints, mesh_errors
from data.evaluation.report import save_result
from data.files import is_there, read_records
from data.joint_set import MANO
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, read_record
from data.sample import Sample

log = logging.getLogger(__name__)
# (N, 21, 3) joints and (N, 778, 3) vertices of the test images, metres
Truth = tuple[np.ndarray, np.ndarray]
# released later: joints and vertices of the test images
TRUTH = ('evaluation_xyz.json', 'evaluation_verts.json')
THRESHOLDS = (5, 15)  # millimetres, of the F-scores
AUC_LIMIT = 50.  # millimetres
ENDINGS = {'lixel': '', 'param': '_param'}  # of the prediction files of each mesh


class FreiHAND(MeshDataset):
    joint_set = MANO
    allow_flip = False
    fit_models = ('mano',)
    zero_large_betas = False
    splits = ('train', 'test')
    suspect = 'data/freihand_*_data.json'
    rootnet = ('rootnet_output/bbox_root_freihand_output.json', 'image_id', 1.)
    kept = ('protocol', 'image_num')

    def load(self) -> Iterator[Sample]:
        split = 'train' if self.training else 'eval'
        people = CocoFile(self.folder / 'data' / f'freihand_{split}_coco.json', 'the list of images')
        records = list(people.pairs())
        hands = read_record(self.folder / 'data' / f'freihand_{split}_data.json', 'cameras and hands')
        self.image_num = len(records)
        for number, (image, annotation) in enumerate(records):
            hand = hands.part(str(image['db_idx']), 'hand')
            camera = hand.part('cam_param').camera()
            true_depth = None
            if not self.training and self.truth is not None:
                true_depth = float(self.truth[0][number, MANO.root_idx, 2])
            size = image.image_size()
            bbox, depth = self.boxes.get(image['id'], annotation.box(), size, camera, true_depth, annotation)
            if bbox is None:
                continue
            fit = None
            if self.training:
                fit = hand.part('mano_param').fit(16)
            yield Sample(f'{self.folder}/data/{image.image_file()}', size, bbox, camera, root_depth=depth,
                         ann_id=annotation['id'], fit=fit, extra={'number': number, 'image_id': image['id']})

    def make_samples(self) -> Any:
        """As MeshDataset. UserError now, and not after hours, for a test that could not write all predictions."""
        samples = super().make_samples()
        if not self.training and len(samples) != self.image_num:
            raise UserError(f'FreiHAND: {len(samples)} of the {self.image_num} test images can be used, and the '
                            'server needs a prediction for each: leave exclude empty, and see to the boxes and cameras '
                            f'in {self.folder} ({self.check.skipped() or "none was skipped"})')
        if not self.training:
            _ = self.truth  # a broken file is noticed now
        return samples

    @functools.cached_property
    def truth(self) -> Truth | None:
        """The released ground truth of the test images; None if it is not there."""
        paths = []
        for name in TRUTH:
            found = [path for path in (self.folder / 'data' / name, self.folder / name) if is_there(path)]
            if not found:
                return None
            paths.append(found[0])
        return _truth_array(paths[0], (self.image_num, 21, 3)), _truth_array(paths[1], (self.image_num, 778, 3))

    def compare(self, batch: EvalBatch) -> Errors:
        """Errors where the truth is known, and joint_out (B, 21, 3), mesh_out (B, 778, 3): metres in camera space.

        The parametric mesh is root-relative: it is put where the root of the lixel mesh is.
        """
        results: Errors = {}
        root = self.eval_joints.regress(batch.meshes['lixel'])[:, MANO.root_idx, None]
        for name, mesh in batch.meshes.items():
            joints = self.eval_joints.regress(mesh)
            shift = root - joints[:, MANO.root_idx, None]  # zero for the lixel mesh
            ending = ENDINGS[name]
            results[f'joint_out{ending}'] = joints + shift
            results[f'mesh_out{ending}'] = mesh + shift
        if self.truth is not None:
            results |= hand_errors(batch, self.eval_joints, self.truth)
        return results

    def print_eval_result(self, results: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Write pred.json and its zip for the server (and pred_param.json in the param stage), then report.

        Raises:
            UserError: There is not exactly one prediction per image.
        """
        for ending in ENDINGS.values():
            if f'joint_out{ending}' in results:
                self._write_predictions(f'pred{ending}', results[f'joint_out{ending}'], results[f'mesh_out{ending}'])
        return super().print_eval_result({name: values for name, values in results.items() if '_out' not in name})

    def _write_predictions(self, name: str, joints: np.ndarray, meshes: np.ndarray) -> None:
        if len(joints) != self.image_num:
            raise UserError(f'FreiHAND: {len(joints)} predictions for {self.image_num} images: the server needs '
                            f'exactly one of each')
        path = save_result(self.cfg.output_dir, name, [joints.tolist(), meshes.tolist()])
        archive_path = path.with_suffix('.zip')
        with zipfile.ZipFile(archive_path, 'w', zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, 'pred.json')
        log.info('wrote %s and %s: joints and vertices, metres in camera space', path, archive_path)


def _truth_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """A released ground truth file as a finite float32 array. UserError: it is not of this shape."""
    try:
        array = np.asarray(read_records(path, list, 'the ground truth of the test'), np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f'{path} is not an array of numbers ({error}): download it again') from error
    if array.shape != shape:
        raise UserError(f'{path} has the shape {array.shape}, expected {shape}: it is of another list of images')
    if not np.isfinite(array).all():
        raise UserError(f'{path} has values that are not finite: download it again')
    return array


def hand_errors(batch: EvalBatch, eval_joints: EvalJoints, truth: Truth) -> Errors:
    """All errors of a batch of hands; the F-scores and the AUC (joints, 0 to 50 mm) after alignment.

    Args:
        batch: Samples with their row in the truth as `extra['number']`, and predictions.
        eval_joints: The joints that count.
        truth: That of the whole test.
    Returns:
        {metric: (B, ...)}, each name with the ending _lixel or _param.
    """
    rows = [sample.extra['number'] for sample in batch.samples]
    true_joints = truth[0][rows]
    true_mesh = truth[1][rows]
    results: Errors = {}
    for ending, mesh in batch.meshes.items():
        joints = eval_joints.regress(mesh)
        errors = mesh_errors(mesh, joints, true_joints, true_mesh, eval_joints)
        limits = [limit / MM for limit in THRESHOLDS]
        f_scores = metrics.f_scores(rigid_align(mesh, true_mesh), true_mesh, limits)
        for column, limit in enumerate(THRESHOLDS):
            errors[f'f_{limit}'] = f_scores[:, column]
        errors['auc'] = metrics.auc(metrics.aligned_errors(joints, true_joints) * MM, AUC_LIMIT)
        for metric, value in errors.items():
            results[f'{metric}_{ending}'] = value
    return results
