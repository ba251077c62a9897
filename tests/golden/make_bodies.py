"""Write stand-in SMPL / MANO model files, in the layout of the official pickles, for parity tests.

The bodies are random but body-like: capsule surfaces around the bones of a person or a right hand. They carry no
licensed data. The same seeds give the same files on every machine.

    python tests/golden/make_bodies.py OUT_DIR

writes basicModel_{neutral,m,f}_lbs_10_207_0_v1.0.0.pkl, MANO_RIGHT.pkl and the two (17, 6890) joint regressors.
"""
import os
import pickle
import sys

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

SMPL_PARENTS = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]
SMPL_JOINTS = np.array([  # rest position of the 24 joints, metres, y up
    [0, -.22, .03], [.07, -.31, .01], [-.07, -.31, .01], [0, -.11, 0], [.10, -.70, 0], [-.10, -.70, 0], [0, .03, .02],
    [.09, -1.1, -.04], [-.09, -1.1, -.04], [0, .08, .03], [.11, -1.16, .08], [-.11, -1.16, .08], [0, .29, -.01],
    [.08, .2, 0], [-.08, .2, 0], [0, .38, .04], [.17, .23, -.01], [-.17, .23, -.01], [.43, .22, -.03],
    [-.43, .22, -.03], [.68, .22, -.03], [-.68, .22, -.03], [.77, .22, -.04], [-.77, .22, -.04]])
MANO_PARENTS = [-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11, 0, 13, 14]
MANO_JOINTS = np.zeros((16, 3))
for finger, (dx, dz) in enumerate([(.09, .02), (.09, 0), (.07, -.04), (.08, -.02), (.03, .04)]):
    for segment in range(3):
        MANO_JOINTS[1 + 3 * finger + segment] = [dx + .03 * segment, 0, dz + .003 * segment]

# the SMPL joint near which each joint of the two 17-joint sets is placed
H36M_AT = [0, 2, 5, 8, 1, 4, 7, 6, 12, 15, 15, 16, 18, 20, 17, 19, 21]
COCO_AT = [15, 15, 15, 15, 15, 16, 17, 18, 19, 20, 21, 1, 2, 4, 5, 7, 8]


def capsule_surface(joints, parents, n, radius, rng):
    """n points on tubes around the bones: (n, 3) points and (n, 2) the bone's (parent, child)."""
    bones = [(p, j) for j, p in enumerate(parents) if p >= 0]
    length = np.array([np.linalg.norm(joints[b] - joints[a]) for a, b in bones])
    count = np.floor(length / length.sum() * n).astype(int)
    count[0] += n - count.sum()
    points, owners = [], []
    for (a, b), c in zip(bones, count, strict=True):
        t = rng.random(c)
        d = joints[b] - joints[a]
        d = d / (np.linalg.norm(d) + 1e-9)
        u = rng.normal(size=(c, 3))
        u -= (u @ d)[:, None] * d
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        points.append(joints[a] + t[:, None] * (joints[b] - joints[a]) + radius * u)
        owners += [(a, b)] * c
    return np.concatenate(points), np.array(owners)


def body(joints, parents, n_vertex, n_face, n_pose_basis, seed, radius):
    rng = np.random.default_rng(seed)
    v, own = capsule_surface(joints, parents, n_vertex, radius, rng)
    perm = rng.permutation(n_vertex)
    v, own = v[perm], own[perm]
    n_joint = len(joints)
    weights = np.zeros((n_vertex, n_joint))
    weights[np.arange(n_vertex), own[:, 0]] = .85
    weights[np.arange(n_vertex), own[:, 1]] += .15
    regressor = np.zeros((n_joint, n_vertex))
    for j in range(n_joint):
        near = np.argsort(((v - joints[j]) ** 2).sum(1))[:n_vertex // 170]
        w = rng.uniform(.9, 1.1, len(near))
        regressor[j, near] = w / w.sum()
    near = cKDTree(v).query(v, 6)[1]
    i = np.arange(n_face)
    start, step = i % n_vertex, i // n_vertex
    faces = np.stack([near[start, 0], near[start, 1 + step], near[start, 3 + step]], 1)
    kintree = np.array([[4294967295 if p < 0 else p for p in parents], list(range(n_joint))], dtype=np.uint32)
    return dict(v_template=v, weights=weights, J_regressor=sp.csc_matrix(regressor), f=faces.astype(np.uint32),
                shapedirs=rng.normal(size=(n_vertex, 3, 10)) * .01,
                posedirs=rng.normal(size=(n_vertex, 3, n_pose_basis)) * .002,
                kintree_table=kintree, J=regressor @ v, bs_type='lrotmin', bs_style='lbs')


def write(root):
    os.makedirs(root, exist_ok=True)
    for gender, scale, seed in (('neutral', 1, 1), ('m', 1.03, 2), ('f', .96, 3)):
        model = body(SMPL_JOINTS * scale, SMPL_PARENTS, 6890, 13776, 207, seed, .07)
        with open(f'{root}/basicModel_{gender}_lbs_10_207_0_v1.0.0.pkl', 'wb') as f:
            pickle.dump(model, f, protocol=2)
    hand = body(MANO_JOINTS, MANO_PARENTS, 778, 1538, 135, 7, .008)
    rng = np.random.default_rng(8)
    hand['hands_mean'] = rng.normal(size=45) * .2
    hand['hands_components'] = np.linalg.qr(rng.normal(size=(45, 45)))[0]
    hand['hands_coeffs'] = rng.normal(size=(10, 45))
    with open(f'{root}/MANO_RIGHT.pkl', 'wb') as f:
        pickle.dump(hand, f, protocol=2)
    rng = np.random.default_rng(11)
    with open(f'{root}/basicModel_neutral_lbs_10_207_0_v1.0.0.pkl', 'rb') as f:
        v = pickle.load(f)['v_template']
    for name, at in (('J_regressor_h36m_correct', H36M_AT), ('J_regressor_coco_hip_smpl', COCO_AT)):
        regressor = np.zeros((17, 6890))
        for j, s in enumerate(at):
            near = np.argsort(((v - SMPL_JOINTS[s]) ** 2).sum(1))[j % 3:40]
            w = rng.uniform(.9, 1.1, len(near))
            regressor[j, near] = w / w.sum()
        np.save(f'{root}/{name}.npy', regressor)


if __name__ == '__main__':
    write(sys.argv[1])
