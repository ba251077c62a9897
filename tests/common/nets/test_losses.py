"""Losses against hand-made values, masks, and degenerate meshes."""
import numpy as np
import pytest
import torch

from common.nets.loss import MeshLoss, heatmap_loss, masked_l1


def test_masked_l1_is_the_mean_over_all_elements():
    pred, target = torch.tensor([[[1., 2., 3.]], [[4., 5., 6.]]]), torch.zeros(2, 1, 3)
    assert masked_l1(pred, target, torch.ones(2, 1, 1)).tolist() == [2, 5]
    assert masked_l1(pred, target, torch.tensor([[[1., 1., 0.]], [[0., 0., 0.]]])).tolist() == [1, 0]


def test_a_masked_nan_does_no_harm():
    pred = torch.ones(1, 2, 3, requires_grad=True)
    target = torch.tensor([[[0., 0., 0.], [np.nan, np.inf, 0.]]])
    loss = masked_l1(pred, target, torch.tensor([[[1.], [0.]]]))
    loss.sum().backward()
    assert loss.item() == 0.5 and torch.isfinite(pred.grad).all()


def plain_mesh_losses(face, pred, target, mask):
    """The definition, face by face, edge by edge, in NumPy."""
    normal, edge = [], []
    for p, t, m in zip(pred, target, mask, strict=True):
        normals, edges = [], []
        for f in face:
            def unit(v):
                return v / np.linalg.norm(v)
            n = unit(np.cross(unit(t[f[1]] - t[f[0]]), unit(t[f[2]] - t[f[0]])))
            for a, b in ((f[0], f[1]), (f[0], f[2]), (f[1], f[2])):
                d = p[b] - p[a]
                normals.append(abs(unit(d) @ n) * m[f].prod())
                edges.append(abs(np.linalg.norm(d) - np.linalg.norm(t[b] - t[a])) * m[a, 0] * m[b, 0])
        normal.append(np.mean(normals))
        edge.append(np.mean(edges))
    return np.array(normal), np.array(edge)


def test_normal_and_edge_losses_are_their_definition():
    rng = np.random.default_rng(0)
    face = np.array([[0, 1, 2], [2, 1, 3], [4, 0, 3]])
    pred, target = rng.normal(size=(2, 4, 5, 3)) * 10
    mask = (rng.random((4, 5, 1)) > .2).astype(float)
    got = MeshLoss(face)(*(torch.tensor(x) for x in (pred, target, mask)))
    for g, w in zip(got, plain_mesh_losses(face, pred, target, mask), strict=True):
        assert g.shape == (4,) and np.abs(g.numpy() - w).max() < 1e-12


def test_a_perfect_mesh_has_no_loss():
    x = torch.randn(1, 3, 3, dtype=torch.float64)
    normal, edge = MeshLoss([[0, 1, 2]])(x, x, torch.ones(1, 3, 1, dtype=torch.float64))
    assert normal.item() < 1e-12 and edge.item() == 0


@pytest.mark.parametrize('spoil', ['zero', 'one point', 'line', 'masked nan'])
def test_degenerate_meshes_give_finite_losses_and_gradients(spoil):
    torch.manual_seed(0)
    pred, target, mask = torch.randn(2, 4, 3), torch.randn(2, 4, 3), torch.ones(2, 4, 1)
    clean = MeshLoss([[0, 1, 2], [1, 2, 3]])(pred, target, mask)
    if spoil == 'masked nan':
        target[0], mask[0] = torch.nan, 0
    else:
        bad = {'zero': torch.zeros(4, 3), 'one point': torch.ones(4, 3),
               'line': torch.arange(4.)[:, None].expand(4, 3)}[spoil]
        pred[0] = target[0] = bad
    pred.requires_grad_()
    losses = MeshLoss([[0, 1, 2], [1, 2, 3]])(pred, target, mask)
    sum(loss.sum() for loss in losses).backward()
    assert all(torch.isfinite(loss).all() for loss in losses) and torch.isfinite(pred.grad).all()
    assert all(torch.equal(a[1], b[1]) for a, b in zip(losses, clean, strict=True))


def test_heatmap_loss_is_least_at_the_target_and_ignores_masked_joints():
    target = torch.tensor([[[3., 5., 2.]]])

    def loss_at(x, y, z, mask=1.):
        grid = torch.arange(8.)[:, None]
        logps = [(-((grid - c) ** 2) / 2).log_softmax(0)[None] for c in (x, y, z)]
        return heatmap_loss(logps, target, torch.full((1, 1, 3), mask), sigma=1.).item()

    best = loss_at(3, 5, 2)
    assert best < min(loss_at(4, 5, 2), loss_at(3, 4, 2), loss_at(3, 5, 3))
    assert loss_at(0, 0, 7, mask=0.) == 0
    target[0, 0, 1] = np.nan
    assert loss_at(0, 0, 7, mask=0.) == 0
