"""FreiHAND: from the official lists to the JSON files that data/FreiHAND reads.

    python tool/FreiHAND/convert.py /path/to/FreiHAND_pub_v2

reads training_{K,mano,xyz,verts}.json and evaluation_{K,scale}.json (also evaluation_{xyz,verts}.json, the ground
truth that was released later, where they are there) and writes
data/FreiHAND/data/freihand_{train,eval}_{coco,data}.json.
Put (or link) the official training/ and evaluation/ folders beside them. The training set needs MANO_RIGHT.pkl.

The release has 32560 hands and four images of each (with other backgrounds): image i shows hand i modulo 32560.
Its 61 MANO values are the pose (48, axis-angle), the shape (10), the root in the image (2) and its depth (1). The last
three are not used: the translation, and the root rotation where it differs, come from moving MANO's surface onto the
released one (onto the 21 joints, if there is no training_verts.json). `mano_param` leaves the mean hand pose out of its
45 finger values (smplx: flat_hand_mean=False); the file is examined for which of the two conventions it follows.

The boxes and the numbers are this program's choice (data/README.md, "Testing"): RootNet's published file belongs to the
published lists and not to these. As published, `cam_param` has no R and t: everything is in camera space.
"""
import runpy
from itertools import islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[2] / 'main' / 'init_path.py'))

from common.arguments import Parser, show_help
from common.errors import UserError, run_main
from tool.convert.parser import add_max_damaged, make_parser


def own_parser() -> Parser:
    """The parser of the command line."""
    raw = 'folder in which FreiHAND_pub_v2.zip was unpacked'
    parser = make_parser(__doc__, 'FreiHAND', raw, ('train', 'eval'), 'MANO_RIGHT.pkl')
    add_max_damaged(parser)
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

from common.files.listing import visible_files
from common.human_model import HumanModel, get_human_model
from common.utils.transforms import Camera, cam2pixel
from data.checks.limits import camera_fault
from tool.convert.damaged import Damaged, DamagedItem
from tool.convert.fits import move_fits, move_points, rigid_motion, run_body, tight_box
from tool.convert.images import first_image_size
from tool.files.json_list import iter_json_list
from tool.files.write import numbers, write_json
from tool.FreiHAND.release import evaluation_hands, evaluation_points, released_hands

IMAGE_SIZE = 224  # pixels; used if the images are not there to be measured
COPIES = 4  # images of each training hand
BATCH = 64  # hands at a time
LARGEST_RESIDUAL = 5  # mm between MANO and the released hands, on average
LARGEST_OF_ONE = 20  # mm, of a single hand: more is damage
OTHER_MODEL = 'check that MANO_RIGHT.pkl is the official file and that the training lists are of one release'


def convert_mean_pose(pose: np.ndarray, mean: np.ndarray, add: bool) -> np.ndarray:
    """Hand poses of one MANO convention as poses of the other.

    Args:
        pose: (N, 48) axis-angle, radians.
        mean: (45,) radians, `hands_mean` of the model file.
        add: True: from values relative to the mean hand (flat_hand_mean=False) to complete ones (flat_hand_mean=True);
            False: the other way round.
    """
    pose = np.array(pose, np.float64)
    pose[:, 3:] += mean if add else -mean
    return pose


def camera(intrinsics):
    """`cam_param` of the JSON files from a 3x3 camera matrix: FreiHAND's world is the camera's space."""
    k = np.asarray(intrinsics, np.float64)
    return dict(focal=numbers(k[[0, 1], [0, 1]]), princpt=numbers(k[:2, 2]))


def fit_hands(hand: HumanModel, pose: np.ndarray, shape: np.ndarray,
              target: np.ndarray) -> tuple[np.ndarray, ...]:
    """Move MANO hands onto released ones.

    Args:
        hand: The MANO model.
        pose: (N, 48) axis-angle, radians.
        shape: (N, 10).
        target: (N, 778, 3) vertices or (N, 21, 3) joints, metres.
    Returns:
        pose (N, 48), trans (N, 3), the surfaces (N, 778, 3), and their mean distance from the target (N,), metres.
    """
    vertices, joints = run_body(hand, pose, shape)
    points = vertices if target.shape[1] == hand.vertex_num else hand.fit_joints(vertices, joints)
    rotation, translation = rigid_motion(points.double().numpy(), target)
    pelvis = joints[:, 0].double().numpy()
    pose, trans = move_fits(pose, np.zeros((len(pose), 3)), pelvis, rotation, translation)
    surfaces = move_points(vertices.double().numpy(), rotation, translation)
    residual = move_points(points.double().numpy(), rotation, translation) - target
    return pose, trans, surfaces, np.linalg.norm(residual, axis=2).mean(1)


def convert_hands(hand: HumanModel, mano: np.ndarray, target: np.ndarray,
                  relative: bool | None = None) -> tuple[list[dict], np.ndarray, np.ndarray, bool]:
    """Convert the MANO values of N hands.

    Args:
        hand: The MANO model.
        mano: (N, 61) values of the release.
        target: (N, 778, 3) vertices or (N, 21, 3) joints, metres.
        relative: Whether the finger values leave out the mean pose; None: take what fits these hands better.
    Returns:
        `mano_param` of each, their surfaces (N, 778, 3) and mean distance from `target` (N,), metres, and `relative`.
    """
    pose = mano[:, :48]
    shape = mano[:, 48:58]
    mean = np.asarray(hand.pose_mean, np.float64).ravel()[-45:]
    fits = {}
    if relative is not False:
        fits[True] = fit_hands(hand, pose, shape, target)
    if relative is not True:
        fits[False] = fit_hands(hand, convert_mean_pose(pose, mean, add=False), shape, target)
    kind = min(fits, key=lambda kind: np.median(fits[kind][3]))  # a few hands may be damaged
    pose, trans, surfaces, residual = fits[kind]
    params = [dict(pose=numbers(p), shape=numbers(s), trans=numbers(t))
              for p, s, t in zip(pose, shape, trans, strict=True)]
    return params, surfaces, residual, kind


def image_size(folder: Path) -> tuple[int, int]:
    """(width, height) in pixels of the images in a folder, or the official size if it has none."""
    return first_image_size(visible_files(folder, '*.[jp][pn]g')) or (IMAGE_SIZE, IMAGE_SIZE)


def coco_lists(folder: str, size: tuple[int, int], boxes: dict[int, list[float]], total: int,
               copies: int) -> dict[str, list[dict]]:
    """`images` and `annotations`: `copies` rounds over `total` hands, without those that have no box (xywh, pixels)."""
    images = []
    annotations = []
    for i in range(copies * total):
        hand = i % total
        if hand in boxes:
            images.append(dict(
                id=i, file_name=f'{folder}/rgb/{i:08d}.jpg', width=size[0], height=size[1], db_idx=hand))
            annotations.append(dict(id=i, image_id=i, bbox=boxes[hand]))
    return dict(images=images, annotations=annotations)


def hand_box(points: np.ndarray, cam_param: dict, size: tuple[int, int]) -> list[float]:
    """Tight xywh box, pixels, of (N, 3) points in camera space; the whole image if none of them is in it."""
    pixels = cam2pixel(points, cam_param['focal'], cam_param['princpt'])
    return numbers(tight_box(pixels, *size) or [0., 0., *size], 3)


def convert_training(raw: Path, hand: HumanModel, max_damaged: float = 0., copies: int = COPIES) -> tuple[dict, dict]:
    """The contents of freihand_train_coco.json and freihand_train_data.json. Damaged hands are left out.

    UserError: more than the share `max_damaged` of them is damaged, or they are no hands of MANO.
    """
    size = image_size(raw / 'training' / 'rgb')
    data = {}
    boxes: dict[int, list[float]] = {}
    residuals: list[float] = []
    relative = None
    total = sum(1 for _ in iter_json_list(raw / 'training_K.json', 'the camera matrices of FreiHAND'))
    damaged = Damaged(total, 'hands', max_damaged)
    hands = iter(tqdm(released_hands(raw, damaged), desc='training', unit='hand', total=total))
    while batch := list(islice(hands, BATCH)):
        matrices, mano, joints, *released = (np.stack(x) for x in zip(*(arrays for _, arrays in batch), strict=True))
        target = released[0] if released else joints
        params, surfaces, residual, relative = convert_hands(hand, mano, target, relative)
        rows = zip(batch, matrices, params, joints, surfaces, residual, strict=True)
        for (number, _), k, param, xyz, surface, distance in rows:
            cam_param = camera(k)
            fault = hand_fault(k, size, distance)
            if fault:
                damaged.add(DamagedItem(f'{raw}, training hand {number}: {fault}'))
                continue
            residuals.append(distance)
            data[str(number)] = dict(cam_param=cam_param, mano_param=param, joint_3d=numbers(xyz))
            boxes[number] = hand_box(surface, cam_param, size)
    if not boxes:
        raise UserError(f'{raw}: the training lists are empty')
    distance = 1000 * np.mean(residuals)
    convention = 'are relative to the mean hand' if relative else 'include the mean hand, which was taken off'
    print(f'training: finger values {convention}; MANO is {distance:.3f} mm from the released hands')
    if distance > LARGEST_RESIDUAL:
        raise UserError(f'MANO is {distance:.1f} mm from the released hands on average: {OTHER_MODEL}')
    damaged.report()
    return coco_lists('training', size, boxes, total, copies), data


def hand_fault(matrix: np.ndarray, size: tuple[int, int], distance: float) -> str | None:
    """What is impossible about a hand, or None.

    Args:
        matrix: (3, 3) of its camera.
        size: (width, height) of the images, pixels.
        distance: Mean distance between MANO and the released hand, metres.
    """
    if not 1000 * distance <= LARGEST_OF_ONE:
        return f'MANO is {1000 * distance:.0f} mm from the released hands: {OTHER_MODEL}'
    return camera_fault(Camera(matrix[[0, 1], [0, 1]], matrix[:2, 2]), size[::-1])


def convert_evaluation(raw: Path, max_damaged: float = 0.) -> tuple[dict, dict]:
    """The contents of freihand_eval_coco.json and freihand_eval_data.json.

    Boxes come from the released ground truth; without it, or where it is damaged, they are the whole image.
    """
    matrices, scales = evaluation_hands(raw)
    size = image_size(raw / 'evaluation' / 'rgb')
    for number, matrix in enumerate(matrices):
        fault = hand_fault(matrix, size, 0.)
        if fault:  # none can be left out: the server needs a prediction for every image
            raise UserError(f'{raw / "evaluation_K.json"}: hand {number}: {fault}: download it again')
    cameras = [camera(matrix) for matrix in matrices]
    boxes = {number: numbers([0., 0., *size]) for number in range(len(cameras))}
    points = evaluation_points(raw, len(cameras), max_damaged)
    if not points:
        print('evaluation: no evaluation_verts.json or evaluation_xyz.json: boxes are the whole image')
    for number, surface in points.items():
        boxes[number] = hand_box(surface, cameras[number], size)
    data = {str(i): dict(cam_param=c, scale=s) for i, (c, s) in enumerate(zip(cameras, scales, strict=True))}
    return coco_lists('evaluation', size, boxes, len(cameras), 1), data


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = own_parser().parse_args(argv)
    for split in args.split:
        if split == 'train':
            coco, data = convert_training(args.raw, get_human_model('mano', args.human_model_dir), args.max_damaged)
        else:
            coco, data = convert_evaluation(args.raw, args.max_damaged)
        write_json(args.out / f'freihand_{split}_data.json', data)
        write_json(args.out / f'freihand_{split}_coco.json', coco)
        print(f'{args.out}/freihand_{split}_{{coco,data}}.json: {len(coco["images"])} images of {len(data)} hands')


if __name__ == '__main__':
    run_main(main)
