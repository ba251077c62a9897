"""Numbers that come close to nothing or overflow: degenerate meshes, boxes and joints beside good ones."""
import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import nn

from common import metrics
from common.human_model import get_human_model
from common.nets.lixel import soft_argmax_with_log_prob
from common.nets.loss import MeshLoss, heatmap_loss, masked_l1
from common.train.loop import train_step
from common.utils.preprocessing import process_bbox
from common.utils.transforms import rigid_align
from data.evaluation.mesh_errors import default_eval_joints, mesh_errors
from main.model import get_model
from tests.tiny import tiny_config

FACE = [[0, 1, 2], [1, 2, 3], [2, 3, 4], [4, 0, 3], [0, 0, 1]]  # the last one has no area in any mesh
LINE = torch.arange(5.)[:, None] * torch.tensor([1., 2., -1.])
SHAPES = {'zero': torch.zeros(5, 3), 'one point': torch.full((5, 3), 7.), 'line': LINE,
          'two points at one place': torch.cat([LINE[:1], torch.eye(3), LINE[:1]]), 'plane': torch.rand(5, 3) * LINE[1],
          'tiny': torch.eye(5, 3) * 1e-20, 'huge': torch.eye(5, 3) * 1e12}


def losses_of(pred, target, mask):
    """All losses on points, each (B,), and their gradient to `pred`. The heat maps have their peak at pred."""
    pred = pred.clone().requires_grad_()
    normal, edge = MeshLoss(FACE)(pred, target, mask)
    grid = torch.arange(8.)[:, None]
    logps = [(-(grid - pred[:, None, :, axis]).clamp(-20, 20) ** 2 / 2).log_softmax(1) for axis in range(3)]
    losses = torch.stack([normal, edge, masked_l1(pred, target, mask),
                          heatmap_loss(logps, target, mask.expand(-1, -1, 3), 1.)])
    return losses.detach(), torch.autograd.grad(losses.sum(), pred)[0]


def same_as_alone(pred, target, mask, good):
    """Finite losses and gradients, those of the rows `good` as if no other row were there."""
    losses, gradient = losses_of(pred, target, mask)
    assert torch.isfinite(losses).all() and torch.isfinite(gradient).all()
    alone = losses_of(pred[good], target[good], mask[good])
    torch.testing.assert_close((losses[:, good], gradient[good]), alone, rtol=1e-6, atol=1e-7)
    return losses


@pytest.mark.parametrize('side', ['prediction', 'target', 'both'])
@pytest.mark.parametrize('shape', SHAPES)
def test_degenerate_meshes_leave_the_others_alone(shape, side):
    torch.manual_seed(0)
    pred, target, mask = torch.rand(3, 5, 3) * 8, torch.rand(3, 5, 3) * 8, torch.ones(3, 5, 1)
    for points, wanted in ((pred, 'target'), (target, 'prediction')):
        if side != wanted:
            points[1] = SHAPES[shape]
    same_as_alone(pred, target, mask, [0, 2])


@pytest.mark.parametrize('valid', [0, 1])
@pytest.mark.parametrize('unknown', [0., np.nan, np.inf, -1e30])
def test_one_valid_joint_or_none(valid, unknown):
    torch.manual_seed(0)
    pred, target, mask = torch.rand(3, 5, 3) * 8, torch.rand(3, 5, 3) * 8, torch.ones(3, 5, 1)
    target[1, valid:], mask[1, valid:] = unknown, 0
    losses = same_as_alone(pred, target, mask, [0, 2])
    assert losses[:2, 1].tolist() == [0, 0]  # a face and an edge need more than one
    expected = (pred[1, :valid] - target[1, :valid]).abs().sum() / 15
    assert losses[2, 1].item() == pytest.approx(expected.item(), rel=1e-6) and (losses[3, 1] > 0).item() == bool(valid)


@pytest.mark.parametrize('stage', ['lixel', 'param'])
def test_a_batch_without_any_truth_has_no_loss_and_a_zero_gradient(stage, tmp_path):
    torch.manual_seed(0)
    model = get_model(tiny_config(tmp_path, f'stage={stage}', 'heatmap_loss_weight=1'), get_human_model('open_body'),
                      'train').eval()  # BatchNorm cannot train on one sample
    body = model.human_model
    joints, mesh, unknown = (1, body.joint_num, 3), (1, body.vertex_num, 3), torch.nan
    targets = {name: torch.full(shape, unknown) for name, shape in {
        'orig_joint_img': joints, 'fit_joint_img': joints, 'fit_mesh_img': mesh, 'orig_joint_cam': joints,
        'fit_joint_cam': joints, 'pose_param': (1, 72), 'shape_param': (1, 10)}.items()}
    meta = {name: torch.zeros(1, count, 1) for name, count in {
        'orig_joint_valid': joints[1], 'orig_joint_trunc': joints[1], 'fit_joint_trunc': joints[1],
        'fit_mesh_trunc': mesh[1]}.items()} | {'is_valid_fit': torch.zeros(1), 'is_3D': torch.zeros(1)}
    losses = model({'img': torch.rand(1, 3, 32, 32)}, targets, meta, 'train')
    assert {name: value.tolist() for name, value in losses.items()} == dict.fromkeys(losses, [0.])
    sum(losses.values()).sum().backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(gradients) > 5 and not any(gradient.any() for gradient in gradients)


def test_logits_that_overflow_fp16_leave_the_other_samples_alone():
    torch.manual_seed(0)
    good = (torch.randn(2, 8, 5) * 3).half()
    spoilt = torch.cat([good, good[:1] * 2])
    spoilt[2, 3] = torch.inf
    spoilt[2, 4, :2] = -torch.inf
    found = []
    for logits in (good, spoilt):
        logits.requires_grad_()
        coord, logp = soft_argmax_with_log_prob(logits)
        target = torch.full_like(coord, 4)
        loss = masked_l1(coord, target, torch.ones_like(coord)) - logp.mean((1, 2))
        loss.sum().backward()
        found.append((loss.detach(), logits.grad))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b[:2]) and torch.isfinite(b).all()


def test_a_gradient_that_overflows_fp16_leaves_the_weights_and_lowers_the_scale():
    class Net(nn.Linear):
        def forward(self, inputs, targets, meta, mode):
            return {'loss': super().forward(inputs)[:, 0] * targets}

    net = Net(2, 1, bias=False)
    optimizer = torch.optim.SGD(net.parameters(), .1)
    scaler = torch.amp.GradScaler('cpu', init_scale=2. ** 16)
    step_with = functools.partial(train_step, net, optimizer, scaler, device=torch.device('cpu'), clip_grad=1.)
    before = net.weight.detach().clone()
    overflow, good = torch.tensor([1e36, 1.]), torch.tensor([1., 1.])
    losses = step_with([(torch.ones(2, 2), overflow, {})])
    assert torch.isfinite(losses['loss']) and torch.equal(net.weight, before) and scaler.get_scale() == 2 ** 15
    step_with([(torch.ones(2, 2), good, {})])
    step = (before - net.weight)[0]
    assert step.tolist() == pytest.approx([.1 / 2 ** .5] * 2, rel=1e-4)  # of norm clip_grad, and not scaled


points = arrays(np.float64, (14, 3), elements=st.floats(-50, 50, width=32), fill=st.sampled_from([0., 1.]))


@settings(max_examples=60, deadline=None)
@given(points, points)
def test_alignment_is_no_reflection_and_never_worse_than_the_mean(source, target):
    moved = rigid_align(source, target)
    s, m, t = (x - x.mean(0) for x in (source, moved, target))
    size = np.linalg.norm(t) + 1e-9
    assert np.linalg.norm(moved - target) <= size * (1 + 1e-9)  # all points in the middle of the target
    if np.linalg.matrix_rank(s, tol=1e-3) == 3:
        linear = np.linalg.lstsq(s, m, rcond=None)[0]
        assert np.linalg.det(linear) >= -1e-9 * size ** 3
        np.testing.assert_allclose(linear @ linear.T, np.eye(3) * np.trace(linear @ linear.T) / 3,
                                   atol=1e-6 * (1 + np.abs(linear).max() ** 2))  # rotation and scale


@settings(max_examples=40, deadline=None)
@given(points, points)
def test_metrics_of_a_valid_pair_are_numbers(pred, target):
    pred, target = pred[None], target[None]
    values = [metrics.root_aligned_errors(pred, target, pred[:, 0], target[:, 0]), metrics.aligned_errors(pred, target),
              metrics.f_scores(pred, target, [.005, .015]), metrics.auc(metrics.point_errors(pred, target), 50.)]
    assert all(np.isfinite(value).all() and (value >= 0).all() for value in values)
    assert (values[2] <= 1).all() and (values[3] <= 1).all()


@pytest.mark.parametrize('shape', ['zero', 'one point', 'line', 'random'])
def test_a_degenerate_mesh_has_finite_errors_and_changes_no_other(shape):
    body = get_human_model('open_hand')
    joints = default_eval_joints(body, body.regressor)
    rng, (batch, count) = np.random.default_rng(0), (3, body.vertex_num)
    mesh, target = rng.normal(size=(2, batch, count, 3))
    alone = mesh_errors(mesh, joints.regress(mesh), joints.regress(target), target, joints)
    mesh[1] = {'zero': 0., 'one point': 3., 'line': np.arange(count)[:, None], 'random': mesh[1]}[shape]
    errors = mesh_errors(mesh, joints.regress(mesh), joints.regress(target), target, joints)
    for name, value in errors.items():
        assert np.isfinite(value).all()
        np.testing.assert_allclose(value[[0, 2]], alone[name][[0, 2]], rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(arrays(np.float32, 4, elements=st.floats(-2000, 2000, width=32)),
       st.sampled_from([(256, 256), (128, 128), (256, 192)]))
def test_boxes_are_refused_or_have_an_area(bbox, shape):
    box = process_bbox(bbox, 640, 480, shape)
    if min(bbox[2:]) <= 0:
        assert box is None
    if box is not None:
        assert np.isfinite(box).all() and (box[2:] > 0).all()
        assert box[2] / box[3] == pytest.approx(shape[1] / shape[0], rel=1e-4)
