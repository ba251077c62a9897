"""Pictures of the synthetic data to look at.

    python tool/synthetic_sheet.py sheet.png                    # 8 x 6 training pictures; --hand, --joints, --first 48
    python tool/synthetic_sheet.py data/Synthetic/samples --samples 22 15 3     # the demo's pictures, with their boxes
    python tool/synthetic_sheet.py data/Synthetic/hand_samples --hand --max_heading 180 --samples 22 4 25

The demo's pictures come from a split of their own ('gallery'): no training, validation or test has seen them.
"""
import json
import sys
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common.arguments import Parser, not_empty  # noqa: E402
from common.errors import UserError, run_main  # noqa: E402
from common.human_model import get_human_model  # noqa: E402
from data.Synthetic.generator import SPLITS, Generator  # noqa: E402
from main.config import Config  # noqa: E402
from tool.chart import write_picture  # noqa: E402

SCENE = dict(size=512, margin=1.9)  # the demo's pictures: a wider view than a training crop


def sheet(generator, args):
    """Contact sheet (rows * size, columns * size, 3) uint8 RGB of args.rows x args.columns samples."""
    tiles = []
    for i in range(args.first, args.first + args.rows * args.columns):
        drawn = generator(args.split, i, args.seed)
        if args.joints:
            draw_truth(drawn)
        tiles.append(drawn.img)
    rows = [np.concatenate(tiles[i:i + args.columns], axis=1) for i in range(0, len(tiles), args.columns)]
    return np.concatenate(rows)


def draw_truth(drawn):
    """Draw the joints and the box of a Rendering into its picture."""
    for point in (drawn.joints[:, :2] / drawn.joints[:, 2:] * drawn.focal + drawn.princpt).round().astype(int):
        cv2.circle(drawn.img, point.tolist(), 1, (255, 0, 0), -1)
    box = drawn.bbox.round().astype(int)
    cv2.rectangle(drawn.img, box[:2].tolist(), (box[:2] + box[2:]).tolist(), (0, 255, 0))


def write_samples(generator, folder, indices, seed):
    """Write pictures of the gallery split as sample_1.jpg ... with samples.json, the box (xywh, pixels) of each."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f'cannot write into {folder} ({error.strerror}): name another folder') from error
    boxes = []
    for number, index in enumerate(indices, start=1):
        drawn = generator('gallery', index, seed)
        name = f'sample_{number}.jpg'
        write(folder / name, drawn.img)
        boxes.append({'image': name, 'bbox': [round(float(v), 1) for v in drawn.bbox]})
    lines = ',\n '.join(json.dumps(box) for box in boxes)
    (folder / 'samples.json').write_text(f'[{lines}]\n')


def write(path, img):
    """Write a picture (H, W, 3) uint8 RGB. UserError if that fails."""
    quality = (cv2.IMWRITE_JPEG_QUALITY, 92) if path.suffix == '.jpg' else ()
    write_picture(path, img[..., ::-1], quality)


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('out', type=not_empty, help='picture to write; with --samples the folder')
    parser.add_argument('--samples', type=int, nargs='+', metavar='INDEX', help='write these pictures of the gallery')
    parser.add_argument('--hand', action='store_true', help='hands instead of people')
    parser.add_argument('--joints', action='store_true', help='draw the joints and the box')
    parser.add_argument('--split', choices=sorted(SPLITS), default='train')
    parser.add_argument('--first', type=int, default=0, help='index of the first sample')
    parser.add_argument('--rows', type=int, default=6)
    parser.add_argument('--columns', type=int, default=8)
    parser.add_argument('--size', type=int, default=160, help='pixels per sample')
    parser.add_argument('--max_heading', type=float, default=75., help='degrees; 180: all round')
    parser.add_argument('--occlusion', type=float, default=0., help='share of the pictures with an occluder')
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args(argv)
    args.out = Path(args.out)
    Config().update({'synthetic_max_heading': args.max_heading, 'synthetic_occlusion': args.occlusion,
                     'synthetic_img_size': args.size}, source='of --max_heading, --occlusion and --size, ')
    if args.rows * args.columns > 10_000 or max(args.samples or [0]) >= 2 ** 31 or args.first >= 2 ** 31:
        raise UserError('at most 10,000 pictures on a sheet, and no index of 2^31 or above')
    if min(args.rows, args.columns, args.size) < 1 or min(args.first, args.seed, *(args.samples or [0])) < 0:
        raise UserError('--rows, --columns and --size are at least 1; --first, --seed and --samples not negative')
    human_model = get_human_model('open_hand' if args.hand else 'open_body')
    if args.samples:
        write_samples(Generator(human_model, max_heading=args.max_heading, **SCENE), args.out, args.samples, args.seed)
    else:
        generator = Generator(human_model, args.size, args.max_heading, args.occlusion)
        write(args.out, sheet(generator, args))
    print(f'wrote {args.out}')


if __name__ == '__main__':
    run_main(main)
