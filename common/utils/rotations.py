"""Rotation representations in torch: 6-D, matrices, axis-angle; exact at 180 degrees, finite gradients everywhere."""
import torch
from torch import Tensor
from torch.nn import functional as F


def rot6d_to_matrix(x: Tensor) -> Tensor:
    """6-D rotations (N, 3, 2), two columns each, -> matrices (N, 3, 3) by Gram-Schmidt (Zhou et al., CVPR 2019)."""
    a1, a2 = x.unbind(-1)
    b1 = F.normalize(a1, dim=-1)
    b2 = F.normalize(a2 - (b1 * a2).sum(-1, keepdim=True) * b1, dim=-1)
    return torch.stack([b1, b2, torch.linalg.cross(b1, b2)], -1)


def matrix_to_quaternion(m: Tensor) -> Tensor:
    """Rotation matrices (..., 3, 3) -> unit quaternions (..., 4), w x y z, w >= 0.

    The outer product q q^T is linear in the matrix; its row with the largest diagonal, normalised, is q: no square root
    of a difference, so value and gradient are sound for every rotation.
    """
    m00, m01, m02, m10, m11, m12, m20, m21, m22 = m.flatten(-2).unbind(-1)
    rows = torch.stack([
        torch.stack([1 + m00 + m11 + m22, m21 - m12, m02 - m20, m10 - m01], -1),
        torch.stack([m21 - m12, 1 + m00 - m11 - m22, m10 + m01, m02 + m20], -1),
        torch.stack([m02 - m20, m10 + m01, 1 - m00 + m11 - m22, m12 + m21], -1),
        torch.stack([m10 - m01, m20 + m02, m21 + m12, 1 - m00 - m11 + m22], -1)], -2)
    best = rows.diagonal(dim1=-2, dim2=-1).argmax(-1)
    q = rows.gather(-2, best[..., None, None].expand(*best.shape, 1, 4)).squeeze(-2)
    q = F.normalize(q, dim=-1)
    return torch.where(q[..., :1] < 0, -q, q)


def matrix_to_axis_angle(m: Tensor) -> Tensor:
    """Rotation matrices (..., 3, 3) -> axis-angle vectors (..., 3) in radians, of length 0 .. pi."""
    q = matrix_to_quaternion(m)
    w = q[..., :1]
    v = q[..., 1:]
    sine2 = (v * v).sum(-1, keepdim=True)
    tiny = sine2 < 1e-12
    sine = torch.where(tiny, 1, sine2).sqrt()
    # angle / sin(angle / 2): 2 atan2(s, w) / s, which tends to 2 / w for small angles
    factor = torch.where(tiny, 2 / w.clamp_min(0.5), 2 * torch.atan2(sine, w) / sine)
    return v * factor
