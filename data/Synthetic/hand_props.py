"""What is drawn beside a hand: its forearm, bare or in a sleeve, and now and then an object that it holds."""
from collections.abc import Sequence

import numpy as np

from data.Synthetic.geometry import clipped_normal, rotation_about, unit
from data.Synthetic.scene import Mesh
from data.Synthetic.wardrobe import clothing_color

ARM_LENGTH = .25  # metres that are drawn of the forearm
SLEEVE = .4  # share of the hands with a wide sleeve
HELD = .25  # share of the hands with something in the palm
# a forearm whose direction has a smaller z is turned aside: it would hide the hand
TOWARDS_CAMERA = -.4
SIDES = 14  # vertices in each ring of a held object


class HandProps:
    """Adds to the mesh of a hand with the given faces (F, 3) and rest joints (16, 3) in metres.

    palm (3,): unit vector out of the palm, at rest.
    """

    def __init__(self, faces: np.ndarray, rest_joints: np.ndarray, palm: np.ndarray) -> None:
        self.faces = faces
        self.rim = rim_loop(faces)
        self.back = unit(rest_joints[0] - rest_joints[4])  # from the middle knuckle to the wrist
        self.palm = palm

    def __call__(self, rng: np.random.Generator, vertices: np.ndarray, joints: np.ndarray, colors: np.ndarray,
                 rotation: np.ndarray) -> Mesh:
        """The mesh to draw.

        Args:
            rng: random numbers of the sample.
            vertices, joints: posed hand, (V, 3) and (16, 3), metres, camera space.
            colors: (V, 3) in 0..1, RGB.
            rotation: (3, 3) of the root joint, from the rest pose to camera space.
        Returns:
            vertices (W, 3), faces (G, 3), colors (W, 3); the hand's come first.
        """
        parts = [(vertices, self.faces, colors)]
        rim = vertices[self.rim]
        direction = self._forearm_direction(rng, rotation)
        along = np.array([0, .03, .08, ARM_LENGTH])
        forearm = stretched(rim, direction, along, [1, 1.05, 1.2, 1.6])
        parts.append(tube(forearm, colors[self.rim].mean(0)))
        if rng.random() < SLEEVE:
            start = rng.uniform(-.02, .1)
            wide = 1.15 + .25 * start / ARM_LENGTH + rng.uniform(.05, .35)
            along = np.linspace(start, ARM_LENGTH, 3)
            sleeve = stretched(rim, direction, along, [wide, wide * 1.1, wide * 1.4])
            parts.append(tube(sleeve, clothing_color(rng)))
        if rng.random() < HELD:
            parts.append(self._held(rng, joints, rotation))
        return joined(parts)

    def _forearm_direction(self, rng: np.random.Generator, rotation: np.ndarray) -> np.ndarray:
        """Unit vector (3,) from the wrist to the elbow, camera space."""
        flexion = rotation_about(np.cross(self.palm, self.back), clipped_normal(rng, 0, 16, -40, 40))
        deviation = rotation_about(self.palm, clipped_normal(rng, 0, 8, -20, 20))
        direction = rotation @ deviation @ flexion @ self.back
        direction[2] = max(direction[2], TOWARDS_CAMERA)
        return unit(direction)

    def _held(self, rng: np.random.Generator, joints: np.ndarray, rotation: np.ndarray) -> Mesh:
        """A rod or a ball before the palm."""
        across = unit(joints[7] - joints[1])
        axis = rotation_about(rotation @ self.palm, rng.normal(0, 20)) @ across
        if rng.random() < .7:
            radius = rng.uniform(.005, .022)
            half = rng.uniform(.03, .1)
            along = half * np.array([-1, -1, 1, 1])
            radii = radius * np.array([0, 1, 1, 0])
        else:
            radius = rng.uniform(.012, .035)
            angle = np.linspace(0, np.pi, 9)
            along = -radius * np.cos(angle)
            radii = radius * np.sin(angle)
        center = (joints[0] + 2 * joints[1] + 2 * joints[7]) / 5 + rotation @ self.palm * (radius + .014)
        side = unit(np.cross(axis, rotation @ self.palm))
        turn = np.linspace(0, 2 * np.pi, SIDES, endpoint=False)[:, None]
        circle = np.cos(turn) * side + np.sin(turn) * np.cross(axis, side)
        rings = center + along[:, None, None] * axis + radii[:, None, None] * circle
        return tube(rings, clothing_color(rng))


def rim_loop(faces: np.ndarray) -> np.ndarray:
    """Vertex indices (N,) around the one hole of a mesh with faces (F, 3), in order."""
    edges = {(int(a), int(b)) for face in faces for a, b in zip(face, np.roll(face, -1), strict=True)}
    following = {a: b for a, b in edges if (b, a) not in edges}
    loop = [min(following)]
    while following[loop[-1]] != loop[0]:
        loop.append(following[loop[-1]])
    return np.array(loop)


def stretched(ring: np.ndarray, direction: np.ndarray, along: np.ndarray,
              scales: Sequence[float]) -> np.ndarray:
    """Copies (R, N, 3) of a ring (N, 3), moved by along (R,) metres in a direction (3,) and enlarged by scales (R,)."""
    center = ring.mean(0)
    return center + np.multiply.outer(scales, ring - center) + np.multiply.outer(along, direction)[:, None]


def tube(rings: np.ndarray, color: np.ndarray) -> Mesh:
    """The surface through rings (R, N, 3) of vertices, its outside outwards, in one colour (3,)."""
    count, size = rings.shape[:2]
    index = np.arange(count * size).reshape(count, size)
    a = index[:-1]
    b = index[1:]
    c = np.roll(b, -1, 1)
    d = np.roll(a, -1, 1)
    halves = np.stack([a, b, c], -1), np.stack([a, c, d], -1)
    faces = np.concatenate(halves).reshape(-1, 3)
    outwards = (rings - rings.mean(1, keepdims=True)).reshape(-1, 3)
    vertices = rings.reshape(-1, 3)
    first, second, third = (vertices[faces[:, k]] for k in range(3))
    if (np.cross(second - first, third - first) * outwards[faces[:, 0]]).sum() < 0:
        faces = faces[:, ::-1]
    return vertices, faces, np.tile(color, (len(vertices), 1))


def joined(parts: Sequence[Mesh]) -> Mesh:
    """Several meshes as one."""
    starts = np.cumsum([0] + [len(vertices) for vertices, _, _ in parts])
    vertices = np.concatenate([vertices for vertices, _, _ in parts]).astype(np.float32)
    faces = np.concatenate([faces + start for (_, faces, _), start in zip(parts, starts[:-1], strict=True)])
    colors = np.concatenate([colors for _, _, colors in parts]).astype(np.float32)
    return vertices, np.ascontiguousarray(faces, np.int32), colors
