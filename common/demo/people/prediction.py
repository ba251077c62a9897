"""What is known of each person: the network's answer, and its place in the camera frame."""
from dataclasses import dataclass

import numpy as np

from common.demo.people.placement import DEFAULT_FOCAL, MIN_DEPTH_PARTS, fit_focal, fit_translation, focal_from_box
from common.utils.transforms import Camera, depth_from_box, pixel2cam

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


def choose_camera(predictions, size, box_size_m, focal=None, princpt=None, root_depths=None):
    """The picture's camera. size (height, width) pixels; focal (2,), princpt (2,) pixels: None if not given.

    Without a focal length it is 1500 pixels, or, where the root depths (one per person, metres) are given, the one
    that lets meshes of that distance fit the picture.
    """
    mirrored = bool(predictions) and predictions[0].mirrored
    if princpt is None:
        princpt = (size[1] - 1 - size[1] / 2 if mirrored else size[1] / 2, size[0] / 2)
    princpt = np.array(princpt, np.float64)
    if focal is not None:
        return Camera(np.array(focal, np.float64), princpt, 'given')
    if root_depths is None or not predictions:
        return Camera(np.full(2, DEFAULT_FOCAL), princpt, 'default')
    found = []
    for person, depth in zip(predictions, root_depths, strict=True):
        by_box = focal_from_box(person.crop_bbox, depth, box_size_m)
        fitted = None if person.mesh_cam is None else fit_focal(person.mesh_cam, person.mesh_img[:, :2], princpt, depth)
        found.append(fitted if fitted and 1 / DEPTH_RATIO < fitted / by_box < DEPTH_RATIO else by_box)
    return Camera(np.full(2, float(np.median(found))), princpt, 'fitted to the given root depth')


def place(prediction, camera, box_size_m, root_depth=None):
    """Prediction -> Person: depth (`root_depth` metres, or estimated), both meshes in camera space, translation."""
    focal, princpt = camera.focal, camera.princpt
    mesh_cam, pixels = prediction.mesh_cam, prediction.mesh_img[:, :2]
    by_box = depth_from_box(prediction.crop_bbox, focal, box_size_m)
    root, source = None, 'given'
    if root_depth is None and mesh_cam is not None:
        root, source = fit_translation(mesh_cam, pixels, focal, princpt), 'fit of the parametric mesh'
        if root is None or not 1 / DEPTH_RATIO < root[2] / by_box < DEPTH_RATIO:
            root = None
    if root is not None:
        root_depth = float(root[2])
    elif root_depth is None:
        root_depth, source = by_box, 'box area'
    nearest = MIN_DEPTH_PARTS * box_size_m - float(prediction.mesh_img[:, 2].min())
    if mesh_cam is not None:
        nearest = max(nearest, MIN_DEPTH_PARTS * box_size_m - float(mesh_cam[:, 2].min()))
    if root_depth < nearest:  # the whole mesh has to lie in front of the camera
        root_depth, root, source = nearest, None, source + ', raised to keep the mesh in front of the camera'
    person = Person(**vars(prediction), root_depth=root_depth, depth_source=source)
    person.lixel_cam = pixel2cam(prediction.mesh_img + [0, 0, root_depth], focal, princpt).astype(np.float32)
    if mesh_cam is not None:
        if root is None:
            root = fit_translation(mesh_cam, pixels, focal, princpt, depth=root_depth)
        person.param_cam = (mesh_cam + root).astype(np.float32)
        person.trans = root * ([-1, 1, 1] if prediction.mirrored else 1) - prediction.model_root
    return person
