"""The people of a video: one row per person and frame, smoothed over time, and the npz for animation tools."""
import numpy as np
import torch

from common.demo.outputs.row_file import RowFile
from common.demo.people.prediction import Prediction
from common.demo.people.smoothing import runs, smooth, smooth_rotations

VERTICES_AT_ONCE = 512  # smoothed at a time: bounds the memory for long videos
BODIES_AT_ONCE = 16  # meshes made at a time, for the same reason


class Sequence:
    """Predictions of a video, in the order of frames. The meshes are kept in a file in `folder`.

    frames, people: lists with the frame and the person number of each row.
    """

    def __init__(self, human_model, folder):
        self.human_model = human_model
        self.meshes = RowFile(folder / 'meshes.tmp', (human_model.vertex_num, 3))
        self.frames, self.people, self.rest = [], [], []

    def append(self, frame, person, prediction):
        self.frames.append(frame)
        self.people.append(person)
        self.meshes.append(prediction.mesh_img)
        prediction.mesh_img = prediction.mesh_cam = None  # the file has the one, pose and betas give the other
        self.rest.append(prediction)

    def rows_of(self, person):
        """Row numbers of one person, by frame."""
        return [i for i, who in enumerate(self.people) if who == person]

    def smooth(self, fps, method, box_size_m):
        """Smooth everybody over time, apart for each run of frames without a gap."""
        meshes = self.meshes.array('r+')
        for person in sorted(set(self.people)):
            rows = np.array(self.rows_of(person))
            for part in runs([self.frames[i] for i in rows]):
                self._smooth_rows(meshes, rows[part], fps, method, box_size_m)

    def _smooth_rows(self, meshes, rows, fps, method, box_size_m):
        sides = [np.sqrt(self.rest[i].crop_bbox[2] * self.rest[i].crop_bbox[3]) for i in rows]
        unit = np.array([np.mean(sides) / box_size_m] * 2 + [1])  # pixels per metre: the filters think in metres
        for start in range(0, meshes.shape[1], VERTICES_AT_ONCE):
            block = slice(start, start + VERTICES_AT_ONCE)
            meshes[rows, block] = smooth(meshes[rows, block] / unit, fps, method) * unit
        if self.rest[rows[0]].pose is not None:
            pose = np.stack([self.rest[i].pose for i in rows]).reshape(len(rows), -1, 3)
            poses = smooth_rotations(pose, fps, method).reshape(len(rows), -1).astype(np.float32)
            betas = smooth(np.stack([self.rest[i].betas for i in rows]), fps, method).astype(np.float32)
            for i, row in enumerate(rows):
                self.rest[row].pose, self.rest[row].betas = poses[i], betas[i]

    def predictions(self, rows):
        """The (smoothed) Predictions of some rows, whole again."""
        meshes = self.meshes.array()
        found = [Prediction(**{**vars(self.rest[i]), 'mesh_img': np.array(meshes[i])}) for i in rows]
        if found and found[0].pose is not None:
            vertices, roots = self.body(np.stack([p.pose for p in found]), np.stack([p.betas for p in found]))
            for p, mesh, root in zip(found, vertices, roots, strict=True):
                p.mesh_cam, p.model_root = (mesh - root) * np.float32([-1 if p.mirrored else 1, 1, 1]), root
        return found

    @torch.inference_mode()
    def body(self, poses, betas):
        """(N, K * 3), (N, 10) -> the body model's vertices (N, V, 3) and their root joints (N, 3), metres."""
        model, device = self.human_model, self.human_model.joint_regressor.device
        mesh, _ = model(torch.from_numpy(poses).to(device), torch.from_numpy(betas).to(device), None)
        root = model.joint_regressor[model.root_joint_idx] @ mesh
        return mesh.cpu().numpy(), root.cpu().numpy()

    def roots(self, poses, betas):
        """Root joints (N, 3) of `body`, a few meshes at a time."""
        parts = [slice(i, i + BODIES_AT_ONCE) for i in range(0, len(poses), BODIES_AT_ONCE)]
        return np.concatenate([self.body(poses[part], betas[part])[1] for part in parts])

    def animation(self, person, fps, trans):
        """One person's motion for animation tools, in the layout of AMASS: the arrays of an npz.

        trans (N, 3) metres: the translation of every row of the sequence. One shape, the mean, for all frames; `trans`
        is moved by what that shifts the root joint. Camera space (y down).
        """
        rows = self.rows_of(person)
        poses = np.stack([self.rest[i].pose for i in rows])
        betas = np.stack([self.rest[i].betas for i in rows])
        mean = betas.mean(0, dtype=np.float32)
        shift = self.roots(poses, betas) - self.roots(poses, np.broadcast_to(mean, betas.shape).copy())
        return {'poses': poses, 'betas': mean, 'trans': np.asarray(trans)[rows] + shift,
                'fps': np.float64(fps), 'mocap_framerate': np.float64(fps), 'gender': self.human_model.gender,
                'body_model': self.human_model.name, 'frames': np.array([self.frames[i] for i in rows])}
