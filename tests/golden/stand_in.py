"""What the tiny data sets are made of: a body model in float64, pictures of noise, cameras, JSON files."""
import json
import os
import pickle

import cv2
import numpy as np


def rodrigues(r):
    return cv2.Rodrigues(np.asarray(r, dtype=np.float64).reshape(3, 1))[0]


class Body:
    """Linear blend skinning of a stand-in model file, in float64."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.d = pickle.load(f, encoding='latin1')

    def __call__(self, pose, shape, trans, mean=None):
        """pose (K*3,), shape (10,), trans (3,), mean pose (K*3 - 3,) -> vertices (V, 3) and joints (K, 3), metres."""
        d = self.d
        pose = np.array(pose, float)
        if mean is not None:
            pose[3:] += mean
        rot = [rodrigues(p) for p in pose.reshape(-1, 3)]
        v = d['v_template'] + d['shapedirs'] @ np.array(shape)
        joints = d['J_regressor'] @ v
        v = v + d['posedirs'] @ np.concatenate([(r - np.eye(3)).ravel() for r in rot[1:]])
        parents = d['kintree_table'][0].astype(np.int64)
        g = []
        for j, r in enumerate(rot):
            m = np.eye(4)
            m[:3, :3] = r
            m[:3, 3] = joints[j] - (joints[parents[j]] if j else 0)
            g.append(g[parents[j]] @ m if j else m)
        skin = []
        for j, m in enumerate(g):
            m = m.copy()
            m[:3, 3] -= m[:3, :3] @ joints[j]
            skin.append(m)
        t = np.einsum('vj,jab->vab', d['weights'], np.array(skin))
        out = np.einsum('vab,vb->va', t, np.concatenate([v, np.ones((len(v), 1))], 1))[:, :3]
        return out + trans, np.array([m[:3, 3] for m in g]) + trans


def dump(obj, *path):
    path = os.path.join(*path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        json.dump(obj, f)


def noise_image(rng, height, width, *path):
    """Smooth noise, stored without loss."""
    path = os.path.join(*path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    small = rng.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    big = cv2.resize(small, (width, height), interpolation=cv2.INTER_NEAREST)
    big = np.clip(big.astype(int) + rng.integers(-20, 21, big.shape), 0, 255).astype(np.uint8)
    cv2.imwrite(path, big, [cv2.IMWRITE_PNG_COMPRESSION, 9])


def project(x, f, c):
    return np.stack([x[:, 0] / x[:, 2] * f[0] + c[0], x[:, 1] / x[:, 2] * f[1] + c[1]], 1)


def box(uv, width, height):
    """xywh box of pixels (N, 2), clipped to the picture, at least 20 pixels large."""
    lo, hi = uv.min(0), uv.max(0)
    lo = np.maximum(lo, [0, 0])
    hi = np.minimum(hi, [width - 1, height - 1])
    return [float(lo[0]), float(lo[1]), float(max(hi[0] - lo[0], 20)), float(max(hi[1] - lo[1], 20))]


def grown(b, x, y):
    """A box with x and y pixels more on each side, like RootNet's."""
    return [b[0] - x, b[1] - y, b[2] + 2 * x, b[3] + 2 * y]


def upright(rng):
    """A root rotation that turns the y-up body to the y-down camera, about a random heading."""
    yaw = rodrigues([0, rng.uniform(-np.pi, np.pi), 0])
    tilt = rodrigues(rng.normal(size=3) * .15)
    return tilt @ np.diag([1., -1., -1.]) @ yaw


def to_vec(r):
    return cv2.Rodrigues(r)[0].ravel()


def pose_shape(rng):
    """A random body: pose (72,), and a shape (10,) that goes beyond 3 for about every second."""
    pose = rng.normal(size=72) * .25
    return pose, rng.normal(size=10) * (1.8 if rng.random() < .5 else .7)


def as_param(pose, shape, trans, **more):
    return dict(pose=pose.tolist(), shape=shape.tolist(), trans=trans.tolist(), **more)
