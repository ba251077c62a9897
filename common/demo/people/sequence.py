"""The people of a video: one row per person and frame, smoothed over time, and the arrays for animation tools."""
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from common.demo.people.body import body_meshes
from common.demo.people.prediction import BodyParams, Prediction
from common.demo.people.smoothing import runs, smooth, smooth_rotations
from common.demo.row_file import RowFile
from common.human_model import HumanModel

VERTICES_AT_ONCE = 512  # smoothed at a time: bounds the memory for long videos
BODIES_AT_ONCE = 16  # meshes made at a time, for the same reason
NO_MESH = np.zeros((0, 3), np.float32)


@dataclass
class Row:
    """One person in one frame. The prediction has no meshes: the sequence keeps them in a file."""
    frame: int
    person: int
    prediction: Prediction


class Sequence:
    """Predictions of a video, in the order of frames.

    Args:
        human_model: gives the parametric meshes again.
        folder: for a file with the lixel meshes.
    """

    def __init__(self, human_model: HumanModel, folder: Path) -> None:
        self.human_model = human_model
        self.meshes = RowFile(folder / 'meshes.tmp', (human_model.vertex_num, 3))
        self.rows: list[Row] = []

    @property
    def people(self) -> list[int]:
        """The numbers of all people, in order."""
        return sorted({row.person for row in self.rows})

    def append(self, frame: int, person: int, prediction: Prediction) -> None:
        """Add one person of a frame."""
        self.meshes.append(prediction.mesh_img)
        body = prediction.body
        if body is not None:
            body = replace(body, mesh_cam=NO_MESH)
        self.rows.append(Row(frame, person, replace(prediction, mesh_img=NO_MESH, body=body)))

    def rows_by_frame(self) -> dict[int, list[int]]:
        """{frame: its row numbers}, in order."""
        found: dict[int, list[int]] = {}
        for number, row in enumerate(self.rows):
            found.setdefault(row.frame, []).append(number)
        return found

    def rows_of(self, person: int) -> np.ndarray:
        """The row numbers of one person, by frame."""
        return np.array([number for number, row in enumerate(self.rows) if row.person == person], int)

    def smooth(self, fps: float, method: str, box_size_m: float) -> None:
        """Smooth everybody over time; each run of frames without a gap by itself.

        Args:
            fps: frames per second.
            method: one of smoothing.METHODS.
            box_size_m: side of the cube around a person, metres.
        """
        for person in self.people:
            numbers = self.rows_of(person)
            for part in runs([self.rows[number].frame for number in numbers]):
                self._smooth_meshes(numbers[part], fps, method, box_size_m)
                self._smooth_bodies(numbers[part], fps, method)

    def _smooth_meshes(self, numbers: np.ndarray, fps: float, method: str, box_size_m: float) -> None:
        boxes = np.stack([self.rows[number].prediction.crop_bbox for number in numbers])
        pixels_per_metre = np.sqrt(boxes[:, 2] * boxes[:, 3]).mean() / box_size_m
        unit = np.array([pixels_per_metre, pixels_per_metre, 1])  # the filters expect metres
        meshes = self.meshes.array('r+')
        for start in range(0, meshes.shape[1], VERTICES_AT_ONCE):
            block = slice(start, start + VERTICES_AT_ONCE)
            meshes[numbers, block] = smooth(meshes[numbers, block] / unit, fps, method) * unit

    def _smooth_bodies(self, numbers: np.ndarray, fps: float, method: str) -> None:
        bodies = self.bodies(numbers)
        if not bodies:
            return
        pose = np.stack([body.pose for body in bodies]).reshape(len(bodies), -1, 3)
        poses = smooth_rotations(pose, fps, method).reshape(len(bodies), -1).astype(np.float32)
        betas = smooth(np.stack([body.betas for body in bodies]), fps, method).astype(np.float32)
        for i, body in enumerate(bodies):
            body.pose = poses[i]
            body.betas = betas[i]

    def bodies(self, numbers: np.ndarray | list[int]) -> list[BodyParams]:
        """The parametric bodies of some rows; none in the lixel stage."""
        found = [self.rows[number].prediction.body for number in numbers]
        return [body for body in found if body is not None]

    def predictions(self, numbers: list[int]) -> list[Prediction]:
        """The (smoothed) predictions of some rows, with their meshes."""
        meshes = self.meshes.array()
        found = []
        for number in numbers:
            found.append(replace(self.rows[number].prediction, mesh_img=np.array(meshes[number])))
        bodies = self.bodies(numbers)
        if bodies:
            poses = np.stack([body.pose for body in bodies])
            betas = np.stack([body.betas for body in bodies])
            vertices, roots = self._meshes(poses, betas)
            for i, prediction in enumerate(found):
                mesh_cam = (vertices[i] - roots[i]) * prediction.mirror
                prediction.body = BodyParams(poses[i], betas[i], mesh_cam, roots[i])
        return found

    def animation(self, person: int, fps: float, trans: np.ndarray) -> dict[str, np.ndarray]:
        """One person's motion for animation tools, in the layout of AMASS, in camera space (y down).

        One shape, the mean, for all frames; `trans` is moved by what that shifts the root joint.

        Args:
            person: their number.
            fps: frames per second.
            trans: (N, 3) metres, the translation of every row of the sequence.
        Returns:
            The arrays of an npz.
        """
        numbers = self.rows_of(person)
        bodies = self.bodies(numbers)
        poses = np.stack([body.pose for body in bodies])
        betas = np.stack([body.betas for body in bodies])
        mean = betas.mean(0, dtype=np.float32)
        mean_betas = np.broadcast_to(mean, betas.shape).copy()
        shift = self._roots(poses, betas) - self._roots(poses, mean_betas)
        return {'poses': poses, 'betas': mean, 'trans': trans[numbers] + shift,
                'fps': np.float64(fps),
                'mocap_framerate': np.float64(fps), 'mocap_frame_rate': np.float64(fps),  # AMASS has both names
                'gender': np.array(self.human_model.gender), 'body_model': np.array(self.human_model.name),
                'frames': np.array([self.rows[number].frame for number in numbers])}

    def _roots(self, poses: np.ndarray, betas: np.ndarray) -> np.ndarray:
        """Root joints (N, 3) of `_meshes`, a few meshes at a time."""
        roots = []
        for start in range(0, len(poses), BODIES_AT_ONCE):
            part = slice(start, start + BODIES_AT_ONCE)
            roots.append(self._meshes(poses[part], betas[part])[1])
        return np.concatenate(roots)

    @torch.inference_mode()
    def _meshes(self, poses: np.ndarray, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (N, V, 3) and root joints (N, 3) of the body model, metres."""
        device = self.human_model.get_buffer('joint_regressor').device
        vertices, roots = body_meshes(self.human_model, torch.from_numpy(poses).to(device),
                                      torch.from_numpy(betas).to(device))
        return vertices.cpu().numpy(), roots.cpu().numpy()
