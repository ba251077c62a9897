"""The losses of both stages, each as the mean of every sample of the batch: (B,) (paper, sections 4.3 and 5.2).

A loss is the plain mean over **all** elements, masked ones included (the published numbers rest on it). Per-sample
means let DataParallel gather B numbers from replicas of any size, and their mean is the loss of the whole batch.
"""
from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F

EDGES = ((0, 1), (0, 2), (1, 2))  # corners of a face


def masked_l1(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """mean |pred - target| * mask of each sample, (B, ...) -> (B,). `mask` broadcasts; masked targets may be NaN."""
    diff = (pred - target).abs()
    # where, not a product: a masked NaN target must vanish from the value and from the gradient
    return torch.where(mask > 0, diff * mask, 0).flatten(1).mean(1)


def length(v: Tensor) -> Tensor:
    """Euclidean length along axis 1, whose gradient at a zero vector is zero (that of a bare sqrt is NaN)."""
    # on a CPU vector_norm over such an axis is 80 times slower
    return (v * v).sum(1).clamp_min(1e-24).sqrt()


def unit(v: Tensor) -> Tensor:
    """v / |v| along axis 1; a zero vector stays zero, with a finite gradient."""
    return v / length(v)[:, None]


def cross(a: Tensor, b: Tensor) -> Tensor:
    """Cross product along axis 1 of (N, 3, B) arrays."""
    ax, ay, az = a.unbind(1)
    bx, by, bz = b.unbind(1)
    return torch.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], 1)


class MeshLoss(nn.Module):
    """Normal and edge-length losses over the faces of a mesh; the topology is a buffer.

    Coordinates are laid out (V, 3, B): gathering a vertex then moves one row of memory, and sums over x, y, z are
    vectorised over the batch, several times faster than on (B, V, 3).

    Args:
        face: (F, 3) vertex indices.
    """
    face: Tensor

    def __init__(self, face: ArrayLike) -> None:
        super().__init__()
        self.register_buffer('face', torch.as_tensor(face, dtype=torch.int64), persistent=False)

    def corners(self, x: Tensor) -> list[Tensor]:
        """(V, ...) -> three (F, ...): the rows of every face's corners."""
        return [x.index_select(0, self.face[:, i]) for i in range(3)]

    def forward(self, pred: Tensor, target: Tensor,
                mask: Tensor) -> tuple[Tensor, Tensor]:
        """Both losses of one batch.

        Args:
            pred: (B, V, 3) lixels.
            target: (B, V, 3) lixels.
            mask: (B, V, 1), 1 where the vertex counts.
        Returns:
            normal (B,): |cosine| between predicted edges and the target's face normals, mean over the 3 F edges;
            edge (B,): |difference| of the edge lengths, lixels, mean over the 3 F edges.
        """
        # a vertex that does not count cannot spoil its faces with NaN
        target = torch.where(mask > 0, target, 0)
        corners = self.corners(pred.permute(1, 2, 0).contiguous())
        with torch.no_grad():
            t = self.corners(target.permute(1, 2, 0).contiguous())
            m = self.corners(mask[:, :, 0].t().contiguous())
            normal = unit(cross(unit(t[1] - t[0]), unit(t[2] - t[0])))
            face_mask = m[0] * m[1] * m[2]
        normal_sum = pred.new_zeros(len(pred))
        edge_sum = pred.new_zeros(len(pred))
        for a, b in EDGES:
            edge = corners[b] - corners[a]
            size = length(edge)
            normal_sum = normal_sum + ((edge * normal).sum(1).abs() / size * face_mask).mean(0)
            edge_sum = edge_sum + ((size - length(t[b] - t[a])).abs() * (m[a] * m[b])).mean(0)
        return normal_sum / 3, edge_sum / 3


def heatmap_loss(log_probs: Sequence[Tensor], target: Tensor, mask: Tensor,
                 sigma: float) -> Tensor:
    """Cross-entropy of lixel heat maps with Gaussian targets: an extra signal for networks that start from scratch.

    Args:
        log_probs: Log-probabilities along x, y and z, each (B, bins, J).
        target: (B, J, 3) lixels.
        mask: (B, J, 3).
        sigma: Lixels, the spread of the target.
    Returns:
        (B,) nats, mean over the joints and axes.
    """
    target = torch.where(mask > 0, target, 0)  # a masked target may be NaN
    total = target.new_zeros(len(target))
    for axis, log_prob in enumerate(log_probs):
        grid = torch.arange(log_prob.shape[1], device=log_prob.device, dtype=log_prob.dtype)[:, None]
        want = F.softmax(-((grid - target[:, None, :, axis]) / sigma) ** 2 / 2, 1)
        total = total - ((want * log_prob).sum(1) * mask[:, :, axis]).mean(1)
    return total / len(log_probs)
