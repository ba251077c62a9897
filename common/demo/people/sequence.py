"""The people of a video: one row per person and frame, smoothed over time, and the motion of each."""
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from common.demo.people.body import body_meshes
from common.demo.people.prediction import BodyParams, Prediction
from common.demo.people.smoothing import runs, smooth, smooth_rotations
from common.demo.row_file import RowFile
from common.export.motion import Motion, View
from common.human_model import HumanModel

POINTS_AT_ONCE = 1 << 17  # of all frames, smoothed at a time: bounds the memory for long videos
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

    def smooth(self, times: dict[int, float]) -> None:
        """Smooth everybody over time; each run of frames without a gap by itself.

        The place and the size of a person in the image, the mesh about that place, and the pose are smoothed one by
        one: who moves evenly stays on their pixels, and who jumps keeps steady hands.

        Args:
            times: {frame: seconds}.
        """
        for person in self.people:
            numbers = self.rows_of(person)
            frames = [self.rows[number].frame for number in numbers]
            for part in runs(frames):
                seconds = np.array([times[frame] for frame in frames[part]])
                self._smooth_meshes(numbers[part], seconds)
                self._smooth_poses(numbers[part], seconds)

    def _smooth_meshes(self, numbers: np.ndarray, seconds: np.ndarray) -> None:
        meshes = self.meshes.array('r+')
        places = np.stack([_place(meshes[number]) for number in numbers])
        scale = np.ones((len(numbers), 1, 3))
        scale[:, 0, :2] = places[:, 2:]
        origin = np.zeros_like(scale)
        origin[:, 0, :2] = places[:, :2]
        new_scale = scale.copy()
        new_scale[:, 0, :2] = smooth(places[:, 2:], seconds)
        new_origin = origin.copy()
        new_origin[:, 0, :2] = smooth(places[:, :2], seconds)
        at_once = max(POINTS_AT_ONCE // len(numbers), 1)
        for start in range(0, meshes.shape[1], at_once):
            block = slice(start, start + at_once)
            relative = (meshes[numbers, block] - origin) / scale
            meshes[numbers, block] = smooth(relative, seconds) * new_scale + new_origin

    def _smooth_poses(self, numbers: np.ndarray, seconds: np.ndarray) -> None:
        """The shape needs no smoothing: see `share_shapes`."""
        bodies = self.bodies(numbers)
        if not bodies:
            return
        poses = np.stack([body.pose for body in bodies]).reshape(len(bodies), -1, 3)
        smoothed = smooth_rotations(poses, seconds).reshape(len(bodies), -1).astype(np.float32)
        for body, pose in zip(bodies, smoothed, strict=True):
            body.pose = pose

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

    def share_shapes(self) -> None:
        """Give each person one shape for all frames, the mean: a figure does not change its shape while it moves."""
        for person in self.people:
            bodies = self.bodies(self.rows_of(person))
            if bodies:
                mean = np.stack([body.betas for body in bodies]).mean(0, dtype=np.float64).astype(np.float32)
                for body in bodies:
                    body.betas = mean

    def motion(self, person: int, times: dict[int, float], trans: np.ndarray, left_hand: bool, view: View) -> Motion:
        """One person's motion, after `share_shapes`.

        Args:
            person: their number.
            times: {frame: seconds}.
            trans: (N, 3) metres, the translation of every row of the sequence.
            left_hand: the body model is of the other hand.
            view: the camera.
        """
        numbers = self.rows_of(person)
        frames = [self.rows[number].frame for number in numbers]
        bodies = self.bodies(numbers)
        poses = np.stack([body.pose for body in bodies])
        seconds = np.array([times[frame] for frame in frames])
        return Motion(poses, trans[numbers], bodies[0].betas, seconds, np.array(frames), left_hand, view)

    @torch.inference_mode()
    def _meshes(self, poses: np.ndarray, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (N, V, 3) and root joints (N, 3) of the body model, metres."""
        device = self.human_model.get_buffer('joint_regressor').device
        vertices, roots = body_meshes(self.human_model, torch.from_numpy(poses).to(device),
                                      torch.from_numpy(betas).to(device))
        return vertices.cpu().numpy(), roots.cpu().numpy()


def _place(mesh_img: np.ndarray) -> np.ndarray:
    """Where a mesh (V, 3) is in the image and how large: x and y of its middle, and its spread, pixels."""
    pixels = mesh_img[:, :2].astype(np.float64)
    middle = pixels.mean(0)
    spread = np.sqrt(((pixels - middle) ** 2).sum(1).mean())
    return np.append(middle, max(spread, 1e-3))
