"""What `--smooth` of the demo does to the overlays of a video: how much steadier they are, and how far they move.

    python -m tool.bench.smoothing

A person of the bundled body is put into the frames of a video by numbers, without a network: standing still in noise of
2 pixels (of the whole mesh, and of each vertex and angle), and moving evenly without noise, walking, and jumping.
"""
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from common.demo.people.body import body_meshes
from common.demo.people.placer import Placer
from common.demo.people.prediction import BodyParams, Camera, Prediction
from common.demo.people.sequence import Sequence
from common.human_model import HumanModel, get_human_model
from common.utils.transforms import cam2pixel

FPS = 25.
FRAMES = 75
FOCAL = 1500.  # pixels
DEPTH = 5.  # metres
PIXELS_PER_METRE = FOCAL / DEPTH
SIZE = (720, 1280)  # height, width
PEOPLE = 4  # where there is noise
NOISE = 2.  # pixels
ANGLE_NOISE = 0.05  # radians
HIPS_AND_KNEES = (3, 6, 12, 15)  # places of the angle that swings the leg, in the pose
SHOULDERS = (50, 53)  # places of the angle that lifts the arm

Numbers = tuple[float, float, float]  # see `measure`


@dataclass
class Scene:
    """A person in T frames, or several alike but for their noise."""
    poses: np.ndarray  # (T, 72) radians
    trans: np.ndarray  # (T, 3) metres, of the root joint
    people: int = 1
    person_noise: float = 0.  # pixels, of the whole mesh
    vertex_noise: float = 0.  # pixels, of each vertex
    angle_noise: float = 0.  # radians, of each angle


def scenes() -> dict[str, Scene]:
    """The scenes that are measured, by name."""
    seconds = np.arange(FRAMES) / FPS
    upright = np.zeros((FRAMES, 72))
    upright[:, 0] = np.pi  # from y up to y down
    place = np.tile([-1., 0, DEPTH], (FRAMES, 1))
    found = {'still, person': Scene(upright, place, PEOPLE, person_noise=NOISE),
             'still, vertices': Scene(upright, place, PEOPLE, vertex_noise=NOISE, angle_noise=ANGLE_NOISE)}
    for speed in (2, 10):
        moving = place.copy()
        moving[:, 0] += speed / PIXELS_PER_METRE * np.arange(FRAMES)
        found[f'{speed} px per frame'] = Scene(upright, moving)
    steps = np.sin(2 * np.pi * seconds)
    walking = upright.copy()
    for column, angle in zip(HIPS_AND_KNEES, (0.5, -0.5, 0.3, -0.3), strict=True):
        walking[:, column] += angle * steps
    for column, angle in zip(SHOULDERS, (0.8, -0.8), strict=True):
        walking[:, column] += angle * steps
    path = place.copy()
    path[:, 0] += 1.2 * seconds
    path[:, 1] += 0.02 * np.cos(4 * np.pi * seconds)
    found['walking'] = Scene(walking, path)
    jumping = place.copy()
    flight = np.clip(seconds % 1 - 0.2, 0, 0.6)
    jumping[:, 1] -= 3 * flight - 5 * flight ** 2
    found['jumping'] = Scene(upright, jumping)
    return found


def overlays(scene: Scene, human_model: HumanModel, smooth: bool, folder: Path) -> dict[str, np.ndarray]:
    """Where the vertices of both meshes of all people are drawn: {kind: (people, T, V, 2) pixels}."""
    rng = np.random.default_rng(0)
    camera = Camera(np.full(2, FOCAL), np.array([SIZE[1] / 2, SIZE[0] / 2]), 'given')
    sequence = Sequence(human_model, folder)
    for person in range(scene.people):
        for frame, prediction in enumerate(_predictions(scene, human_model, camera, rng)):
            sequence.append(frame, person, prediction)
    if smooth:
        sequence.smooth({frame: frame / FPS for frame in range(FRAMES)})
    drawn: dict[str, list[np.ndarray]] = {'lixel': [], 'param': []}
    for person in range(scene.people):
        _, placed = Placer(2.)(sequence.predictions(sequence.rows_of(person).tolist()), SIZE, camera=camera)
        for one in placed:
            for kind, mesh in one.meshes.items():
                drawn[kind].append(cam2pixel(mesh, camera.focal, camera.princpt)[:, :2])
    sequence.meshes.close()
    return {kind: np.stack(pixels).reshape(scene.people, FRAMES, -1, 2) for kind, pixels in drawn.items()}


def _predictions(scene: Scene, human_model: HumanModel, camera: Camera, rng: np.random.Generator) -> list[Prediction]:
    """What a network would say of each frame."""
    vertices, roots = _bodies(human_model, scene.poses)
    poses = scene.poses + scene.angle_noise * rng.normal(size=scene.poses.shape)
    noisy, noisy_roots = _bodies(human_model, poses)
    found = []
    for frame, trans in enumerate(scene.trans):
        mesh_img = cam2pixel(vertices[frame] - roots[frame] + trans, camera.focal, camera.princpt)
        mesh_img[:, 2] -= trans[2]
        mesh_img[:, :2] += scene.person_noise * rng.normal(size=2)
        mesh_img[:, :2] += scene.vertex_noise * rng.normal(size=(len(mesh_img), 2))
        low = mesh_img[:, :2].min(0)
        box = np.append(low, mesh_img[:, :2].max(0) - low).astype(np.float32)
        body = BodyParams(poses[frame].astype(np.float32), np.zeros(10, np.float32), noisy[frame] - noisy_roots[frame],
                          noisy_roots[frame])
        found.append(Prediction(box, box, mesh_img.astype(np.float32), body))
    return found


def _bodies(human_model: HumanModel, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (T, V, 3) and root joints (T, 3), metres."""
    with torch.inference_mode():
        vertices, roots = body_meshes(human_model, torch.from_numpy(poses).float(), torch.zeros(len(poses), 10))
    return vertices.numpy(), roots.numpy()


def measure(names: Collection[str] | None = None) -> dict[str, dict[str, Numbers]]:
    """The numbers of some scenes, or of all: {scene: {kind of mesh: (moved, jitter, steps)}}.

    moved: mean distance of the smoothed from the unsmoothed overlay, pixels. jitter: by how much the distance from the
    mean place falls, 0 to 1. steps: the same for the movement from frame to frame.
    """
    human_model = get_human_model('open_body')
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, scene in scenes().items():
            if names is not None and name not in names:
                continue
            before = overlays(scene, human_model, False, Path(folder))
            after = overlays(scene, human_model, True, Path(folder))
            found[name] = {kind: _compare(before[kind], after[kind]) for kind in before}
    return found


def _compare(before: np.ndarray, after: np.ndarray) -> Numbers:
    """(people, T, V, 2) pixels, twice -> the numbers of `measure`."""
    moved = np.linalg.norm(after - before, axis=-1).mean()
    jitter = 1 - _spread(after) / _spread(before)
    steps = 1 - np.diff(after, axis=1).std() / np.diff(before, axis=1).std()
    return float(moved), float(jitter), float(steps)


def _spread(values: np.ndarray) -> float:
    """Standard deviation over time, which is the second axis."""
    return float((values - values.mean(1, keepdims=True)).std())


if __name__ == '__main__':
    print(f'{"":18}{"mesh":7}{"moved":>9}{"jitter":>9}{"steps":>9}')
    for scene_name, kinds in measure().items():
        for kind_name, (pixels, less_jitter, less_steps) in kinds.items():
            print(f'{scene_name:18}{kind_name:7}{pixels:6.2f} px{-less_jitter:9.1%}{-less_steps:9.1%}')
