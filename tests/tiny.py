"""A very small network and random data, to run the training engine in seconds."""
import contextlib
from types import SimpleNamespace

import numpy as np

from common.human_model import get_human_model
from common.train import loop
from main.config import Config

SETTINGS = ['trainset_3d=[Synthetic]', 'trainset_2d=[]', 'testset=Synthetic', 'resnet_type=18', 'resnet_width=4',
            'head_width=4', 'input_img_shape=[32,32]', 'output_hm_shape=[8,8,8]', 'sigma=0.5', 'body_model=open_body',
            'pretrained_backbone=false', 'train_batch_size=2', 'test_batch_size=3', 'num_thread=0', 'lr=1e-3',
            'log_every=1', 'validate_every=0', 'lixel_epochs=2', 'param_epochs=2']


def tiny_config(output_dir, *overrides):
    """A Config of the smallest network (32 px, 8 lixels) that writes into output_dir."""
    config = Config()
    config.override([*SETTINGS, f'output_dir={output_dir}', f'cache_dir={output_dir}/cache', *overrides])
    return config


class RandomDataset:
    """Noise with the keys and shapes of a real data set; sample i is a function of (epoch, i)."""
    has_3d = True
    check = SimpleNamespace(truth=None)

    def __init__(self, split, config, length=9):
        self.split, self.config, self.length, self.epoch = split, config, length, 0
        self.model = get_human_model(config.human_model)
        self.evaluated = []

    def __len__(self):
        return self.length

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        rng = np.random.default_rng([self.epoch, index])
        return self.get(index, rng)

    def compact(self, index):
        return self[index]

    def get(self, index, rng):
        joints, vertices = self.model.joint_num, self.model.vertex_num

        def uniform(*shape, low=0.0, high=8.0):
            return rng.uniform(low, high, shape).astype(np.float32)

        inputs = {'img': uniform(3, *self.config.input_img_shape, high=1.0)}
        if self.split != 'train':
            return inputs, {}, {'bb2img_trans': np.eye(2, 3, dtype=np.float32)}
        targets = {'orig_joint_img': uniform(joints, 3), 'fit_joint_img': uniform(joints, 3),
                   'fit_mesh_img': uniform(vertices, 3), 'orig_joint_cam': uniform(joints, 3),
                   'fit_joint_cam': uniform(joints, 3), 'shape_param': uniform(10),
                   'pose_param': uniform(self.model.kinematic_joint_num * 3, low=-1)}
        meta = {name: np.ones((joints, 1), np.float32)
                for name in ('orig_joint_valid', 'orig_joint_trunc', 'fit_joint_trunc')}
        meta |= {'fit_mesh_trunc': np.ones((vertices, 1), np.float32), 'is_valid_fit': np.float32(1),
                 'is_3D': np.float32(1)}
        return inputs, targets, meta

    def evaluate(self, outs, start):
        count = len(outs['mesh_coord_img'])
        self.evaluated += range(start, start + count)
        return {'row': np.arange(start, start + count, dtype=np.float64)}

    def print_eval_result(self, results):
        self.results = results
        return {'metrics': {name: float(values.mean()) for name, values in results.items()}}


def use_random_data(monkeypatch, **options):
    """Let the engine open RandomDatasets under every name."""
    def build(name, split, config):
        return RandomDataset(split, config, **options)

    monkeypatch.setattr('common.base.build_dataset', build)


@contextlib.contextmanager
def calling(before_step):
    """Within it, `before_step(n)` is called before the n-th training step, from 1."""
    plain = loop.train_step
    number = 0

    def step(*args):
        nonlocal number
        number += 1
        before_step(number)
        return plain(*args)

    loop.train_step = step
    try:
        yield
    finally:
        loop.train_step = plain
