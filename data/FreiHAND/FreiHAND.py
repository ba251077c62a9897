"""FreiHAND: right hands, a MANO hand in camera metres. The test is a prediction file, scored on a server or here."""
import zipfile
from collections.abc import Iterator

import numpy as np

from common import metrics
from common.errors import UserError
from common.utils.transforms import rigid_align
from data.evaluation.mesh_errors import MM, mesh_errors
from data.evaluation.report import save_result
from data.files import read_records
from data.joint_set import MANO
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, read_record
from data.sample import Sample

TRUTH = ('evaluation_xyz.json', 'evaluation_verts.json')  # released later: joints and vertices of the test images
THRESHOLDS = (5, 15)  # millimetres, of the F-scores
AUC_LIMIT = 50.       # millimetres


class FreiHAND(MeshDataset):
    joint_set = MANO
    allow_flip = False
    fit_models = ('mano',)
    zero_large_betas = False
    splits = ('train', 'test')
    suspect = 'data/freihand_*_data.json'
    rootnet = ('rootnet_output/bbox_root_freihand_output.json', 'image_id', 1.)

    def load(self) -> Iterator[Sample]:
        split = 'train' if self.training else 'eval'
        people = CocoFile(self.folder / 'data' / f'freihand_{split}_coco.json', 'the list of images')
        records = list(people.pairs())
        hands = read_record(self.folder / 'data' / f'freihand_{split}_data.json', 'cameras and hands')
        self.image_num = len(records)
        self.truth = None if self.training else self._read_truth(len(records))
        for number, (image, annotation) in enumerate(records):
            hand = hands.part(str(image['db_idx']), 'hand')
            camera = hand.part('cam_param').camera()
            true_depth = None
            if self.truth is not None:
                true_depth = float(self.truth[0][number, MANO.root_idx, 2])
            size = image.image_size()
            bbox, depth = self.boxes.get(image['id'], annotation.box(), size, camera, true_depth, annotation.place)
            if bbox is None:
                continue
            fit = None
            if self.training:
                fit = hand.part('mano_param').fit(16)
            yield Sample(f'{self.folder}/data/{image.image_file()}', size, bbox, camera, root_depth=depth,
                         ann_id=annotation['id'], fit=fit, extra={'number': number, 'image_id': image['id']})

    def make_samples(self):
        """As MeshDataset. UserError now, and not after hours, for a test that could not write all predictions."""
        samples = super().make_samples()
        if not self.training and len(samples) != self.image_num:
            raise UserError(f'FreiHAND: {len(samples)} of the {self.image_num} test images can be used, and the '
                            'server needs a prediction for each: leave exclude empty, and see to the boxes and cameras '
                            f'in {self.folder} ({self.check.skipped() or "none was skipped"})')
        return samples

    def _read_truth(self, count):
        """(N, 21, 3) joints and (N, 778, 3) vertices of the released ground truth, metres; None if it is not there."""
        paths = [next((p for p in (self.folder / 'data' / name, self.folder / name) if p.exists()), None)
                 for name in TRUTH]
        if None in paths:
            return None
        return [_truth_array(path, (count, points, 3)) for path, points in zip(paths, (21, 778), strict=True)]

    def compare(self, meshes, target_mesh, target_joints, start):
        """Errors where the truth is known, and joint_out (B, 21, 3), mesh_out (B, 778, 3): metres in camera space.

        The parametric mesh is root-relative: it is put where the root of the lixel mesh is.
        """
        joints = {name: self.eval_joints.regress(mesh) for name, mesh in meshes.items()}
        root = joints['lixel'][:, MANO.root_idx, None]
        results = {}
        for name, mesh in meshes.items():
            shift = 0 if name == 'lixel' else root - joints[name][:, MANO.root_idx, None]
            ending = '' if name == 'lixel' else f'_{name}'
            results[f'joint_out{ending}'], results[f'mesh_out{ending}'] = joints[name] + shift, mesh + shift
        if self.truth is not None:
            rows = [self.samples[start + i].extra['number'] for i in range(len(root))]
            for name, mesh in meshes.items():
                scores = _scores(mesh, joints[name], *(array[rows] for array in self.truth), self.eval_joints)
                results.update({f'{metric}_{name}': value for metric, value in scores.items()})
        return results

    def print_eval_result(self, results):
        """Write pred.json and its zip for the server (and pred_param.json in the param stage), then report.

        UserError: not exactly one prediction per image.
        """
        for ending in ('', '_param'):
            if f'joint_out{ending}' in results:
                self._write_predictions(f'pred{ending}', results[f'joint_out{ending}'], results[f'mesh_out{ending}'])
        return super().print_eval_result({k: v for k, v in results.items() if '_out' not in k})

    def _write_predictions(self, name, joints, meshes):
        if len(joints) != self.image_num:
            raise UserError(f'FreiHAND: {len(joints)} predictions for {self.image_num} images: the server needs '
                            f'exactly one of each')
        path = save_result(self.cfg.output_dir, name, [joints.tolist(), meshes.tolist()])
        with zipfile.ZipFile(path.with_suffix('.zip'), 'w', zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, 'pred.json')
        print(f'wrote {path} and {path.with_suffix(".zip")}: joints and vertices, metres in camera space')


def _truth_array(path, shape):
    """A released ground truth file as a finite float32 array. UserError: it is not of this shape."""
    try:
        array = np.asarray(read_records(path, list, 'the ground truth of the test'), np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f'{path} is no array of numbers ({error}): download it again') from error
    if array.shape != shape:
        raise UserError(f'{path} has the shape {array.shape}, expected {shape}: it is of another list of images')
    if not np.isfinite(array).all():
        raise UserError(f'{path} has values that are not finite: download it again')
    return array


def _scores(mesh, joints, true_joints, true_mesh, eval_joints):
    """All errors of a batch of hands; the F-scores and the AUC (joints, 0 to 50 mm) after alignment."""
    aligned_mesh = rigid_align(mesh, true_mesh)
    f_scores = metrics.f_scores(aligned_mesh, true_mesh, np.array(THRESHOLDS) / MM)
    scores = {f'f_{limit}': f_scores[:, i] for i, limit in enumerate(THRESHOLDS)}
    scores['auc'] = metrics.auc(metrics.aligned_errors(joints, true_joints) * MM, AUC_LIMIT)
    return mesh_errors(mesh, joints, true_joints, true_mesh, eval_joints) | scores
