"""What the converters share: JSON files that are read in pieces and written whole, boxes, rigid motions of a fit."""
import json
import re

import numpy as np

from common.errors import UserError
from common.files import whole
from common.utils.transforms import rotate_pose, world2cam_trans

CHUNK = 1 << 22  # characters that iter_json_list reads at a time
SEPARATOR = re.compile(r'[\s,]*')


def iter_json_list(path, what):
    """Yield the elements of the list that a JSON file holds, one at a time, in the memory of a few elements.

    FreiHAND's vertex file has 76 million numbers: read at once it would take more than 3 GB.
    """
    decoder = json.JSONDecoder()
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read(CHUNK).lstrip()
            if not text.startswith('['):
                raise UserError(f'{path} does not hold a list: {what}')
            position = 1
            while True:
                position = SEPARATOR.match(text, position).end()
                if text.startswith(']', position):
                    return
                try:
                    element, end = decoder.raw_decode(text, position)
                    complete = end < len(text)  # a comma or a bracket follows: a number's last digits are there
                except ValueError:
                    complete = False
                if complete:
                    yield element
                    position = end
                    continue
                piece = file.read(CHUNK)
                if not piece or len(text) - position > 16 * CHUNK:
                    raise UserError(f'{path} is cut off or broken: {what}')
                text, position = text[position:] + piece, 0
    except FileNotFoundError:
        raise UserError(f'{path} is missing: {what}') from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'{path} cannot be read ({error}): {what}') from error


def write_json(content, path):
    """Write JSON to `path`: it holds all of it or is not touched, whenever the program stops. Folders are made."""
    try:
        whole.write_json(path, content)
    except OSError as error:
        raise UserError(f'cannot write {path} ({error}): choose another --out') from error


def numbers(array, digits=6):
    """An array as nested lists for JSON, rounded: micrometres and microradians are enough, files are half as long."""
    return np.round(np.asarray(array, np.float64), digits).tolist()


def tight_box(points, width, height):
    """The xywh box (4 floats, pixels) around image points (N, >= 2), cut to the image; None if none of it is inside."""
    low = np.maximum(points[:, :2].min(0), 0)
    high = np.minimum(points[:, :2].max(0), [width - 1, height - 1])
    if not (high > low).all():
        return None
    return [*low.tolist(), *(high - low).tolist()]


def move_fits(poses, trans, pelvis, rotations, translations):
    """Parameters of N bodies after the rigid motions x -> R x + t of their surfaces.

    poses (N, K*3) axis-angle, trans (N, 3) metres, pelvis (N, 3) metres: the root joints before translation, rotations
    (N, 3, 3), translations (N, 3) metres. Returns the new poses and trans, float64.
    """
    poses = [rotate_pose(pose, rotation) for pose, rotation in zip(poses, rotations, strict=True)]
    trans = [world2cam_trans(*fit) for fit in zip(trans, pelvis, rotations, translations, strict=True)]
    return np.stack(poses), np.stack(trans)


def rigid_motion(source, target):
    """The rotations (N, 3, 3) and translations (N, 3) that move (N, P, 3) points closest to (N, P, 3) others.

    Least squares without scale or reflection (Kabsch).
    """
    source_mean, target_mean = source.mean(1, keepdims=True), target.mean(1, keepdims=True)
    u, _, vt = np.linalg.svd(np.swapaxes(source - source_mean, 1, 2) @ (target - target_mean))
    v, ut = np.swapaxes(vt, 1, 2), np.swapaxes(u, 1, 2)
    sign = np.ones((len(u), 3))
    sign[:, 2] = np.linalg.det(v @ ut)
    rotation = (v * sign[:, None]) @ ut
    translation = target_mean[:, 0] - np.einsum('nab,nb->na', rotation, source_mean[:, 0])
    return rotation, translation
