"""Images of the synthetic data to look at.

    python tool/synthetic_sheet.py sheet.png                    # 8 x 6 training images; --hand, --joints, --first 48
    python tool/synthetic_sheet.py data/Synthetic/samples --samples 22 15 3     # the demo's images, with their boxes
    python tool/synthetic_sheet.py data/Synthetic/hand_samples --hand --max_heading 180 --samples 22 4 25

The demo's images come from a split of their own ('gallery'): no training, validation or test has seen them.
"""
import argparse
import json
import runpy
from pathlib import Path

import cv2
import numpy as np

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, show_help
from common.errors import UserError, run_main
from data.Synthetic import SPLITS


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('out', type=a_path, help='image to write; with --samples the folder')
    parser.add_argument('--samples', type=int, nargs='+', metavar='INDEX', help='write these images of the gallery')
    parser.add_argument('--hand', action='store_true', help='hands instead of people')
    parser.add_argument('--joints', action='store_true', help='draw the joints and the box')
    parser.add_argument('--split', choices=sorted(SPLITS), default='train')
    parser.add_argument('--first', type=int, default=0, help='index of the first sample')
    parser.add_argument('--rows', type=int, default=6)
    parser.add_argument('--columns', type=int, default=8)
    parser.add_argument('--size', type=int, default=160, help='pixels per sample')
    parser.add_argument('--max_heading', type=float, default=75., help='degrees; 180: all round')
    parser.add_argument('--occlusion', type=float, default=0., help='share of the images with an occluder')
    parser.add_argument('--seed', type=int, default=0)
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from common.files.images import write_image
from common.files.whole import write_text
from common.human_model import get_human_model
from data.Synthetic.generator import Generator, Rendering
from main.config import Config
from tool.files.write import writing

SAMPLE_SIZE = 512  # of the demo's images, pixels
SAMPLE_MARGIN = 1.9  # a wider view than a training crop
MOST_TILES = 10_000
MOST_INDEX = 2 ** 31
JPEG_QUALITY = 92


def sheet(generator: Generator, args: argparse.Namespace) -> np.ndarray:
    """Contact sheet (rows * size, columns * size, 3) uint8 RGB of args.rows x args.columns samples."""
    tiles = []
    for i in range(args.first, args.first + args.rows * args.columns):
        drawn = generator(args.split, i, args.seed)
        if args.joints:
            draw_truth(drawn)
        tiles.append(drawn.img)
    rows = [np.concatenate(tiles[i:i + args.columns], axis=1) for i in range(0, len(tiles), args.columns)]
    return np.concatenate(rows)


def draw_truth(drawn: Rendering) -> None:
    """Draw the joints and the box of a Rendering into its image."""
    points = drawn.joints[:, :2] / drawn.joints[:, 2:] * drawn.focal + drawn.princpt
    for point in points.round().astype(int):
        cv2.circle(drawn.img, point.tolist(), 1, (255, 0, 0), -1)
    box = drawn.bbox.round().astype(int)
    cv2.rectangle(drawn.img, box[:2].tolist(), (box[:2] + box[2:]).tolist(), (0, 255, 0))


def write_samples(generator: Generator, folder: Path, indices: list[int], seed: int) -> None:
    """Write images of the gallery split as sample_1.jpg ... with samples.json, the box (xywh, pixels) of each."""
    lines = []
    for number, index in enumerate(indices, start=1):
        drawn = generator('gallery', index, seed)
        name = f'sample_{number}.jpg'
        write_image(folder / name, drawn.img, JPEG_QUALITY)
        box = [round(float(value), 1) for value in drawn.bbox]
        lines.append(json.dumps({'image': name, 'bbox': box}))
    path = folder / 'samples.json'
    with writing(path):
        write_text(path, '[' + ',\n '.join(lines) + ']\n')


def check(args: argparse.Namespace) -> None:
    """UserError unless all numbers of the command line are within their ranges."""
    Config().update({'synthetic_max_heading': args.max_heading, 'synthetic_occlusion': args.occlusion,
                     'synthetic_img_size': args.size}, source='of --max_heading, --occlusion and --size, ')
    indices = [args.first, *(args.samples or [])]
    if args.rows * args.columns > MOST_TILES or max(indices) >= MOST_INDEX:
        raise UserError('at most 10,000 images on a sheet, and no index of 2^31 or above')
    if min(args.rows, args.columns, args.size) < 1 or min(args.seed, *indices) < 0:
        raise UserError('--rows, --columns and --size are at least 1; --first, --seed and --samples not negative')


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = make_parser().parse_args(argv)
    check(args)
    out = Path(args.out)
    human_model = get_human_model('open_hand' if args.hand else 'open_body')
    if args.samples:
        generator = Generator(human_model, SAMPLE_SIZE, args.max_heading, margin=SAMPLE_MARGIN)
        write_samples(generator, out, args.samples, args.seed)
    else:
        generator = Generator(human_model, args.size, args.max_heading, args.occlusion)
        write_image(out, sheet(generator, args), JPEG_QUALITY)
    print(f'wrote {out}')


if __name__ == '__main__':
    run_main(main)
