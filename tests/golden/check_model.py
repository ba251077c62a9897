"""Compare the full-size network with the published system's recorded outputs, losses, gradients, BatchNorm statistics.

    python tests/golden/check_model.py tests/golden/model_*.npz

Runs in float64, with weights that are a function of each parameter's name. Exits 1 and lists what is off. Some 9 GB of
memory and a minute of two cores per file.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from common.human_model import get_human_model  # noqa: E402
from main.config import Config  # noqa: E402
from main.model import get_model  # noqa: E402
from tests.golden import make_bodies  # noqa: E402
from tests.golden.deterministic import fill  # noqa: E402

DATASETS = {'hand': ['trainset_3d=[FreiHAND]', 'trainset_2d=[]', 'testset=FreiHAND'],
            'body': ['trainset_3d=[Human36M,MuCo]', 'trainset_2d=[MSCOCO]', 'testset=PW3D']}


def random_batch(seed, kind):
    """The network input, targets and masks of the recorded run, in the order it drew them."""
    joints, verts, pose = (21, 778, 48) if kind == 'hand' else (29, 6890, 72)
    rng, n = np.random.default_rng(seed), 4
    light = np.linspace(.3, 1, n, dtype=np.float32)[:, None, None, None]
    blocks = rng.random((n, 3, 8, 8), dtype=np.float32) * light
    noise = rng.random((n, 3, 256, 256), dtype=np.float32)
    img = torch.from_numpy(np.kron(blocks, np.ones((32, 32), np.float32)) * .9 + .1 * noise)

    def uniform(*shape, low=0, high=64):
        return torch.from_numpy(rng.uniform(low, high, (n, *shape)).astype(np.float32))

    def mask(*shape):
        return torch.from_numpy((rng.random((n, *shape)) > .3).astype(np.float32))

    targets = {'orig_joint_img': uniform(joints, 3), 'fit_joint_img': uniform(joints, 3),
               'fit_mesh_img': uniform(verts, 3), 'orig_joint_cam': uniform(joints, 3, low=-1, high=1),
               'fit_joint_cam': uniform(joints, 3, low=-1, high=1),
               'pose_param': uniform(pose, low=-1, high=1), 'shape_param': uniform(10, low=-2, high=2)}
    meta = {'orig_joint_valid': mask(joints, 1), 'orig_joint_trunc': mask(joints, 1),
            'fit_joint_trunc': mask(joints, 1), 'fit_mesh_trunc': mask(verts, 1),
            'is_valid_fit': torch.tensor([1., 1., 1., 1. if kind == 'hand' else 0.]),
            'is_3D': torch.tensor([1., 0., 1., 1.])}
    return {'img': img}, targets, meta


class Comparison:
    """Collects faults; `want`: the recorded arrays."""

    def __init__(self, want):
        self.want, self.faults, self.worst, self.compared = want, [], (0.0, 'nothing'), 0

    def near(self, name, got, ref, tolerance):
        diff = float(np.max(np.abs(np.asarray(got, np.float64) - np.asarray(ref, np.float64))))
        self.compared += 1
        self.worst = max(self.worst, (diff, name))
        if not diff <= tolerance:
            self.faults.append(f'{name}: off by {diff:.3g}, allowed {tolerance:g}')

    def same_names(self, what, got, ref):
        self.faults += [f'{what}: {"unexpected" if k in got else "missing"} {k}' for k in sorted(set(got) ^ set(ref))]

    def recorded(self, names, values):
        return dict(zip(map(str, self.want[names]), self.want[values], strict=True))


def check_file(path, body_dir):
    """Check one recorded run; body_dir: folder of the stand-in models. Returns the Comparison."""
    want = dict(np.load(path))
    kind, stage = str(want['kind']), str(want['stage'])
    config = Config()
    config.override([*DATASETS[kind], f'resnet_type={want["resnet_type"]}', f'stage={stage}',
                     f'human_model_dir={body_dir}', 'pretrained_backbone=false'])
    net = get_model(config, get_human_model(config.human_model, model_dir=config.human_model_dir), 'test')
    check = Comparison(want)
    have = {k: tuple(v.shape) for k, v in net.state_dict().items()}
    expected = {k: tuple(json.loads(str(s))) for k, s in check.recorded('keys', 'shapes').items()}
    check.same_names('state dict', have, expected)
    check.faults += [f'state dict: {k} is {have[k]}, not {v}' for k, v in expected.items() if have.get(k, v) != v]
    if not check.faults:
        net.load_state_dict(fill(net.state_dict()))
        inputs, targets, meta = random_batch(int(want['seed']), kind)
        check_outputs(check, net.eval(), inputs['img'], kind, stage)
        check_training(check, net.train(), inputs, targets, meta, millimetres=kind == 'hand' and stage == 'param')
    return check


def check_outputs(check, net, img, kind, stage):
    """Both precisions against the recorded outputs; leaves the network in float64."""
    step = 13 if kind == 'body' else 1
    for dtype, tolerance in ((torch.float32, 1e-3), (torch.float64, 2e-5)):
        net.to(dtype)
        with torch.no_grad():
            out = net({'img': img.to(dtype)}, {}, {'bb2img_trans': torch.zeros(4, 2, 3, dtype=dtype)}, 'test')
        for name, every in (('joint_coord_img', 1), ('mesh_coord_img', step)):
            check.near(f'{name}, lixels, {dtype}', out[name][:, ::every], check.want[f'out_{name}'], tolerance)
        if stage == 'param':  # the recorded hands are in millimetres
            want = check.want['out_mesh_coord_cam'] / (1000 if kind == 'hand' else 1)
            check.near(f'mesh_coord_cam, metres, {dtype}', out['mesh_coord_cam'][:, ::step], want, tolerance)


def check_training(check, net, inputs, targets, meta, millimetres):
    """Losses, gradients, BatchNorm averages of one step. `millimetres`: the recorded *_cam are not ours."""
    inputs, targets, meta = ({k: v.double() for k, v in part.items()} for part in (inputs, targets, meta))
    losses = {k: v.mean() for k, v in net(inputs, targets, meta, 'train').items()}
    sum(losses.values()).backward()
    recorded = {k.removeprefix('loss_'): float(v) for k, v in check.want.items() if k.startswith('loss_')}
    check.same_names('loss', losses, recorded)
    for k in recorded.keys() & losses.keys():
        if not (millimetres and k.endswith('_cam')):
            check.near(f'loss {k} (relative)', float(losses[k].detach()) / recorded[k], 1, 1e-5)
    if not millimetres:
        grads = {n: float(p.grad.double().norm()) for n, p in net.named_parameters() if p.grad is not None}
        recorded = check.recorded('grad_names', 'grad_norms')
        check.same_names('gradient', grads, recorded)
        floor = 1e-6 * max(recorded.values())
        for k in recorded.keys() & grads.keys():
            check.near(f'gradient {k} (relative)', (grads[k] - recorded[k]) / (recorded[k] + floor), 0, 1e-3)
    buffers = dict(net.named_buffers())
    for k, ref in check.recorded('bn_names', 'bn_norms').items():
        check.near(f'BatchNorm average {k} (relative)', float(buffers[k].double().norm()) / ref, 1, 1e-5)


if __name__ == '__main__':
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        make_bodies.write(folder)
        for file in sys.argv[1:]:
            result = check_file(file, folder)
            failed |= bool(result.faults)
            print(*('  ' + fault for fault in result.faults[:20]), sep='\n', end='\n' if result.faults else '')
            print(f'{Path(file).name}: {"FAILED" if result.faults else "ok"}, {len(result.faults)} faults, '
                  f'{result.compared} comparisons, largest {result.worst[0]:.2g} in {result.worst[1]}')
    sys.exit(failed)
