"""The losses of both stages, each as the mean of every sample of the batch: (B,) (paper, sections 4.3 and 5.2).

A loss is the plain mean over **all** elements, masked ones included (the published numbers rest on it). Per-sample
means let DataParallel gather B numbers from replicas of any size, and their mean is the loss of the whole batch.
"""
import itertools

import torch
from torch import nn
from torch.nn import functional as F


def masked_l1(pred, target, mask):
    """mean |pred - target| * mask of each sample, (B, ...) -> (B,). `mask` broadcasts; masked targets may be NaN."""
    diff = (pred - target).abs()
    # where, not a product: a masked NaN target must vanish from the value and from the gradient
    return torch.where(mask > 0, diff * mask, 0).flatten(1).mean(1)


def length(v):
    """Euclidean length along axis 1, whose gradient at a zero vector is zero (that of a bare sqrt is NaN)."""
    return (v * v).sum(1).clamp_min(1e-24).sqrt()  # on a CPU vector_norm over such an axis is 80 times slower


def unit(v):
    """v / |v| along axis 1; a zero vector stays zero, with a finite gradient."""
    return v / length(v)[:, None]


def cross(a, b):
    """Cross product along axis 1 of (N, 3, B) arrays."""
    (ax, ay, az), (bx, by, bz) = a.unbind(1), b.unbind(1)
    return torch.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], 1)


class MeshLoss(nn.Module):
    """Normal and edge-length losses over the faces of a mesh; the topology is a buffer.

    Coordinates are laid out (V, 3, B): gathering a vertex then moves one row of memory, and sums over x, y, z are
    vectorised over the batch, several times faster than on (B, V, 3).

    Args:
        face: (F, 3) vertex indices.
    """

    def __init__(self, face):
        super().__init__()
        self.register_buffer('face', torch.as_tensor(face, dtype=torch.int64), persistent=False)

    def corners(self, x):
        """(V, ...) -> three (F, ...): the rows of every face's corners."""
        return [x.index_select(0, self.face[:, i]) for i in range(3)]

    def forward(self, pred, target, mask):
        """Both losses of one batch.

        Args:
            pred, target: (B, V, 3) lixels; mask: (B, V, 1), 1 where the vertex counts.
        Returns:
            normal (B,): |cosine| between predicted edges and the target's face normals;
            edge (B,): |difference| of the edge lengths, lixels. Means over the 3 F edges.
        """
        target = torch.where(mask > 0, target, 0)  # a vertex that does not count cannot spoil its faces with NaN
        c0, c1, c2 = self.corners(pred.permute(1, 2, 0).contiguous())
        with torch.no_grad():
            t0, t1, t2 = self.corners(target.permute(1, 2, 0).contiguous())
            m0, m1, m2 = self.corners(mask[:, :, 0].t().contiguous())
            normal = unit(cross(unit(t1 - t0), unit(t2 - t0)))
            face_mask = m0 * m1 * m2
        normal_sum = edge_sum = 0
        corners = (c0, t0, m0), (c1, t1, m1), (c2, t2, m2)
        for (a, ta, ma), (b, tb, mb) in itertools.combinations(corners, 2):
            edge = b - a
            size = length(edge)
            normal_sum = normal_sum + ((edge * normal).sum(1).abs() / size * face_mask).mean(0)
            edge_sum = edge_sum + ((size - length(tb - ta)).abs() * (ma * mb)).mean(0)
        return normal_sum / 3, edge_sum / 3


def heatmap_loss(logps, target, mask, sigma):
    """Cross-entropy of lixel heat maps with Gaussian targets: an extra signal for networks that start from scratch.

    Args:
        logps: log-probabilities along x, y and z, each (B, bins, J); target: (B, J, 3) lixels; mask: (B, J, 3).
        sigma: lixels, the spread of the target.
    Returns:
        (B,) nats, mean over the joints and axes.
    """
    target, total = torch.where(mask > 0, target, 0), 0  # a masked target may be NaN
    for axis, logp in enumerate(logps):
        grid = torch.arange(logp.shape[1], device=logp.device, dtype=logp.dtype)[:, None]
        want = F.softmax(-((grid - target[:, None, :, axis]) / sigma) ** 2 / 2, 1)
        total = total - ((want * logp).sum(1) * mask[:, :, axis]).mean(1)
    return total / len(logps)
