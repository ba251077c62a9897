"""Evaluation: samples per second of every kind of test set, beside the time that the network takes for them."""
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from data import build_dataset
from data.evaluation.evaluator import Errors, EvalBatch
from data.FreiHAND.FreiHAND import hand_errors
from data.mesh_dataset import MeshDataset
from main.config import Config
from tool.bench.imitation import BODIES, HANDS, LENGTH, Imitation, Kind, write_photo
from tool.bench.network import network_inference
from tool.bench.timing import Row, alternate


class JointSet3D(Imitation):
    """A test set that has 3-D joints to compare with, and no mesh."""
    mesh_target_at_test = False


class FreiHANDLike(Imitation):
    """A test set with FreiHAND's scores and its released ground truth."""
    @functools.cached_property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, 21, 3) joints and (N, 778, 3) vertices, metres."""
        mesh = np.random.default_rng(0).normal(scale=.05, size=(LENGTH, self.human_model.vertex_num, 3))
        return self.eval_joints.regress(mesh), mesh

    def compare(self, batch: EvalBatch) -> Errors:
        """All of FreiHAND's scores."""
        return hand_errors(batch, self.eval_joints, self.truth)


def test_sets(cfg: Config) -> dict[str, MeshDataset]:
    """{title: data set} of the test sets that a body or a hand can have."""
    kinds: dict[str, tuple[type[Imitation], Kind]] = {
        '3DPW-like': (Imitation, BODIES[0]), 'Human3.6M-like': (JointSet3D, BODIES[0])}
    if cfg.is_hand:
        kinds = {'FreiHAND-like': (FreiHANDLike, HANDS[0])}
    sets: dict[str, MeshDataset] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'photo.jpg'
        write_photo(path, (64, 64))  # looked for, never read
        for title, (loader, kind) in kinds.items():
            sets[title] = loader('test', cfg, kind, path)
    sets['Synthetic'] = build_dataset('Synthetic', 'test', cfg)
    return sets


def random_outputs(data: MeshDataset, cfg: Config, batch: int) -> dict[str, np.ndarray]:
    """What the network may have predicted for a batch of a test set, in its stage."""
    rng = np.random.default_rng(0)
    shape = (batch, data.human_model.vertex_num, 3)
    outs = {'mesh_coord_img': rng.uniform(0, cfg.output_hm_shape[0], shape).astype(np.float32),
            'bb2img_trans': np.tile(np.eye(2, 3, dtype=np.float32), (batch, 1, 1))}
    if data.mesh_target_at_test:
        distance = np.array([0, 0, 5], np.float32)
        outs['mesh_coord_cam_target'] = rng.normal(size=shape).astype(np.float32) + distance
    if cfg.stage == 'param':
        outs['mesh_coord_cam'] = rng.normal(scale=.05, size=shape).astype(np.float32)
    return outs


def measure_evaluation(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """The metrics of a test batch, beside the network's forward pass of as many samples."""
    sets = test_sets(cfg)
    batch = min(cfg.test_batch_size, *[len(data) for data in sets.values()])
    calls: dict[str, Callable] = {'net': network_inference(cfg, [device])}
    for title, data in sets.items():
        calls[title] = functools.partial(data.evaluate, random_outputs(data, cfg, batch), 0)
    seconds = alternate(calls, repeats, device)
    net = cfg.test_batch_size / seconds['net']
    return [Row(f'evaluation, {title}', batch / seconds[title], 'samples/s', "the network's inference", net,
                100 * net * seconds[title] / batch, '% of its time') for title in sets]
