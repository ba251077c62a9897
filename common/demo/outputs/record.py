"""result.json and result.npz: the numbers of one image or video, with the unit and the frame of each."""
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from common.demo.people.placer import field_of_view, odd_view
from common.demo.people.prediction import Camera, Person, Prediction
from common.demo.people.predictor import NetworkInfo
from common.export.gltf import UNITS as GLB_UNITS
from common.files.arrays import write_npz
from common.utils.overlay import OBJ_AXES
from common.utils.transforms import cam2pixel

PIXELS = 'pixels of the image, x right, y down, a pixel centre at integers'
CAMERA = 'metres, camera space: x right, y down, z forward, origin at the camera'
UNSURE = 0.75  # lowest confidence without a warning
UNITS = {
    'bbox': 'pixels: x, y, width, height of the person',
    'crop_bbox': 'pixels: x, y, width, height of the enlarged box that the network saw',
    'confidence': 'mean of joint_confidence, 0 to 1',
    'joint_confidence': 'how sure the network is of each joint that it predicts, by the entropy of its heat maps along '
                        'x and y: 0 a flat one, 1 as sharp as in training',
    'root_depth': 'metres from the camera to the root joint, along z',
    'lixel_joints_img': PIXELS,
    'lixel_joints_cam': CAMERA,
    'lixel_vertices_img': f'x, y: {PIXELS}; z: metres relative to the root joint',
    'lixel_vertices_cam': CAMERA,
    'focal': 'pixels: fx, fy',
    'princpt': 'pixels: cx, cy',
    'field_of_view': 'degrees over the longer side of the image',
    'faces': 'vertex numbers of each triangle, from 0',
}
PARAM_UNITS = {
    'param_joints_img': PIXELS,
    'param_joints_cam': CAMERA,
    'param_vertices_cam': CAMERA,
    'pose': 'radians: axis-angle of each kinematic joint, the root joint first, relative to the parent joint; the root '
            'rotation is in camera space',
    'betas': 'shape coefficients of the body model, in standard deviations',
    'trans': 'metres: body_model(pose, betas) + trans = param_vertices_cam',
}
HAND_POSE = PARAM_UNITS['pose'] + "; relative to the model's mean hand (flat_hand_mean=False)"
MIRRORED = ('metres: (body_model(pose, betas) + trans) with x negated = param_vertices_cam: a left hand by the model '
            'of the right one')


def unsure(confidence: float, subject: str) -> str:
    """A warning about a network's confidence, 0..1, in somebody, or on average; subject: what it knows."""
    return (f'the network is unsure of what it sees (confidence {confidence:.2f}, usually above {UNSURE}). It knows '
            f'{subject}: does the box hold one of them, and all of it?')


@dataclass
class JointReader:
    """Joints of a mesh: `joints(vertices)`."""
    names: tuple[str, ...]  # J
    regressor: np.ndarray  # (J, V)
    skeleton: tuple[tuple[int, int], ...] = ()  # pairs of joints, for drawing

    def __call__(self, vertices: np.ndarray) -> np.ndarray:
        """(V, C) -> (J, C)."""
        return self.regressor @ vertices


@dataclass
class Record:
    """Writes down the people of one image or video."""
    source: str  # path or name of the file
    size: tuple[int, int]  # (height, width), pixels
    info: NetworkInfo
    joints: JointReader
    faces: np.ndarray  # (F, 3)
    camera: Camera
    warnings: list[str] = field(default_factory=list)  # what makes all results doubtful, whatever the image
    axes: str = 'y_up'  # of the OBJ files, one of OBJ_AXES

    def doubts(self, people: Sequence[Person]) -> list[str]:
        """Lines about what makes the results of this image doubtful: its camera, and people the network is unsure of.

        Networks whose heat maps were not trained to be Gaussians have no scale for the latter.
        """
        lines = []
        view = odd_view(self.camera, self.size)
        if view:
            lines.append(view)
        if self.info.trained_maps:
            for number, person in enumerate(people):
                confidence = person.prediction.mean_confidence
                if confidence < UNSURE:
                    lines.append(f'person {number}: {unsure(confidence, self.info.subject)}')
        return lines

    def header(self) -> dict[str, Any]:
        """The part of the record that all people share."""
        camera = {'focal': self.camera.focal.tolist(), 'princpt': self.camera.princpt.tolist(),
                  'focal_source': self.camera.focal_source,
                  'field_of_view': round(field_of_view(self.camera, self.size), 1),
                  'R': np.eye(3).tolist(), 't': [0., 0., 0.]}
        model = {'snapshot': self.info.snapshot, 'stage': self.info.stage, 'body_model': self.info.body_model,
                 'gender': self.info.gender, 'left_hand': self.info.left_hand}
        return {'source': self.source, 'width': self.size[1], 'height': self.size[0], 'model': model,
                'camera': camera, 'warnings': self.warnings, 'joint_names': list(self.joints.names),
                'confidence_joint_names': list(self.info.joint_names),
                'skeleton': [list(pair) for pair in self.joints.skeleton], 'units': self._units()}

    def _units(self) -> dict[str, str]:
        units = UNITS | {'*.obj': OBJ_AXES[self.axes], '*.glb': GLB_UNITS}
        if 'param' in self.info.kinds:
            units |= PARAM_UNITS
            if self.info.is_hand:
                units['pose'] = HAND_POSE
            if self.info.left_hand:
                units['trans'] = MIRRORED
        return units

    def arrays(self, person: Person) -> dict[str, np.ndarray]:
        """One person's arrays, by the names of UNITS and PARAM_UNITS."""
        prediction = person.prediction
        arrays: dict[str, Any] = {
            'bbox': prediction.bbox, 'crop_bbox': prediction.crop_bbox, 'root_depth': person.root_depth,
            'confidence': prediction.mean_confidence, 'joint_confidence': prediction.confidence,
            'lixel_joints_img': self.joints(prediction.mesh_img)[:, :2],
            'lixel_joints_cam': self.joints(person.lixel_cam),
            'lixel_vertices_img': prediction.mesh_img, 'lixel_vertices_cam': person.lixel_cam}
        if prediction.body is not None and person.param_cam is not None:
            joints_cam = self.joints(person.param_cam)
            joints_img = cam2pixel(joints_cam, self.camera.focal, self.camera.princpt)[:, :2]
            arrays |= {'param_joints_img': joints_img, 'param_joints_cam': joints_cam,
                       'param_vertices_cam': person.param_cam, 'pose': prediction.body.pose,
                       'betas': prediction.body.betas, 'trans': person.trans}
        return {name: np.asarray(value, np.float64 if name == 'trans' else np.float32)
                for name, value in arrays.items()}

    def joint_confidence(self, prediction: Prediction) -> list[float | None]:
        """The network's confidence in each of `joints`; None where it predicts no joint of that name."""
        known = dict(zip(self.info.joint_names, prediction.confidence.tolist(), strict=True))
        return [known.get(name) for name in self.joints.names]

    def entry(self, number: int, person: Person) -> dict[str, Any]:
        """One person's part of result.json.

        Joints are objects {name: [x, y] or [x, y, z]}; vertices are left to result.npz and the OBJ files.
        """
        entry: dict[str, Any] = {'id': number, 'depth_source': person.depth_source}
        for name, array in self.arrays(person).items():
            if 'vertices' in name:
                continue
            value = np.round(array.astype(float), 8).tolist()
            if 'joints' in name:
                value = dict(zip(self.joints.names, value, strict=True))
            elif name == 'joint_confidence':
                value = dict(zip(self.info.joint_names, value, strict=True))
            entry[name] = value
        return entry

    def content(self, people: Sequence[Person]) -> dict[str, Any]:
        """The whole record of an image."""
        entries = [self.entry(number, person) for number, person in enumerate(people)]
        header = self.header()
        header['warnings'] = self.warnings + self.doubts(people)
        return header | {'people': entries}

    def write_npz(self, path: Path, people: Sequence[Person]) -> None:
        """Write the npz of an image: each array stacked over the people, and those of `shared_arrays`."""
        write_npz(path, self.stacked(people) | self.shared_arrays())

    def stacked(self, people: Sequence[Person]) -> dict[str, np.ndarray]:
        """The arrays of at least one person, stacked over the people."""
        rows = [self.arrays(person) for person in people]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def shared_arrays(self, **more: Any) -> dict[str, np.ndarray]:
        """What every npz holds besides the people; `meta` is a JSON text with the header and `more`."""
        return {'joint_names': np.array(self.joints.names), 'faces': np.asarray(self.faces, np.int32),
                'focal': self.camera.focal, 'princpt': self.camera.princpt,
                'meta': np.array(json.dumps(self.header() | more))}


def compact(record: dict[str, Any]) -> str:
    """JSON text with one line for each list of plain values."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r'\[\n([^][{}]*)\n *\]', lambda found: f'[{" ".join(found[1].split())}]', text) + '\n'
