"""Evaluation: samples per second of every kind of test set, beside the time that the network takes for them."""
import functools
import tempfile
from pathlib import Path

import numpy as np

from data import build_dataset
from data.FreiHAND.FreiHAND import FreiHAND
from tool.bench.loading import BODIES, HANDS, LENGTH, Pictures, write_picture
from tool.bench.network import network_inference
from tool.bench.timing import Row, alternate


class JointPictures(Pictures):
    """A test set that has 3-D joints to compare with, and no mesh."""
    mesh_target_at_test = False


class FreiHANDPictures(Pictures):
    """A test set with FreiHAND's scores and its released ground truth."""
    compare = FreiHAND.compare

    @functools.cached_property
    def truth(self):
        """(N, 21, 3) joints and (N, 778, 3) vertices, metres."""
        mesh = np.random.default_rng(0).normal(scale=.05, size=(LENGTH, self.human_model.vertex_num, 3))
        return self.eval_joints.regress(mesh), mesh


def test_sets(cfg):
    """{title: data set} of the test sets that a body or a hand can have."""
    kinds = {'FreiHAND-like': (FreiHANDPictures, HANDS[0])} if cfg.is_hand else {
        '3DPW-like': (Pictures, BODIES[0]), 'Human3.6M-like': (JointPictures, BODIES[0])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'picture.jpg'
        write_picture(path, (64, 64))  # looked for, never read
        sets = {title: made('test', cfg, kind, path) for title, (made, kind) in kinds.items()}
    return sets | {'Synthetic': build_dataset('Synthetic', 'test', cfg)}


def random_outputs(data, batch):
    """What the network may have predicted for a batch of a test set, in its stage."""
    rng, shape = np.random.default_rng(0), (batch, data.human_model.vertex_num, 3)
    outs = {'mesh_coord_img': rng.uniform(0, data.cfg.output_hm_shape[0], shape).astype(np.float32),
            'bb2img_trans': np.tile(np.eye(2, 3, dtype=np.float32), (batch, 1, 1))}
    if data.mesh_target_at_test:
        outs['mesh_coord_cam_target'] = rng.normal(size=shape).astype(np.float32) + np.float32([0, 0, 5])
    if data.cfg.stage == 'param':
        outs['mesh_coord_cam'] = rng.normal(scale=.05, size=shape).astype(np.float32)
    return outs


def measure_evaluation(cfg, device, repeats):
    """[Row] of the metrics of a test batch, beside the network's forward pass of as many samples."""
    sets, calls = test_sets(cfg), {}
    batch = min(cfg.test_batch_size, *map(len, sets.values()))
    for title, data in sets.items():
        calls[title] = functools.partial(data.evaluate, random_outputs(data, batch), 0)
    seconds = alternate({**calls, 'net': network_inference(cfg, [device])}, repeats, device)
    net = cfg.test_batch_size / seconds['net']
    return [Row(f'evaluation, {title}', batch / seconds[title], 'samples/s', "the network's inference", net,
                100 * net * seconds[title] / batch, '% of its time') for title in sets]
