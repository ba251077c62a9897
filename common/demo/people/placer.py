"""Predictions into camera space: the camera of an image, and the place of each person before it."""
from dataclasses import dataclass

import numpy as np

from common.demo.people.placement import MIN_DEPTH_PARTS, check_camera, fit_translation, root_on_pixel
from common.demo.people.prediction import Camera, Person, Prediction
from common.errors import UserError
from common.utils.transforms import depth_from_box, pixel2cam

DEFAULT_FOCAL = 1.5  # times the longer side of the image: 1500 pixels, the published value, for one of 1000 pixels
FILM_DIAGONAL = float(np.hypot(36, 24))  # of 35 mm film, millimetres
FIELD_OF_VIEW = (20., 120.)  # degrees over the longer side; hardly any photo of people has another
DEPTH_RATIO = 4  # a fitted depth this many times off the box's depth comes from a failed fit


@dataclass
class Placer:
    """Puts the people of an image into camera space, with what the user says of the camera.

    Raises:
        UserError: no camera has such values.
    """
    box_size_m: float  # side of the cube around a person, metres
    focal: np.ndarray | list[float] | None = None  # 1 or 2 numbers, pixels; (2,) after creation
    princpt: list[float] | None = None  # (2,) pixels
    root_depth: list[float] | None = None  # metres, one for all people or one each; None: estimated
    root_row: np.ndarray | None = None  # see `place`

    def __post_init__(self) -> None:
        if self.focal is not None:
            self.focal = np.broadcast_to(np.array(self.focal, np.float64), 2)
        check_camera(self.focal, self.princpt, None, self.box_size_m)
        for depth in self.root_depth or []:
            check_camera(None, None, depth, self.box_size_m)

    def __call__(self, predictions: list[Prediction], size: tuple[int, int], film_focal: float | None = None,
                 camera: Camera | None = None) -> tuple[Camera, list[Person]]:
        """Place all people of an image.

        Args:
            predictions: of the people.
            size: (height, width) of the image, pixels.
            film_focal: see `choose_camera`.
            camera: None: chosen by `choose_camera`.
        Raises:
            UserError: neither one depth was given nor one for each person.
        """
        depths = self._root_depths(len(predictions))
        if camera is None:
            camera = choose_camera(predictions, size, self.focal, self.princpt, film_focal)
        people = []
        for prediction, depth in zip(predictions, depths, strict=True):
            people.append(place(prediction, camera, self.box_size_m, depth, self.root_row))
        return camera, people

    def _root_depths(self, count: int) -> list[float | None]:
        if self.root_depth is None:
            return [None] * count
        if len(self.root_depth) == 1:
            return [self.root_depth[0]] * count
        if len(self.root_depth) != count:
            raise UserError(f'--root_depth has {len(self.root_depth)} numbers for {count} people: '
                            'give one, or one for each')
        return list(self.root_depth)


def choose_camera(predictions: list[Prediction], size: tuple[int, int],
                  focal: np.ndarray | list[float] | None = None,
                  princpt: np.ndarray | list[float] | None = None, film_focal: float | None = None) -> Camera:
    """The camera of one image.

    Args:
        predictions: of the people in the image.
        size: (height, width) of the image, pixels.
        focal: (2,) pixels, or None: by `film_focal`, else 1.5 times the longer side, whatever is known of the depths.
        princpt: (2,) pixels, or None: the middle of the image.
        film_focal: EXIF's FocalLengthIn35mmFilm, millimetres, if it is known.
    """
    if princpt is None:
        princpt = [size[1] / 2, size[0] / 2]
        if predictions and predictions[0].mirrored:
            princpt[0] = size[1] - 1 - princpt[0]
    center = np.array(princpt, np.float64)
    if focal is not None:
        return Camera(np.array(focal, np.float64), center, 'given')
    if film_focal is not None:
        pixels = film_focal * np.hypot(*size) / FILM_DIAGONAL
        return Camera(np.full(2, pixels), center, f'EXIF: {film_focal:g} mm on 35 mm film')
    return Camera(np.full(2, DEFAULT_FOCAL * max(size)), center, 'default: 1.5 times the longer side of the image')


def field_of_view(camera: Camera, size: tuple[int, int]) -> float:
    """Degrees that a camera sees over the longer side of an image of size (height, width), pixels."""
    height, width = size
    half = max(width / camera.focal[0], height / camera.focal[1]) / 2
    return float(np.degrees(2 * np.arctan(half)))


def odd_view(camera: Camera, size: tuple[int, int]) -> str:
    """A note about a field of view that cameras hardly have, or ''."""
    degrees = field_of_view(camera, size)
    if FIELD_OF_VIEW[0] <= degrees <= FIELD_OF_VIEW[1]:
        return ''
    return (f'a focal length of {camera.focal[0]:.4g} pixels ({camera.focal_source}) is a field of view of '
            f'{degrees:.0f} degrees, which few cameras have: depth and shape may be wrong; --focal changes it')


def place(prediction: Prediction, camera: Camera, box_size_m: float,
          root_depth: float | None = None, root_row: np.ndarray | None = None) -> Person:
    """Put a prediction into camera space: depth, both meshes, translation.

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
    body = prediction.body
    pixels = prediction.mesh_img[:, :2]
    root, root_depth, source = _root(prediction, camera, box_size_m, root_depth)
    lixel_cam = pixel2cam(prediction.mesh_img + [0, 0, root_depth], focal, princpt)
    person = Person(prediction, root_depth, source, lixel_cam.astype(np.float32))
    if body is None:
        return person
    if root_row is not None:
        root = root_on_pixel(root_row, pixels, focal, princpt, root_depth)
    elif root is None:
        root = fit_translation(body.mesh_cam, pixels, focal, princpt, depth=root_depth)
    assert root is not None  # a predictor gives finite numbers only
    person.param_cam = (body.mesh_cam + root).astype(np.float32)
    person.trans = root * prediction.mirror - body.root
    return person


def _root(prediction: Prediction, camera: Camera, box_size_m: float,
          root_depth: float | None) -> tuple[np.ndarray | None, float, str]:
    """The root joint (3,) in camera space where a fit gives it, its depth (metres), and where the depth is from."""
    body = prediction.body
    root = None
    source = 'given'
    if root_depth is None:
        root_depth = depth_from_box(prediction.crop_bbox, camera.focal, box_size_m)
        source = 'box area'
        if body is not None:
            pixels = prediction.mesh_img[:, :2]
            root = fit_translation(body.mesh_cam, pixels, camera.focal, camera.princpt)
        if root is not None and 1 / DEPTH_RATIO < root[2] / root_depth < DEPTH_RATIO:
            root_depth = float(root[2])
            source = 'fit of the parametric mesh'
        else:
            root = None
    front = float(prediction.mesh_img[:, 2].min())  # of the mesh, metres relative to the root joint
    if body is not None:
        front = min(front, float(body.mesh_cam[:, 2].min()))
    nearest = MIN_DEPTH_PARTS * box_size_m - front
    if root_depth < nearest:  # the whole mesh has to lie in front of the camera
        return None, nearest, source + ', raised to keep the mesh in front of the camera'
    return root, root_depth, source
