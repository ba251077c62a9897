"""Pixels and metres <-> img space, where the network predicts: lixels on each of the three axes."""
from typing import Any

import numpy as np
import torch

Array = Any  # a numpy array or a torch tensor: what comes out is of the kind that went in


class LixelCodec:
    """Encodes coordinates for the network and decodes what it predicts; each is the other's inverse.

    img space: x and y count lixels over the crop, z counts lixels over `bbox_3d_size` metres of depth with the root
    joint in the middle. All methods take numpy arrays or torch tensors, (..., 3) points with any leading dimensions.

    Args:
        input_img_shape: (height, width) of the crop, pixels.
        output_hm_shape: (depth, height, width) of the heat maps, lixels.
        bbox_3d_size: Metres.
    """

    def __init__(self, input_img_shape: tuple[int, int], output_hm_shape: tuple[int, int, int],
                 bbox_3d_size: float) -> None:
        height, width = input_img_shape
        depth_bins, height_bins, width_bins = output_hm_shape
        self.input_img_shape = input_img_shape
        self.lixel_per_pixel = (width_bins / width, height_bins / height)
        self.size = (width_bins, height_bins, depth_bins)  # upper limits of x, y, z in img space
        self.bbox_3d_size = bbox_3d_size
        self.lixel_per_metre = depth_bins / bbox_3d_size

    def encode(self, coord_px_m: Array, root_depth: Array | float, img2bb_trans: Array) -> Array:
        """Image pixels and absolute depth -> img space.

        Args:
            coord_px_m: (..., N, 3) x, y in pixels, z in metres.
            root_depth: Metres, a number or (...) one per set of points.
            img2bb_trans: (..., 2, 3) affine from image to crop.
        Returns:
            (..., N, 3) lixels.
        """
        column, row = _affine(coord_px_m[..., 0], coord_px_m[..., 1], img2bb_trans)
        x = column * self.lixel_per_pixel[0]
        y = row * self.lixel_per_pixel[1]
        z = (coord_px_m[..., 2] - _per_set(root_depth)) * self.lixel_per_metre + self.size[2] / 2
        return _stack(x, y, z)

    def decode(self, coord_img: Array, root_depth: Array | float, bb2img_trans: Array) -> Array:
        """Img space -> image pixels and absolute depth: the inverse of `encode`, with the inverse affine.

        Args:
            coord_img: (..., N, 3) lixels.
            root_depth: Metres, a number or (...) one per set of points.
            bb2img_trans: (..., 2, 3) affine from crop to image.
        Returns:
            (..., N, 3): x, y in pixels, z in metres.
        """
        x = coord_img[..., 0] / self.lixel_per_pixel[0]
        y = coord_img[..., 1] / self.lixel_per_pixel[1]
        z = (coord_img[..., 2] - self.size[2] / 2) / self.lixel_per_metre + _per_set(root_depth)
        return _stack(*_affine(x, y, bb2img_trans), z)

    def inside(self, coord_img: Array, dims: int = 3) -> Array:
        """Whether points (..., 3) lie in the crop, 0 <= coordinate < size on the first `dims` axes: (..., 1) bool."""
        ok = (coord_img[..., :1] >= 0) & (coord_img[..., :1] < self.size[0])
        for axis in range(1, dims):
            value = coord_img[..., axis:axis + 1]
            ok = ok & (value >= 0) & (value < self.size[axis])
        return ok


def _affine(x: Array, y: Array, trans: Array) -> tuple[Array, Array]:
    """Points with (..., N) x and y, moved by (..., 2, 3): one axis at a time, several times as fast as both at once."""
    a = trans[..., None]
    moved_x = a[..., 0, 0, :] * x + a[..., 0, 1, :] * y + a[..., 0, 2, :]
    moved_y = a[..., 1, 0, :] * x + a[..., 1, 1, :] * y + a[..., 1, 2, :]
    return moved_x, moved_y


def _per_set(depth: Array) -> Array:
    """A depth per set of points, (...) -> (..., 1), so that it spreads over the points."""
    if np.isscalar(depth):
        return depth
    return depth[..., None]


def _stack(*parts: Array) -> Array:
    if isinstance(parts[0], torch.Tensor):
        return torch.stack(parts, -1)
    return np.stack(parts, -1)
