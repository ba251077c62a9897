"""Finding the official file of a body model, and checking that it is the right one."""
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.files.arrays import read_arrays

SHAPE_NUM = 10   # shape parameters in use; newer files have 300, of which these are the first
GENDERS = ('neutral', 'male', 'female')
VERTEX_NUMS = {778: 'MANO', 5023: 'FLAME', 6890: 'SMPL', 10475: 'SMPL-X'}
ARRAY_NAMES = ('v_template', 'f', 'shapedirs', 'posedirs', 'J_regressor', 'weights', 'kintree_table', 'hands_mean')


@dataclass(frozen=True)
class ModelSpec:
    """What tells the official file of a body model from others, and what to say if it is missing.

    Attributes:
        title: Name of the model.
        folder: Folder in human_model_dir that is searched too.
        stems: {gender: file names without the ending}; the first that exists is taken.
        urls: {gender: where to register}.
        purpose: What the model is for, for the message.
        vertex_num: V.
        face_num: F.
        parents: (K,) parent of each joint, -1 for the root.
        has_mean_pose: The file holds a mean pose that every pose is relative to.
    """
    title: str
    folder: str
    stems: dict[str, tuple[str, ...]]
    urls: dict[str, str]
    purpose: str
    vertex_num: int
    face_num: int
    parents: tuple[int, ...]
    has_mean_pose: bool = False


@dataclass(frozen=True)
class BodyArrays:
    """The constants of a body model with V vertices, F faces and K joints; lengths in metres.

    Attributes:
        v_template: (V, 3) float32, the mean shape at rest.
        faces: (F, 3) int64 vertex indices.
        shapedirs: (V, 3, 10) float32, the basis of shapes.
        posedirs: ((K-1)*9, V*3) float32, or ((K-1)*9, 3) zeros for a model without pose-dependent shape.
        joint_regressor: (K, V) float32.
        weights: (V, K) float32 skinning weights.
        parents: (K,) int64.
        pose_mean: (K*3,) float32, radians.
    """
    v_template: np.ndarray
    faces: np.ndarray
    shapedirs: np.ndarray
    posedirs: np.ndarray
    joint_regressor: np.ndarray
    weights: np.ndarray
    parents: np.ndarray
    pose_mean: np.ndarray


def find_model_file(spec: ModelSpec, model_dir: Path, gender: str) -> Path:
    """Find the file of a model: .pkl or .npz, in model_dir or its sub-folder, upper and lower case alike.

    Raises:
        UserError: It is missing; the message has every name tried, what the model is for and where to register.
    """
    if gender not in spec.stems:
        raise UserError(f'{spec.title} has no {gender!r} model; there is {", ".join(spec.stems)}')
    names = [f'{stem}{suffix}' for stem in spec.stems[gender] for suffix in ('.pkl', '.npz')]
    for folder in (model_dir, model_dir / spec.folder):
        present = _files_in(folder)
        for name in names:
            path = present.get(name.lower())
            if path is not None and path.is_file():
                return path
    which = spec.title
    if len(spec.stems) > 1:
        which = f'{gender} {spec.title}'
    raise UserError(
        f'the {which} model ({spec.purpose}) is missing: get {names[0]} from {spec.urls[gender]} and put it into '
        f'{model_dir} (human_model_dir) or {model_dir / spec.folder}; other names it may have: {", ".join(names[1:])}')


def _files_in(folder: Path) -> dict[str, Path]:
    """{name in small letters: path} of a folder; empty where there is none. UserError: it cannot be listed."""
    try:
        if not folder.is_dir():
            return {}
        return {path.name.lower(): path for path in sorted(folder.iterdir())}
    except OSError as error:
        raise UserError(f'{folder}, the folder of the body models, cannot be read ({error.strerror}): see to its '
                        'permissions') from error


def load_model_file(spec: ModelSpec, path: Path) -> BodyArrays:
    """Read and check an official file. UserError: it is damaged or belongs to another model."""
    arrays = read_arrays(path, ARRAY_NAMES)
    flat = arrays.get('posedirs')
    if flat is not None and flat.shape == (9 * (len(spec.parents) - 1), 3 * spec.vertex_num):  # as smplx keeps them
        arrays['posedirs'] = flat.T.reshape(spec.vertex_num, 3, -1)
    _check(spec, path, arrays)
    pose_mean = np.zeros(len(spec.parents) * 3, np.float32)
    if spec.has_mean_pose:
        pose_mean[3:] = arrays['hands_mean']
    return BodyArrays(
        v_template=arrays['v_template'].astype(np.float32),
        faces=arrays['f'].astype(np.int64),
        shapedirs=np.array(arrays['shapedirs'][:, :, :SHAPE_NUM], np.float32, order='C'),
        posedirs=np.array(arrays['posedirs'].reshape(3 * spec.vertex_num, -1).T, np.float32, order='C'),
        joint_regressor=arrays['J_regressor'].astype(np.float32),
        weights=arrays['weights'].astype(np.float32),
        parents=np.array(spec.parents),
        pose_mean=pose_mean)


def _check(spec: ModelSpec, path: Path, arrays: dict[str, np.ndarray]) -> None:
    """UserError unless the arrays are those of the model."""
    def wrong(what: str) -> UserError:
        url = next(iter(spec.urls.values()))
        return UserError(f'{path} is not the {spec.title} model: {what}; see {url}')

    if 'v_template' not in arrays:
        raise wrong('it has no v_template, so it is not a body model')
    if arrays['v_template'].ndim == 0:
        raise wrong('its v_template is a single number')
    vertex_num = len(arrays['v_template'])
    if vertex_num != spec.vertex_num:
        other = ''
        if vertex_num in VERTEX_NUMS:
            other = f' (that is {VERTEX_NUMS[vertex_num]})'
        raise wrong(f'it has {vertex_num} vertices{other}, {spec.title} has {spec.vertex_num}')
    for name, shape in _expected_shapes(spec).items():
        if name not in arrays:
            raise wrong(f'it has no {name}')
        found = arrays[name].shape
        if len(found) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found, strict=True)):
            raise wrong(f'its {name} has the shape {found}, expected {shape}')
        if not np.isfinite(arrays[name]).all():
            raise wrong(f'its {name} has values that are not finite')
    if arrays['shapedirs'].shape[2] < SHAPE_NUM:
        raise wrong(f'it has {arrays["shapedirs"].shape[2]} shape components, {SHAPE_NUM} are needed')
    if arrays['f'].min() < 0 or arrays['f'].max() >= spec.vertex_num:
        raise wrong('its faces use vertices that it does not have')
    if not np.array_equal(arrays['kintree_table'][0, 1:], spec.parents[1:]):   # the root's entry is -1 or 2**32 - 1
        raise wrong('its joints are connected in another way')


def _expected_shapes(spec: ModelSpec) -> dict[str, tuple[int | None, ...]]:
    """{array: its shape}, None where any size will do."""
    vertices = spec.vertex_num
    joints = len(spec.parents)
    shapes: dict[str, tuple[int | None, ...]] = {
        'v_template': (vertices, 3),
        'f': (spec.face_num, 3),
        'weights': (vertices, joints),
        'J_regressor': (joints, vertices),
        'kintree_table': (2, joints),
        'shapedirs': (vertices, 3, None),
        'posedirs': (vertices, 3, 9 * (joints - 1)),
    }
    if spec.has_mean_pose:
        shapes['hands_mean'] = (3 * (joints - 1),)
    return shapes
