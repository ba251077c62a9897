"""Pixels and metres <-> img space, where the network predicts: lixels on each of the three axes."""
import numpy as np
import torch


class LixelCodec:
    """Encodes coordinates for the network and decodes what it predicts; each is the other's inverse.

    img space: x and y count lixels over the crop, z counts lixels over `bbox_3d_size` metres of depth with the root
    joint in the middle. input_img_shape: (height, width) pixels of the crop. output_hm_shape: (depth, height, width)
    lixels. All methods take numpy arrays or torch tensors, (..., 3) points with any leading dimensions.
    """

    def __init__(self, input_img_shape, output_hm_shape, bbox_3d_size):
        (height, width), (depth_bins, height_bins, width_bins) = input_img_shape, output_hm_shape
        self.input_img_shape = input_img_shape
        self.lixel_per_pixel = width_bins / width, height_bins / height
        self.size = width_bins, height_bins, depth_bins  # upper limits of x, y, z in img space
        self.bbox_3d_size = bbox_3d_size  # metres
        self.lixel_per_metre = depth_bins / bbox_3d_size

    def encode(self, coord_px_m, root_depth, img2bb_trans):
        """Image pixels and absolute depth -> img space.

        coord_px_m: (..., N, 3) x, y in pixels, z in metres. root_depth: metres, a number or (...) one per set of
        points. img2bb_trans: (..., 2, 3) affine from image to crop. Returns (..., N, 3).
        """
        xy = _affine(coord_px_m[..., :2], img2bb_trans)
        z = (coord_px_m[..., 2] - _per_set(root_depth)) * self.lixel_per_metre + self.size[2] / 2
        return _stack(xy[..., 0] * self.lixel_per_pixel[0], xy[..., 1] * self.lixel_per_pixel[1], z)

    def decode(self, coord_img, root_depth, bb2img_trans):
        """Img space -> image pixels and absolute depth: the inverse of `encode`, with the inverse affine.

        coord_img: (..., N, 3). Returns (..., N, 3): x, y in pixels, z in metres.
        """
        crop = _stack(coord_img[..., 0] / self.lixel_per_pixel[0], coord_img[..., 1] / self.lixel_per_pixel[1])
        xy = _affine(crop, bb2img_trans)
        z = (coord_img[..., 2] - self.size[2] / 2) / self.lixel_per_metre + _per_set(root_depth)
        return _stack(xy[..., 0], xy[..., 1], z)

    def inside(self, coord_img, dims=3):
        """Whether points (..., 3) lie in the crop, 0 <= coordinate < size on the first `dims` axes: (..., 1) bool."""
        ok = (coord_img[..., :1] >= 0) & (coord_img[..., :1] < self.size[0])
        for axis in range(1, dims):
            value = coord_img[..., axis:axis + 1]
            ok = ok & (value >= 0) & (value < self.size[axis])
        return ok


def _affine(xy, trans):
    turned = xy @ (trans[..., :2].mT if isinstance(trans, torch.Tensor) else np.swapaxes(trans[..., :2], -1, -2))
    return turned + trans[..., None, :, 2]


def _per_set(depth):
    """A depth per set of points, (...) -> (..., 1), so that it spreads over the points."""
    return depth if np.isscalar(depth) else depth[..., None]


def _stack(*parts):
    return torch.stack(parts, -1) if isinstance(parts[0], torch.Tensor) else np.stack(parts, -1)
