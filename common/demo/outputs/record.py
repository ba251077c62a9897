"""result.json and result.npz: the numbers of one image or video, with the unit and the frame of each."""
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.demo.people.placer import field_of_view, odd_view
from common.demo.people.prediction import Camera, Person
from common.demo.people.predictor import NetworkInfo
from common.files.arrays import write_npz
from common.utils.transforms import cam2pixel

PIXELS = 'pixels of the image, x right, y down, a pixel centre at integers'
CAMERA = 'metres, camera space: x right, y down, z forward, origin at the camera'
UNITS = {
    'bbox': 'pixels: x, y, width, height of the person',
    'crop_bbox': 'pixels: x, y, width, height of the enlarged box that the network saw',
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

    @property
    def warnings(self) -> list[str]:
        """Lines about what makes the results doubtful."""
        return [line for line in [odd_view(self.camera, self.size)] if line]

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
                'skeleton': [list(pair) for pair in self.joints.skeleton], 'units': self._units()}

    def _units(self) -> dict[str, str]:
        units = dict(UNITS)
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
            entry[name] = value
        return entry

    def content(self, people: Sequence[Person]) -> dict[str, Any]:
        """The whole record of an image."""
        entries = [self.entry(number, person) for number, person in enumerate(people)]
        return self.header() | {'people': entries}

    def write_npz(self, path: Path, people: Sequence[Person]) -> None:
        """Write the npz of an image: each array stacked over the people, and those of `shared_arrays`."""
        rows = [self.arrays(person) for person in people]
        stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        write_npz(path, stacked | self.shared_arrays())

    def shared_arrays(self, **more: Any) -> dict[str, np.ndarray]:
        """What every npz holds besides the people; `meta` is a JSON text with the header and `more`."""
        return {'joint_names': np.array(self.joints.names), 'faces': np.asarray(self.faces, np.int32),
                'focal': self.camera.focal, 'princpt': self.camera.princpt,
                'meta': np.array(json.dumps(self.header() | more))}


def compact(record: dict[str, Any]) -> str:
    """JSON text with one line for each list of plain values."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r'\[\n([^][{}]*)\n *\]', lambda found: f'[{" ".join(found[1].split())}]', text) + '\n'
