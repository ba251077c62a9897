"""result.json and result.npz: the numbers of one picture, with the unit and the frame of each."""
import json
import re
from dataclasses import dataclass

import numpy as np

from common.files.arrays import write_npz as write_arrays
from common.utils.transforms import cam2pixel

PIXELS = 'pixels of the picture, x right, y down, a pixel centre at integers'
CAMERA = 'metres, camera space: x right, y down, z forward, origin at the camera'
UNITS = {
    'bbox': 'pixels: x, y, width, height of the person',
    'crop_bbox': 'pixels: x, y, width, height of the enlarged box that the network saw',
    'root_depth': 'metres from the camera to the root joint, along z',
    'lixel_joints_img': PIXELS, 'lixel_joints_cam': CAMERA,
    'lixel_vertices_img': f'x, y: {PIXELS}; z: metres relative to the root joint', 'lixel_vertices_cam': CAMERA,
    'param_joints_img': PIXELS, 'param_joints_cam': CAMERA, 'param_vertices_cam': CAMERA,
    'pose': 'radians: axis-angle of each kinematic joint, the root joint first, relative to the parent joint; the root '
            'rotation is in camera space',
    'betas': 'shape coefficients of the body model, in standard deviations',
    'trans': 'metres: body_model(pose, betas) + trans = param_vertices_cam',
    'focal': 'pixels: fx, fy', 'princpt': 'pixels: cx, cy', 'faces': 'vertex numbers of each triangle, from 0',
}
HAND_POSE = UNITS['pose'] + "; relative to the model's mean hand (flat_hand_mean=False)"
MIRRORED = ('metres: (body_model(pose, betas) + trans) with x negated = param_vertices_cam: a left hand by the model '
            'of the right one')


@dataclass
class JointReader:
    """Joints of a mesh: names (J), regressor (J, V), skeleton (index pairs for drawing)."""
    names: tuple
    regressor: np.ndarray
    skeleton: tuple = ()

    def __call__(self, vertices):
        """(V, C) -> (J, C)."""
        return self.regressor @ vertices


@dataclass
class Origin:
    """What a result was made of: plain values for the record."""
    source: str
    size: tuple
    snapshot: str
    stage: str
    body_model: str
    gender: str
    is_hand: bool = False
    mirrored: bool = False


def person_arrays(person, joints, camera):
    """One person's arrays, named as in UNITS."""
    arrays = {'bbox': person.bbox, 'crop_bbox': person.crop_bbox, 'root_depth': np.float64(person.root_depth),
              'lixel_joints_img': joints(person.mesh_img)[:, :2], 'lixel_joints_cam': joints(person.lixel_cam),
              'lixel_vertices_img': person.mesh_img, 'lixel_vertices_cam': person.lixel_cam}
    if person.param_cam is not None:
        joints_cam = joints(person.param_cam)
        arrays |= {'param_joints_img': cam2pixel(joints_cam, camera.focal, camera.princpt)[:, :2],
                   'param_joints_cam': joints_cam, 'param_vertices_cam': person.param_cam,
                   'pose': person.pose, 'betas': person.betas, 'trans': person.trans}
    return {k: np.asarray(v, np.float64 if k == 'trans' else np.float32) for k, v in arrays.items()}


def header(origin, camera, joints):
    """The part of the record that all people of a picture share."""
    units = UNITS | ({'pose': HAND_POSE} if origin.is_hand else {}) | ({'trans': MIRRORED} if origin.mirrored else {})
    camera = {'focal': camera.focal.tolist(), 'princpt': camera.princpt.tolist(), 'focal_source': camera.focal_source,
              'R': np.eye(3).tolist(), 't': [0., 0., 0.]}
    model = {'snapshot': origin.snapshot, 'stage': origin.stage, 'body_model': origin.body_model,
             'gender': origin.gender, 'left_hand': origin.mirrored}
    if origin.stage == 'lixel':
        units = {k: v for k, v in units.items() if not k.startswith('param') and k not in ('pose', 'betas', 'trans')}
    return {'source': origin.source, 'width': origin.size[1], 'height': origin.size[0], 'model': model,
            'camera': camera, 'joint_names': list(joints.names), 'skeleton': [list(pair) for pair in joints.skeleton],
            'units': units}


def person_entry(number, person, joints, camera):
    """One person's part of result.json. Joints are objects {name: [x, y] or [x, y, z]} in the order of their set;
    vertices are left to result.npz and the OBJ files."""
    entry = {'id': number, 'depth_source': person.depth_source}
    for key, value in person_arrays(person, joints, camera).items():
        if 'vertices' not in key:
            value = np.round(value.astype(float), 8).tolist()
            entry[key] = dict(zip(joints.names, value, strict=True)) if 'joints' in key else value
    return entry


def json_text(origin, camera, joints, people):
    """The record of a picture as JSON."""
    record = header(origin, camera, joints)
    record['people'] = [person_entry(number, person, joints, camera) for number, person in enumerate(people)]
    return compact(record)


def compact(record):
    """JSON text with one line for each list of plain values."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r'\[\n([^][{}]*)\n *\]', lambda found: f'[{" ".join(found[1].split())}]', text) + '\n'


def write_npz(path, origin, camera, joints, faces, people):
    """The record of a picture as npz without pickled objects: each array of UNITS stacked over the people, and `meta`,
    a JSON text with the model, the camera and the units."""
    rows = [person_arrays(person, joints, camera) for person in people]
    stacked = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    meta = np.array(json.dumps(header(origin, camera, joints)))
    write_arrays(path, {**stacked, 'joint_names': np.array(joints.names), 'faces': np.asarray(faces, np.int32),
                        'focal': camera.focal, 'princpt': camera.princpt, 'meta': meta})
