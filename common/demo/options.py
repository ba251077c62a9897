"""The demo's command-line options, and which exclude or need each other."""
import argparse
import re
from pathlib import Path

from common.arguments import written_out
from common.demo.inputs.boxes import FORMATS, FULL
from common.demo.inputs.detectors import DETECTORS, THRESHOLD
from common.demo.inputs.video import is_video
from common.errors import UserError

PLACEMENTS = ('fitted', 'original')
AXES = ('y_up', 'camera')
JOINT_SETS = ('all', 'smpl', 'h36m', 'coco')
PORT = 8765
EXAMPLE = 'python main/demo.py --input photo.jpg --bbox 120 40 210 480'
BOXES = ('bbox', 'bbox_file', 'detect')  # they say where the people are
PAGE_GIVES = ('input', 'bbox', 'bbox_format', 'bbox_file', 'detect', 'smooth', 'side_by_side', 'turntable',
              'every_frame')
FOR_VIDEOS = ('smooth', 'side_by_side', 'every_frame')
# option -> those of which one must be there too: without it, the option would do nothing
NEEDS = {'detector': ('detect', 'serve'), 'detector_weights': ('detect', 'serve'),
         'detector_threshold': ('detect', 'bbox_file', 'serve'), 'port': ('serve',), 'host': ('serve',),
         'bbox_format': ('bbox', 'bbox_file'), 'every_frame': ('bbox',)}
PATHS = ('output', 'bbox_file', 'detector_weights')
DEFAULTS = {'detector': DETECTORS[0], 'port': PORT}


def parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Add the demo's own options to a parser and read a command line.

    Returns:
        Its options; `bbox` is None or a list with 'full' or the numbers of each box, as texts.
    Raises:
        UserError: options that exclude or need each other.
    """
    add_options(parser)
    args = parser.parse_intermixed_args(plain_words(argv))
    if args.bbox is not None:
        _take_boxes(args)
    if args.input is not None:
        _take_inputs(args)
    _check(args)
    for name, value in DEFAULTS.items():  # not by argparse: `_check` has to see what was given
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the demo's own options to a parser."""
    add = parser.add_argument
    add('--test_epoch', type=int, metavar='N',
        help='snapshot_N of output/model_dump (default: the bundled one)')
    add('--input', nargs='+', metavar='PATH',
        help='images, folders of images (and their sub-folders), videos, or patterns such as "photos/*.jpg" (default: '
        'the bundled images)')
    add('--output', metavar='DIR', help='where the result folders go (default: output/demo)')
    add('--bbox', nargs='+', action='append', metavar='N',
        help='x y w h in pixels, one person each; or: full')
    add('--every_frame', action='store_true',
        help='the boxes of --bbox hold for every frame of a video (default: people are followed from the first)')
    add('--bbox_format', choices=FORMATS, help='xywh (default), or corners: x1 y1 x2 y2')
    add('--bbox_file', metavar='FILE',
        help='JSON: {"photo.jpg": [[x, y, w, h], ...]} (frame numbers for a video), '
        "a detector's list of {\"image_id\", \"bbox\"}, or COCO's layout")
    add('--detect', action='store_true', help='find people with a torchvision detector')
    add('--detector', choices=DETECTORS, help=f'which one (default: {DETECTORS[0]})')
    add('--detector_weights', metavar='FILE', help='its weights, in place of a download')
    add('--detector_threshold', type=float, metavar='P',
        help=f'lowest score, 0 to 1, of a person found (default: {THRESHOLD}) or in the box file (all)')
    add('--focal', nargs='+', type=float, metavar='F',
        help='focal length in pixels: f, or fx fy (default: by the EXIF of an image, else 1.5 times the longer side)')
    add('--princpt', nargs=2, type=float, metavar=('CX', 'CY'),
        help='principal point in pixels (default: centre)')
    add('--root_depth', nargs='+', type=float, metavar='Z',
        help='metres from camera to root joint: one, or one each')
    add('--placement', choices=PLACEMENTS, default='fitted',
        help='how the parametric mesh gets onto the lixel mesh (default: fitted); '
        'original: by its root joint alone, as in the original demo')
    add('--axes', choices=AXES, default=AXES[0],
        help='of the OBJ files: y_up (default), or camera: x right, y down, z forward')
    add('--joint_set', choices=JOINT_SETS, default='all',
        help='joints in the record (default: all of the body model)')
    add('--left', action='store_true', help='left hands, by the network for right hands')
    add('--smooth', action='store_true', help='steady the people of a video over time')
    add('--side_by_side', action='store_true', help='the frame beside the overlay in the videos')
    add('--turntable', action='store_true', help='also a video of each mesh, turned once round')
    add('--serve', action='store_true', help='a web page on this computer: draw boxes, see meshes')
    add('--port', type=int, help=f'of the web page (default: {PORT}; 0: any free one)')
    add('--host', metavar='ADDRESS', help='that the web page listens on (default: 127.0.0.1, this computer alone); '
        'who can reach another one, such as 0.0.0.0, can use the page. For a server rather run '
        f'ssh -L {PORT}:127.0.0.1:{PORT} user@server on your own computer, and open http://127.0.0.1:{PORT} there')


def plain_words(argv: list[str]) -> list[str]:
    """The command line with a blank before negative numbers such as -1e3 and -inf, which argparse takes for options."""
    return [f' {word}' if re.match('-[^-]', word) and _is_number(word) else word for word in argv]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _take_boxes(args: argparse.Namespace) -> None:
    """Make each --bbox a list of texts, or 'full'; the key=value settings among them move to args.options."""
    boxes: list[list[str] | str] = []
    for words in args.bbox:
        args.options += [word for word in words if '=' in word]
        numbers = [word.strip() for word in words if '=' not in word]
        boxes.append(FULL if numbers == [FULL] else numbers)
    args.bbox = boxes


def _take_inputs(args: argparse.Namespace) -> None:
    """Make --input a list of paths; the key=value settings behind it move to args.options."""
    settings = [word for word in args.input if re.match('[a-z]\\w*=', word) and not Path(word).exists()]
    args.options += settings
    paths = [word for word in args.input if word not in settings]
    if not paths or not all(paths):
        raise UserError('--input is empty: give a path')
    args.input = [written_out(path, '--input') for path in paths]


def _check(args: argparse.Namespace) -> None:
    for name in _given(args, *PATHS):
        if not getattr(args, name):
            raise UserError(f'--{name} is empty: give a path')
    if args.serve:
        _check_page(args)
    else:
        _check_inputs(args)
    for name in _given(args, *NEEDS):
        if not _given(args, *NEEDS[name]):
            raise UserError(f'--{name} needs --{" or --".join(NEEDS[name])}')
    if args.placement == 'original' and args.root_depth is None:
        raise UserError('--placement original needs --root_depth: the original has no other source of the depth')
    if args.focal is not None and len(args.focal) > 2:
        raise UserError('--focal takes one number, or two for x and y, in pixels')
    if args.detector_threshold is not None and not 0 <= args.detector_threshold <= 1:
        raise UserError('--detector_threshold is a score from 0 to 1')


def _given(args: argparse.Namespace, *names: str) -> list[str]:
    """Those of some options that are on the command line."""
    values = {name: getattr(args, name) for name in names}
    return [name for name, value in values.items() if value is not None and value is not False]


def _check_page(args: argparse.Namespace) -> None:
    for name in _given(args, *PAGE_GIVES):
        raise UserError(f'--{name} does not go with --serve: images and boxes come from the page')
    if len(args.root_depth or []) > 1:
        raise UserError('--root_depth takes one number with --serve')
    if args.output:
        raise UserError('--output does not go with --serve: the page offers its results for download')


def _check_inputs(args: argparse.Namespace) -> None:
    given = _given(args, *BOXES)
    if len(given) > 1:
        raise UserError(f'--{given[0]} and --{given[1]} both say where the people are: give one of them')
    if args.input is None:
        for name in _given(args, *BOXES, 'left'):
            raise UserError(f'--{name} needs --input: an image, a folder of images or a video')
    elif not given:
        raise UserError(f'where are the people in {args.input[0]}? Give boxes, as in: {EXAMPLE} (or --bbox_file FILE, '
                        '--detect, or --bbox full for the whole image)')
    if not any(is_video(path) for path in args.input or []):
        for name in _given(args, *FOR_VIDEOS):
            raise UserError(f'--{name} is for videos')
