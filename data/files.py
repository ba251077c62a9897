"""Reading annotation files: one clear line for a file that is missing, broken, or has a bad record."""
import json
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.utils.preprocessing import to_xywh


def require(path, holds, avoid=''):
    """The path, if the file is there. UserError: what it holds, and `avoid`, how to do without it."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f'{path} is missing: it holds {holds}{"; " + avoid if avoid else ""}. Where to get it: '
                        f'python tool/check_assets.py')
    return path


def read_json(path, holds, avoid=''):
    """Content of a JSON file. UserError: missing (see `require`), or no JSON."""
    try:
        with open(require(path, holds, avoid), encoding='utf-8') as file:
            return json.load(file)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f'{path} is not a JSON file ({error}): download it again') from error


def read_array(path, shape, holds):
    """A float32 array of a .npy file. UserError: missing, unreadable or of another shape."""
    try:
        array = np.load(require(path, holds), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f'{path} is not an array file ({error}): download it again') from error
    if array.shape != shape:
        raise UserError(f'{path} has the shape {array.shape}, expected {shape}: it belongs to another body model')
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
    if not isinstance(content, dict) or not {'images', 'annotations'} <= set(content):
        raise UserError(f'{path} has no "images" and "annotations": it is not a COCO-style file')
    images = {}
    for image in content['images']:
        _check_record(path, 'image', image, ('id', 'file_name', 'width', 'height', *image_keys))
        images[image['id']] = image
    for annotation in content['annotations']:
        _check_record(path, 'annotation', annotation, ('id', 'image_id', 'bbox', *annotation_keys))
        if annotation['image_id'] not in images:
            raise UserError(f'{path}: annotation {annotation["id"]} is of image {annotation["image_id"]}, which is '
                            f'not in "images"')
        if len(annotation['bbox']) != 4:
            raise UserError(f'{path}: annotation {annotation["id"]} has the bbox {annotation["bbox"]}, not x, y, '
                            f'width, height')
    return images, content['annotations']


def _check_record(path, kind, record, keys):
    lacking = [key for key in keys if key not in record]
    if lacking:
        raise UserError(f'{path}: {kind} {record.get("id", "without an id")} has no {", ".join(lacking)}')


class RootNetFile:
    """Test boxes and root depths made by RootNet, a list of {key, bbox (4,) pixels, root_cam (3,)}.

    entries: (key, box (4,) float32 xywh, root depth in metres) of each; by_key: the last two by the text of the key.
    key: 'image_id' or 'ann_id'. unit: metres per unit of root_cam. box_format: of the file, 'xywh' or 'xyxy'.
    """

    def __init__(self, path, key, unit, box_format='xywh'):
        self.entries = []
        for entry in read_json(path, 'boxes and root depths for testing', 'use_gt_info=true does without'):
            _check_record(path, 'entry', entry, (key, 'bbox', 'root_cam'))
            bbox = np.asarray(to_xywh(entry['bbox'], box_format), np.float32)
            self.entries.append((entry[key], bbox, float(entry['root_cam'][2]) * unit))
        self.by_key = {str(name): (bbox, depth) for name, bbox, depth in self.entries}
