"""What is known of each person: the network's answer, and its place in the camera frame."""
from dataclasses import dataclass

import numpy as np

from common.demo.people.placement import DEFAULT_FOCAL, MIN_DEPTH_PARTS, fit_translation, root_on_pixel
from common.utils.transforms import depth_from_box, pixel2cam

DEPTH_RATIO = 4  # a fitted depth this many times off the box's depth comes from a failed fit


@dataclass
class Prediction:
    """The network's answer for one box. V vertices, K kinematic joints.

    bbox (4,): the person's box, xywh pixels; crop_bbox (4,): the enlarged box that the network saw.
    mesh_img (V, 3): lixel mesh, x and y in pixels of the picture, root-relative depth in metres.
    pose (K * 3,) axis-angle radians, betas (10,), mesh_cam (V, 3) root-relative metres, model_root (3,) root joint of
    the body model's mesh without translation, metres: None in the lixel stage.
    mirrored: a left hand; the picture was mirrored for the network, meshes and pixels were mirrored back.
    """
    bbox: np.ndarray
    crop_bbox: np.ndarray
    mesh_img: np.ndarray
    pose: np.ndarray | None = None
    betas: np.ndarray | None = None
    mesh_cam: np.ndarray | None = None
    model_root: np.ndarray | None = None
    mirrored: bool = False


@dataclass
class Camera:
    """A pinhole camera at the origin: focal (2,), princpt (2,) pixels; where the focal length comes from."""
    focal: np.ndarray
    princpt: np.ndarray
    focal_source: str


@dataclass
class Person(Prediction):
    """A prediction in the camera frame.

    root_depth: depth of the root joint, metres; depth_source: 'given', 'fit of the parametric mesh' or 'box area'.
    lixel_cam (V, 3), param_cam (V, 3): meshes in camera space, metres; trans (3,): the body model's translation with
    which it gives param_cam (mirrored in x for a left hand).
    """
    root_depth: float = 0.
    depth_source: str = ''
    lixel_cam: np.ndarray | None = None
    param_cam: np.ndarray | None = None
    trans: np.ndarray | None = None


def choose_camera(predictions: list[Prediction], size: tuple[int, int], focal: np.ndarray | None = None,
                  princpt: np.ndarray | None = None) -> Camera:
    """The camera of one image.

    Args:
        predictions: of the people in the image.
        size: (height, width) of the image, pixels.
        focal: (2,) pixels, or None: 1500, whatever is known of the depths.
        princpt: (2,) pixels, or None: the middle of the image.
    """
    if princpt is None:
        princpt = np.array([size[1] / 2, size[0] / 2])
        if predictions and predictions[0].mirrored:
            princpt[0] = size[1] - 1 - princpt[0]
    princpt = np.array(princpt, np.float64)
    if focal is None:
        return Camera(np.full(2, DEFAULT_FOCAL), princpt, 'default')
    return Camera(np.array(focal, np.float64), princpt, 'given')


def place(prediction: Prediction, camera: Camera, box_size_m: float, root_depth: float | None = None,
          root_row: np.ndarray | None = None) -> Person:
    """Put a prediction into the camera frame: depth, both meshes in camera space, translation.

    Args:
        prediction: the network's answer.
        camera: of the image.
        box_size_m: side of the cube around a person, metres.
        root_depth: of the root joint, metres; None: estimated.
        root_row: (V,) row of the joint regressor that gives the root joint: the parametric mesh's root is put on the
            lixel mesh's root pixel, as in the original's demo. None: the whole mesh is fitted to the lixel mesh.
    """
    focal = camera.focal
    princpt = camera.princpt
    mesh_cam = prediction.mesh_cam
    pixels = prediction.mesh_img[:, :2]
    by_box = depth_from_box(prediction.crop_bbox, focal, box_size_m)
    root = None
    source = 'given'
    if root_depth is None and mesh_cam is not None:
        root = fit_translation(mesh_cam, pixels, focal, princpt)
        source = 'fit of the parametric mesh'
        if root is None or not 1 / DEPTH_RATIO < root[2] / by_box < DEPTH_RATIO:
            root = None
    if root is not None:
        root_depth = float(root[2])
    elif root_depth is None:
        root_depth = by_box
        source = 'box area'
    nearest = MIN_DEPTH_PARTS * box_size_m - float(prediction.mesh_img[:, 2].min())
    if mesh_cam is not None:
        nearest = max(nearest, MIN_DEPTH_PARTS * box_size_m - float(mesh_cam[:, 2].min()))
    if root_depth < nearest:  # the whole mesh has to lie in front of the camera
        root_depth = nearest
        root = None
        source += ', raised to keep the mesh in front of the camera'
    person = Person(**vars(prediction), root_depth=root_depth, depth_source=source)
    person.lixel_cam = pixel2cam(prediction.mesh_img + [0, 0, root_depth], focal, princpt).astype(np.float32)
    if mesh_cam is not None:
        if root_row is not None:
            root = root_on_pixel(root_row, pixels, focal, princpt, root_depth)
        elif root is None:
            root = fit_translation(mesh_cam, pixels, focal, princpt, depth=root_depth)
        person.param_cam = (mesh_cam + root).astype(np.float32)
        person.trans = root * ([-1, 1, 1] if prediction.mirrored else 1) - prediction.model_root
    return person
