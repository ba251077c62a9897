"""Testing: predictions of the network to meshes in camera space, and to errors in millimetres."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from data.codec import LixelCodec
from data.evaluation import mesh_errors
from data.evaluation.mesh_errors import EvalJoints
from data.joint_set import JointSet
from data.sample import Camera, Sample

Errors = dict[str, np.ndarray]


@dataclass(frozen=True)
class MeshTruth:
    """Test items carry a mesh to compare with.

    Attributes:
        joints: The evaluated joints of that mesh.
        same_topology: Its vertices are those of the network's body model. Otherwise only joints are compared.
    """
    joints: EvalJoints
    same_topology: bool


@dataclass(frozen=True)
class JointTruth:
    """Samples have joints to compare with.

    Attributes:
        joint_set: Of the samples' joints.
    """
    joint_set: JointSet


@dataclass(frozen=True)
class EvalBatch:
    """Predictions for some samples, and what they are compared with.

    Attributes:
        samples: B samples.
        meshes: {'lixel': (B, V, 3) metres in camera space, 'param': (B, V, 3) root-relative metres}; 'param' in the
            param stage only.
        target_mesh: (B, V, 3) metres, of the same topology, or None.
        target_joints: (B, J, 3) metres, or None where there is nothing to compare with.
    """
    samples: Sequence[Sample]
    meshes: Mapping[str, np.ndarray]
    target_mesh: np.ndarray | None
    target_joints: np.ndarray | None


class Evaluator:
    """Compares predicted meshes with the truth of a test set.

    Args:
        name: Of the data set.
        codec: Img space to pixels and metres.
        joints: The joints that count in a predicted mesh; None where there is no truth.
        truth: What there is to compare with.
    """

    def __init__(self, name: str, codec: LixelCodec, joints: EvalJoints | None,
                 truth: MeshTruth | JointTruth | None) -> None:
        self.name = name
        self.codec = codec
        self.joints = joints
        self.truth = truth

    def batch(self, outs: Mapping[str, np.ndarray], samples: Sequence[Sample]) -> EvalBatch:
        """The predictions for some samples in camera space, with their truth.

        Args:
            outs: See MeshDataset.evaluate.
            samples: B samples.
        Raises:
            UserError: A prediction is not finite, or a sample has no root depth.
        """
        self._check_finite(outs, samples)
        target_mesh, target_joints = self._targets(outs, samples)
        depths = self._root_depths(samples, target_joints)
        cameras = [camera_of(sample) for sample in samples]
        lixel = mesh_errors.lixel_meshes(
            outs['mesh_coord_img'], outs['bb2img_trans'], depths, cameras, self.codec)
        meshes = {'lixel': lixel}
        if 'mesh_coord_cam' in outs:
            meshes['param'] = outs['mesh_coord_cam']
        return EvalBatch(samples, meshes, target_mesh, target_joints)

    def errors(self, batch: EvalBatch) -> Errors:
        """{metric: (B, ...)}, millimetres, each name with the ending _lixel or _param; empty without a truth."""
        results: Errors = {}
        if batch.target_joints is None or self.joints is None:
            return results
        for ending, mesh in batch.meshes.items():
            errors = mesh_errors.mesh_errors(
                mesh, self.joints.regress(mesh), batch.target_joints, batch.target_mesh, self.joints)
            for metric, value in errors.items():
                results[f'{metric}_{ending}'] = value
        return results

    def _check_finite(self, outs: Mapping[str, np.ndarray], samples: Sequence[Sample]) -> None:
        """UserError for a prediction that is not finite: left out, it would make the means look better."""
        for name in ('mesh_coord_img', 'mesh_coord_cam'):
            if name not in outs:
                continue
            finite = np.isfinite(outs[name]).all((1, 2))
            if not finite.all():
                raise UserError(f'{self.name}: the network predicts numbers that are not finite, first for '
                                f'{samples[int(np.argmin(finite))].img_path}: amp=fp16 may overflow (use amp=bf16 or '
                                'amp=none), or the snapshot is of a training that failed')

    def _targets(self, outs: Mapping[str, np.ndarray],
                 samples: Sequence[Sample]) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Meshes (B, V, 3) or None, and joints (B, J, 3) or None, metres."""
        if isinstance(self.truth, MeshTruth):
            mesh = outs['mesh_coord_cam_target']
            joints = self.truth.joints.regress(mesh)
            if self.truth.same_topology:
                return mesh, joints
            return None, joints
        if isinstance(self.truth, JointTruth) and self.joints is not None:
            return None, mesh_errors.annotated_joints(samples, self.truth.joint_set, self.joints)
        return None, None

    def _root_depths(self, samples: Sequence[Sample],
                     target_joints: np.ndarray | None) -> list[float]:
        """(B,) metres: as the samples say, else those of the truth."""
        depths = []
        for row, sample in enumerate(samples):
            depth = sample.root_depth
            if depth is None and target_joints is not None and self.joints is not None:
                depth = target_joints[row, self.joints.root, 2]
            if depth is None:
                raise UserError(f'{self.name}: {sample.img_path}, id {sample.ann_id}, has neither a root depth nor a '
                                'truth to take it from')
            depths.append(depth)
        return depths


def camera_of(sample: Sample) -> Camera:
    """The camera of a test sample."""
    assert sample.camera is not None  # the load check skips test samples without one
    return sample.camera
