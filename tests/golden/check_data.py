"""Compare the loaders and the evaluation with the reference's recorded samples and metrics.

    python tests/golden/check_data.py tests/golden/data_*.npz

Writes the tiny data sets into the temporary folder, loads every sample with the recorded augmentations, and evaluates
recorded network outputs. Exits 1 and lists what is off.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from common.utils.preprocessing import AugParams  # noqa: E402
from data import build_dataset  # noqa: E402
from main.config import Config  # noqa: E402
from tests.golden import make_bodies, make_datasets  # noqa: E402

TOLERANCE = {  # per key: largest allowed absolute difference
    'img': 2e-2, 'orig_joint_img': 3e-3, 'fit_joint_img': 3e-3, 'fit_mesh_img': 3e-3, 'orig_joint_cam': 1e-5,
    'fit_joint_cam': 2e-5, 'shape_param': 1e-6, 'bb2img_trans': 1e-3, 'fit_mesh_coord_cam': 2e-5,
    'orig_joint_valid': 0, 'is_valid_fit': 0, 'is_3D': 0}
SPLITS = {
    'hand': (('FreiHAND', 'train'), ('FreiHAND', 'test')),
    'body': (('Human36M', 'train'), ('Human36M', 'test'), ('MuCo', 'train'), ('MSCOCO', 'train'), ('MSCOCO', 'test'),
             ('PW3D', 'test'))}
STAGES = {'hand': ('lixel',), 'body': ('lixel', 'param')}


class Comparison:
    """Collects faults; `want`: the recorded arrays."""

    def __init__(self, want):
        self.want, self.faults, self.worst, self.compared = want, [], {}, 0

    def near(self, where, key, got, ref, tolerance):
        self.compared += 1
        got, ref = np.asarray(got, np.float64), np.asarray(ref, np.float64)
        if got.shape != ref.shape:
            self.faults.append(f'{where} {key}: shape {got.shape}, not {ref.shape}')
            return
        diff = float(np.max(np.abs(got - ref))) if got.size else 0.
        self.worst[key] = max(self.worst.get(key, 0), diff)
        if not diff <= tolerance:
            self.faults.append(f'{where} {key}: off by {diff:.3g}, allowed {tolerance:g}')

    def mask(self, where, key, got):
        """Masks may differ in a point on the border."""
        self.compared += 1
        ref = self.want.get(where + key)
        if ref is None:
            got, ref = got[::53], self.want[where + key + '/sub']
        if got.shape != ref.shape or (got != ref).mean() > .01:
            self.faults.append(f'{where}{key}: {got.shape}, or too many entries differ')


def rotations(pose):
    return np.stack([cv2.Rodrigues(p.astype(np.float64))[0] for p in np.asarray(pose).reshape(-1, 3)])


def compare_item(check, where, item, is_hand):
    """One sample against everything recorded under the prefix `where`."""
    keys = {k[len(where):].split('/')[0] for k in check.want if k.startswith(where)}
    check.faults += [f'{where}{k}: missing' for k in sorted(keys - set(item))]
    for k in keys & set(item):
        v, ref, sub = np.asarray(item[k]), check.want.get(where + k), check.want.get(f'{where}{k}/sub')
        if k.endswith('_trunc'):
            check.mask(where, k, v)
        elif k == 'pose_param':
            check.near(where, 'pose_param (rotation)', rotations(v), rotations(ref), 2e-4)
        elif k == 'img':  # OpenCV versions round the warp differently: compare the mean
            check.near(where, 'img', np.abs(v[:, ::16, ::16] - sub).mean(), 0, 5e-3)
        elif sub is not None:
            check.near(where, k, v[::53], sub, TOLERANCE[k])
        else:  # the reference leaves hands in millimetres
            check.near(where, k, v, ref / 1000 if is_hand and k == 'fit_joint_cam' else ref, TOLERANCE[k])


def compare_evaluation(check, where, data, rng, kind):
    """Metrics of random network outputs, drawn in the recorded order."""
    n, verts = len(data), 778 if kind == 'hand' else 6890
    outs = {name: np.zeros((n, verts, 3), np.float32) for name in ('mesh_coord_img', 'mesh_coord_cam')}
    for i in range(n):
        outs['mesh_coord_img'][i] = rng.random((verts, 3)) * np.array([20, 40, 10]) + np.array([20, 10, 27])
        outs['mesh_coord_cam'][i] = rng.normal(size=(verts, 3)) * .3
    items = [data.get_item(i, None) for i in range(n)]
    outs['bb2img_trans'] = np.stack([meta['bb2img_trans'] for _, _, meta in items])
    if 'fit_mesh_coord_cam' in items[0][1]:
        outs['mesh_coord_cam_target'] = np.stack([targets['fit_mesh_coord_cam'] for _, targets, _ in items])
    for stage in STAGES[kind]:
        got = data.evaluate({k: v.copy() for k, v in outs.items() if stage == 'param' or k != 'mesh_coord_cam'}, 0)
        prefix = f'{where}/eval_{stage}/'
        for k in (k[len(prefix):] for k in check.want if k.startswith(prefix)):
            if k not in got:
                check.faults.append(f'{prefix}{k}: missing')
                continue
            v = got[k][:, ::53] if k == 'mesh_out' else got[k]
            check.near(prefix, k, v, check.want[prefix + k], .02 if 'mpjpe' in k else 2e-5)


def check_file(path, bodies, folder):
    """Compare with one recording. bodies: folder of make_bodies; folder: where the data sets are or will be written.
    Returns a Comparison."""
    check = Comparison(dict(np.load(path)))
    kind, seed = str(check.want['kind']), int(check.want['seed'])
    if not os.path.exists(os.path.join(folder, 'FreiHAND', 'rootnet_output')):
        make_datasets.main(bodies, folder, seed)
    cfg = Config()
    cfg.override([f'data_dir={folder}', f'human_model_dir={bodies}', f'output_dir={folder}/output'])
    if kind == 'hand':
        cfg.override(['trainset_3d=[FreiHAND]', 'trainset_2d=[]', 'testset=FreiHAND'])
    augs = [json.loads(str(a)) for a in check.want['augs']]
    rng = np.random.default_rng(1000 + seed)
    for name, split in SPLITS[kind]:
        data = build_dataset(name, split, cfg)
        where = f'{name}/{"val" if (name, split) == ("MSCOCO", "test") else split}'
        check.near(where, 'len', len(data), check.want[f'{where}/len'], 0)
        for i in range(len(data)):
            for a, (scale, rot, color, flip) in enumerate(augs if split == 'train' else augs[:1]):
                parts = data.get_item(i, AugParams(scale, rot, tuple(color), flip) if split == 'train' else None)
                compare_item(check, f'{where}/{i}/{a}/', {k: v for part in parts for k, v in part.items()},
                             kind == 'hand')
        if split == 'test':
            compare_evaluation(check, where, data, rng, kind)
    return check


def main(paths):
    bodies = os.path.join(tempfile.gettempdir(), 'i2l_stand_in_bodies')
    if not os.path.exists(os.path.join(bodies, 'J_regressor_coco_hip_smpl.npy')):
        make_bodies.write(bodies)
    failed = False
    for path in paths:
        seed = int(np.load(path)['seed'])
        check = check_file(path, bodies, os.path.join(tempfile.gettempdir(), f'i2l_stand_in_data_{seed}'))
        failed |= bool(check.faults)
        for fault in check.faults[:25]:
            print('  ' + fault)
        print('  largest differences: ' + ', '.join(f'{k} {v:.2g}' for k, v in sorted(check.worst.items())))
        print(f'{os.path.basename(path)}: {"FAILED" if check.faults else "ok"}, {len(check.faults)} faults, '
              f'{check.compared} comparisons')
    return failed


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
