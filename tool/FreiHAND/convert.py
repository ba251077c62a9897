"""FreiHAND: from the official lists to the JSON files that data/FreiHAND reads.

    python tool/FreiHAND/convert.py /path/to/FreiHAND_pub_v2

reads training_{K,mano,xyz,verts}.json and evaluation_{K,scale}.json (also evaluation_{xyz,verts}.json, the ground
truth that was released later, where they are there) and writes
data/FreiHAND/data/freihand_{train,eval}_{coco,data}.json.
Put (or link) the official training/ and evaluation/ folders beside them. The training set needs MANO_RIGHT.pkl.

The release has 32560 hands and four pictures of each (with other backgrounds): picture i shows hand i modulo 32560.
Its 61 MANO values are the pose (48, axis-angle), the shape (10), the root in the image (2) and its depth (1). The last
three are not used: the translation, and the root rotation where it differs, come from moving MANO's surface onto the
released one (onto the 21 joints, if there is no training_verts.json). `mano_param` leaves the mean hand pose out of its
45 finger values (smplx: flat_hand_mean=False); the file is examined for which of the two conventions it follows.
"""
import runpy
from itertools import islice, zip_longest
from pathlib import Path

import cv2
import numpy as np
import torch
from tqdm import tqdm

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[2] / 'main' / 'init_path.py'))

from common.arguments import Parser
from common.errors import UserError, run_main
from common.human_model import get_human_model
from common.utils.transforms import cam2pixel
from main.config import ROOT
from tool.convert.fits import move_fits, rigid_motion, tight_box
from tool.files.json_list import iter_json_list
from tool.files.write import numbers, write_json

IMAGE_SIZE = 224  # pixels; used if the pictures are not there to be measured
COPIES = 4  # pictures of each training hand
BATCH = 64  # hands at a time
LARGEST_RESIDUAL = 5  # mm between MANO and the released hands


def convert_mean_pose(pose, mean, add):
    """Hand poses (N, 48) of one MANO convention as poses of the other.

    add=True: from values relative to the mean hand (flat_hand_mean=False) to complete ones (flat_hand_mean=True).
    add=False: the other way round. mean: (45,) radians, `hands_mean` of the model file.
    """
    pose = np.array(pose, np.float64)
    pose[:, 3:] += mean if add else -np.asarray(mean)
    return pose


def camera(intrinsics):
    """`cam_param` of the JSON files from a 3x3 camera matrix."""
    k = np.asarray(intrinsics, np.float64)
    return dict(R=np.eye(3).tolist(), t=[0., 0., 0.], focal=numbers(k[[0, 1], [0, 1]]), princpt=numbers(k[:2, 2]))


@torch.no_grad()
def fit_hands(hand, pose, shape, target):
    """Move MANO hands onto released ones.

    pose (N, 48), shape (N, 10), target (N, 778, 3) vertices or (N, 21, 3) joints, metres. Returns pose (N, 48), trans
    (N, 3) metres, the surfaces (N, 778, 3) metres, and their mean distance from the target, (N,) metres.
    """
    vertices, joints = hand(torch.tensor(pose, dtype=torch.float32), torch.tensor(shape, dtype=torch.float32))
    points = vertices if target.shape[1] == hand.vertex_num else hand.fit_joints(vertices, joints)
    vertices, joints, points = (x.double().numpy() for x in (vertices, joints, points))
    rotation, translation = rigid_motion(points, target)
    pose, trans = move_fits(pose, np.zeros((len(pose), 3)), joints[:, 0], rotation, translation)
    vertices, points = (np.einsum('nab,nvb->nva', rotation, x) + translation[:, None] for x in (vertices, points))
    return pose, trans, vertices, np.linalg.norm(points - target, axis=2).mean(1)


def convert_hands(hand, mano, target, relative=None):
    """`mano_param` of N hands, their surfaces (N, 778, 3) and their mean distance (N,) from `target`, in metres, and
    the convention found.

    mano (N, 61) values of the release, target (N, 778, 3) or (N, 21, 3) metres. relative: whether the finger values
    leave out the mean pose; None: take what fits these hands better.
    """
    pose, shape = mano[:, :48], mano[:, 48:58]
    mean = np.asarray(hand.pose_mean, np.float64).ravel()[-45:]
    fits = {kind: fit_hands(hand, pose if kind else convert_mean_pose(pose, mean, add=False), shape, target)
            for kind in ((True, False) if relative is None else (relative,))}
    kind = min(fits, key=lambda kind: fits[kind][3].mean())
    pose, trans, surfaces, residual = fits[kind]
    params = [dict(pose=numbers(p), shape=numbers(s), trans=numbers(t))
              for p, s, t in zip(pose, shape, trans, strict=True)]
    return params, surfaces, residual, kind


def image_size(folder):
    """(width, height) in pixels of the first picture in a folder, or the official size if it has none."""
    for path in islice(sorted(folder.glob('*.[jp][pn]g')), 1):
        picture = cv2.imread(str(path))
        if picture is None:
            raise UserError(f'{path} cannot be read as an image: unpack FreiHAND again')
        return picture.shape[1], picture.shape[0]
    return IMAGE_SIZE, IMAGE_SIZE


def coco_lists(folder, size, boxes, copies):
    """`images` and `annotations`: `copies` rounds over the hands, whose boxes (xywh, pixels) are given in order."""
    images, annotations = [], []
    for i in range(copies * len(boxes)):
        hand = i % len(boxes)
        images.append(dict(id=i, file_name=f'{folder}/rgb/{i:08d}.jpg', width=size[0], height=size[1], db_idx=hand))
        annotations.append(dict(id=i, image_id=i, bbox=boxes[hand]))
    return dict(images=images, annotations=annotations)


def hand_box(points, cam_param, size):
    """Tight xywh box, pixels, of (N, 3) points in camera space; the whole picture if none of them is in it."""
    return tight_box(cam2pixel(points, cam_param['focal'], cam_param['princpt']), *size) or [0., 0., *map(float, size)]


def released_hands(raw):
    """Yield camera matrix (3, 3), MANO values (61,), joints (21, 3) and, if released, surface (778, 3) of each hand."""
    shapes = dict(K=(3, 3), mano=(61,), xyz=(21, 3), verts=(778, 3))
    if not (raw / 'training_verts.json').exists():
        shapes.pop('verts')
    lists = [iter_json_list(raw / f'training_{name}.json', f'a list of the FreiHAND training set, unpacked in {raw}')
             for name in shapes]
    for number, hand in enumerate(zip_longest(*lists)):
        arrays = []
        for values, (name, shape) in zip(hand, shapes.items(), strict=True):
            if values is None:
                raise UserError(f'{raw}/training_{name}.json ends after {number} hands, other lists go on')
            try:
                arrays.append(np.asarray(values, np.float64).reshape(shape))
            except ValueError as error:
                raise UserError(f'{raw}/training_{name}.json: hand {number} does not have the shape {shape}') from error
            if not np.isfinite(arrays[-1]).all():
                raise UserError(f'{raw}/training_{name}.json: hand {number} has a value that is not finite')
        yield arrays


def convert_training(raw, hand, copies=COPIES):
    """The contents of freihand_train_coco.json and freihand_train_data.json."""
    size = image_size(raw / 'training' / 'rgb')
    data, boxes, residuals, relative = {}, [], [], None
    total = sum(1 for _ in iter_json_list(raw / 'training_K.json', f'the cameras of FreiHAND, unpacked in {raw}'))
    hands = iter(tqdm(released_hands(raw), desc='training', unit='hand', total=total))
    while batch := list(islice(hands, BATCH)):
        matrices, mano, joints, *surfaces = (np.stack(x) for x in zip(*batch, strict=True))
        params, surfaces, residual, relative = convert_hands(hand, mano, surfaces[0] if surfaces else joints, relative)
        residuals += residual.tolist()
        for k, param, xyz, surface in zip(matrices, params, joints, surfaces, strict=True):
            cam_param = camera(k)
            data[str(len(boxes))] = dict(cam_param=cam_param, mano_param=param, joint_3d=numbers(xyz))
            boxes.append(numbers(hand_box(surface, cam_param, size), 3))
    if not boxes:
        raise UserError(f'{raw}: the training lists are empty')
    distance = 1000 * np.mean(residuals)
    convention = 'are relative to the mean hand' if relative else 'include the mean hand, which was taken off'
    print(f'training: finger values {convention}; MANO is {distance:.3f} mm from the released hands')
    if distance > LARGEST_RESIDUAL:
        raise UserError(f'MANO is {distance:.1f} mm from the released hands on average: check that MANO_RIGHT.pkl '
                        'is the official file and that the training lists are of one release')
    return coco_lists('training', size, boxes, copies), data


def convert_evaluation(raw):
    """The contents of freihand_eval_coco.json and freihand_eval_data.json.

    Boxes come from the released ground truth; without it they are the whole picture.
    """
    cameras = [camera(k) for k in iter_json_list(raw / 'evaluation_K.json', 'the camera matrices of FreiHAND')]
    scales = list(iter_json_list(raw / 'evaluation_scale.json', 'the bone lengths of FreiHAND'))
    if len(scales) != len(cameras):
        raise UserError(f'{raw}: {len(scales)} scales and {len(cameras)} camera matrices in the evaluation lists')
    size = image_size(raw / 'evaluation' / 'rgb')
    truth = next((path for name in ('verts', 'xyz') if (path := raw / f'evaluation_{name}.json').exists()), None)
    if truth is None:
        print('evaluation: no ground truth (evaluation_xyz.json, evaluation_verts.json): boxes are the whole picture')
        boxes = [[0., 0., float(size[0]), float(size[1])]] * len(cameras)
    else:
        surfaces = list(iter_json_list(truth, 'the ground truth of the evaluation set'))
        if len(surfaces) != len(cameras):
            raise UserError(f'{truth} has {len(surfaces)} hands, evaluation_K.json {len(cameras)} camera matrices')
        boxes = [numbers(hand_box(np.asarray(s, np.float64), c, size), 3)
                 for s, c in zip(surfaces, cameras, strict=True)]
    data = {str(i): dict(cam_param=c, scale=s) for i, (c, s) in enumerate(zip(cameras, scales, strict=True))}
    return coco_lists('evaluation', size, boxes, 1), data


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('raw', type=Path, help='folder in which FreiHAND_pub_v2.zip was unpacked')
    parser.add_argument('--split', nargs='+', choices=('train', 'eval'), default=('train', 'eval'))
    parser.add_argument('--out', type=Path, default=ROOT / 'data/FreiHAND/data', help='folder of the JSON files')
    parser.add_argument('--human_model_dir', type=Path, default=ROOT / 'data/human_models',
                        help='folder with MANO_RIGHT.pkl')
    args = parser.parse_args(argv)
    for split in args.split:
        if split == 'train':
            coco, data = convert_training(args.raw, get_human_model('mano', args.human_model_dir))
        else:
            coco, data = convert_evaluation(args.raw)
        write_json(args.out / f'freihand_{split}_data.json', data)
        write_json(args.out / f'freihand_{split}_coco.json', coco)
        print(f'{args.out}/freihand_{split}_{{coco,data}}.json: {len(coco["images"])} pictures of {len(data)} hands')


if __name__ == '__main__':
    run_main(main)
