"""Tiny copies of official releases, and model files to go with them, for the tests of the converters."""
import io
import json
import pickle
import struct
from pathlib import Path

import cv2
import numpy as np
import torch

from common.human_model.open_model import load_open_model
from data import build_dataset
from tool.check_assets import settings_for


def write_body_models(folder):
    """SMPL_{MALE,FEMALE,NEUTRAL}.npz, MANO_RIGHT.npz: open models in the official layout; genders differ in size."""
    for name, source, size in (('SMPL_MALE', 'open_body', 1.04), ('SMPL_FEMALE', 'open_body', .95),
                               ('SMPL_NEUTRAL', 'open_body', 1.), ('MANO_RIGHT', 'open_hand', 1.)):
        arrays = load_open_model(source)[0]
        joints = len(arrays.parents)
        vertices = len(arrays.v_template)
        kintree = np.stack([np.where(arrays.parents < 0, 2 ** 32 - 1, arrays.parents), np.arange(joints)])
        np.savez_compressed(
            folder / f'{name}.npz', v_template=size * arrays.v_template, f=arrays.faces.astype(np.uint32),
            shapedirs=arrays.shapedirs, posedirs=np.zeros((vertices, 3, 9 * (joints - 1)), np.float32),
            J_regressor=arrays.joint_regressor, weights=arrays.weights, kintree_table=kintree.astype(np.uint32),
            hands_mean=np.random.default_rng(0).normal(size=3 * (joints - 1)) * .1)
    return folder


class Python2Pickler(pickle._Pickler):
    """Protocol 2 with the strings and NumPy names that Python 2 wrote."""
    dispatch = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        data = value if isinstance(value, bytes) else value.encode('latin1')
        self.write(b'U' + struct.pack('<B', len(data)) if len(data) < 256 else b'T' + struct.pack('<i', len(data)))
        self.write(data)
        self.memoize(value)

    def name(self, module, attribute):
        self.write(f'c{module}\n{attribute}\n'.encode())

    def save_array(self, array):
        self.name('numpy.core.multiarray', '_reconstruct')
        self.write(b'(')
        self.name('numpy', 'ndarray')
        self.save((0,))
        self.save('b')
        self.write(b'tR')
        self.memoize(array)
        self.write(b'(')
        for part in (1, array.shape):
            self.save(part)
        self.name('numpy', 'dtype')
        self.save((array.dtype.str[1:], 0, 1))
        self.write(b'R')
        self.save((3, array.dtype.str[0], None, None, None, -1, -1, 0))
        self.write(b'b')
        for part in (False, array.tobytes()):
            self.save(part)
        self.write(b'tb')

    dispatch[str] = dispatch[bytes] = save_string
    dispatch[np.ndarray] = save_array


def write_python2_pickle(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    Python2Pickler(buffer, 2).dump(content)
    path.write_bytes(buffer.getvalue())


def write_list(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([np.asarray(array).tolist() for array in arrays]))


def write_hidden_twins(folder):
    """Beside every file below a folder the `._NAME` that macOS writes when it copies it to another system."""
    for path in sorted(folder.rglob('*')):
        if path.is_file():
            path.with_name(f'._{path.name}').write_bytes(b'\0\5\x16\7\0\2\0\0Mac OS X')


def load_converted(name, split, data_dir, model_dir):
    """The data set that the converted files in `data_dir`/`name` make, with blank images and no RootNet file."""
    cfg = settings_for(name, [f'data_dir={data_dir}', f'human_model_dir={model_dir}', 'use_gt_info=true'])
    (data_dir / 'Human36M').mkdir(exist_ok=True)
    np.save(data_dir / 'Human36M/J_regressor_h36m_correct.npy', load_open_model('open_body')[2]['h36m'])
    dataset = build_dataset(name, split, cfg)
    for sample in dataset.samples:
        Path(sample.img_path).parent.mkdir(parents=True, exist_ok=True)
        if not Path(sample.img_path).exists():
            cv2.imwrite(sample.img_path, np.zeros((*sample.img_shape, 3), np.uint8))
    return dataset


def load_json(path):
    return json.loads(Path(path).read_text())


def run_model(model, pose, shape, trans):
    """Vertices (V, 3) and kinematic joints (K, 3) of one body, float64."""
    values = [torch.tensor(np.array(value)[None], dtype=torch.float64) for value in (pose, shape, trans)]
    vertices, joints = model.double()(*values)
    return vertices[0].numpy(), joints[0].numpy()


def run_fit(model, fit):
    return run_model(model, fit['pose'], fit['shape'], fit['trans'])


def pixel_box(points, focal, princpt, width, height):
    """Tight xywh box of (N, 3) points in camera space, cut to the image."""
    pixels = points[:, :2] / points[:, 2:] * focal + princpt
    low, high = np.maximum(pixels.min(0), 0), np.minimum(pixels.max(0), [width - 1, height - 1])
    return [*low, *(high - low)]
