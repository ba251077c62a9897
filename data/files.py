"""Reading annotation files: one clear line for a file that is missing, broken, or has a bad record."""
import json
from pathlib import Path

import numpy as np

from common.errors import UserError, one_line, shown
from common.files.arrays import read_npy
from common.utils.preprocessing import to_xywh

LARGEST_SIDE = 10 ** 6  # pixels: no picture is wider or higher


def require(path, holds, avoid=''):
    """The path, if the file is there. UserError: what it holds, and `avoid`, how to do without it."""
    path = Path(path)
    if path.is_dir():
        raise UserError(f'{path} is a folder, where a file belongs that holds {holds}: move it away. Where to get the '
                        f'file: python tool/check_assets.py')
    if not path.is_file():
        raise UserError(f'{path} is missing: it holds {holds}{"; " + avoid if avoid else ""}. Where to get it: '
                        f'python tool/check_assets.py')
    return path


def read_json(path, holds, avoid=''):
    """Content of a JSON file. UserError: missing (see `require`), not to be read, or no JSON."""
    try:
        with open(require(path, holds, avoid), encoding='utf-8') as file:
            return json.load(file)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a ValueError of its own
        raise UserError(f'{path} is not a JSON file ({error}): download it again') from error


def unreadable(path, error):
    """The UserError for a file that is there, and that the system does not let us read (OSError)."""
    return UserError(f'{path} cannot be read ({error.strerror or error}): see to its permissions, and to the disk')


def read_records(path, kind, holds, avoid=''):
    """What read_json reads, if it is a `kind`: dict or list. UserError otherwise."""
    content = read_json(path, holds, avoid)
    if not isinstance(content, kind):
        names = {dict: 'dictionary', list: 'list'}
        raise UserError(f'{path} holds a {type(content).__name__} where a {names[kind]} belongs ({holds}): is it '
                        'another file under this name? Download it again')
    return content


def read_array(path, shape, holds):
    """A float32 array of a .npy file. UserError: missing, unreadable, of another shape, or not finite."""
    path = require(path, holds)
    try:
        with open(path, 'rb') as file:
            array = read_npy(file)
    except OSError as error:
        raise unreadable(path, error) from error
    except Exception as error:  # NumPy parses the header as Python text: forged, it can fail in any way
        raise UserError(f'{path} is not an array file ({one_line(error)}): download it again') from error
    if array.shape != shape:
        raise UserError(f'{path} has the shape {array.shape}, expected {shape}: it belongs to another body model')
    if not np.isfinite(array).all():
        raise UserError(f'{path} has values that are not finite: download it again')
    return array.astype(np.float32)


def read_regressor(data_dir, name, vertex_num):
    """(17, V) joint regressor 'h36m' or 'coco' of SMPL, from the folder of its data set."""
    folder, file, joints = {'h36m': ('Human36M', 'J_regressor_h36m_correct.npy', 'Human3.6M'),
                            'coco': ('MSCOCO', 'J_regressor_coco_hip_smpl.npy', 'MS COCO')}[name]
    return read_array(Path(data_dir) / folder / file, (17, vertex_num), f'the {joints} joints of a mesh')


def read_coco(path, holds, image_keys=(), annotation_keys=()):
    """Pairs (image, annotation) of a COCO-style JSON file, in the order of its annotations.

    image_keys, annotation_keys: fields the loader needs besides `file_name`, `width`, `height` and `bbox`.
    UserError: missing or no JSON, or the first record that lacks a field, by its id.
    """
    images, annotations = read_coco_lists(path, holds, image_keys, annotation_keys)
    return [(images[annotation['image_id']], annotation) for annotation in annotations]


def read_coco_lists(path, holds, image_keys=(), annotation_keys=()):
    """What read_coco reads: {id: image}, those without annotations too, and the list of annotations."""
    content = read_json(path, holds)
    if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in ('images', 'annotations')):
        raise UserError(f'{path} has no lists "images" and "annotations": it is not a COCO-style file; download it '
                        'again')
    images = {}
    for image in content['images']:
        _check_record(path, 'image', image, ('id', 'file_name', 'width', 'height', *image_keys))
        where = f'{path}: image {_id(image)}'
        if not (isinstance(image['file_name'], str) and image['file_name'].isprintable()):
            raise UserError(f'{where} has a file_name that is none: download the file again')
        if not all(_is_number(image[key]) and 0 < image[key] <= LARGEST_SIDE for key in ('width', 'height')):
            raise UserError(f'{where} has a width and height that are no pixels ({shown(image["width"])}, '
                            f'{shown(image["height"])}): download the file again')
        images[image['id']] = image
    for annotation in content['annotations']:
        _check_record(path, 'annotation', annotation, ('id', 'image_id', 'bbox', *annotation_keys))
        if annotation['image_id'] not in images:
            raise UserError(f'{path}: annotation {_id(annotation)} is of image {shown(annotation["image_id"])}, which '
                            f'is not in "images": download the file again')
        _check_bbox(f'{path}: annotation {_id(annotation)}', annotation['bbox'])
    return images, content['annotations']


def _check_record(path, kind, record, keys):
    """UserError unless a record is a dictionary with these keys; those that end with id must be numbers or texts."""
    if not isinstance(record, dict):
        raise UserError(f'{path}: {kind} {shown(record)} is no dictionary: download the file again')
    lacking = [key for key in keys if key not in record]
    if lacking:
        raise UserError(f'{path}: {kind} {_id(record)} has no {", ".join(lacking)}: download the file again')
    for key in keys:
        if key.endswith('id') and not isinstance(record[key], int | float | str):
            raise UserError(f'{path}: {kind} {_id(record)} has a {key} that is neither a number nor a text: download '
                            'the file again')


def _check_bbox(where, bbox):
    if not (isinstance(bbox, list) and len(bbox) == 4 and all(map(_is_number, bbox))):
        raise UserError(f'{where} has the bbox {shown(bbox)}, not x, y, width, height: download the file again')


def _is_number(value):
    """Whether a value of a JSON file is a number that an array takes (NaN too, but no integer of 400 digits)."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2 ** 63)


def _id(record):
    return shown(record['id']) if 'id' in record else 'without an id'




class RootNetFile:
    """Test boxes and root depths made by RootNet, a list of {key, bbox (4,) pixels, root_cam (3,)}.

    entries: (key, box (4,) float32 xywh, root depth in metres) of each; by_key: the last two by the text of the key.
    key: 'image_id' or 'ann_id'. unit: metres per unit of root_cam. box_format: of the file, 'xywh' or 'xyxy'.
    """

    def __init__(self, path, key, unit, box_format='xywh'):
        self.entries = []
        for entry in read_records(path, list, 'boxes and root depths for testing', 'use_gt_info=true does without'):
            _check_record(path, 'entry', entry, (key, 'bbox', 'root_cam'))
            where, root = f'{path}: the entry of {key} {shown(entry[key])}', entry['root_cam']
            _check_bbox(where, entry['bbox'])
            if not (isinstance(root, list) and len(root) == 3 and all(map(_is_number, root))):
                raise UserError(f'{where} has the root_cam {shown(root)}, not x, y, z: download the file again')
            bbox = np.asarray(to_xywh(entry['bbox'], box_format), np.float32)
            self.entries.append((entry[key], bbox, float(entry['root_cam'][2]) * unit))
        self.by_key = {str(name): (bbox, depth) for name, bbox, depth in self.entries}
