"""The demo's command-line options, and what excludes or needs what."""
import re

from common.demo.inputs.boxes import FORMATS, FULL
from common.demo.inputs.detector import DETECTORS, THRESHOLD
from common.demo.inputs.sources import is_video
from common.demo.people.smoothing import METHODS
from common.errors import UserError

PLACEMENTS = ('fitted', 'original')
JOINT_SETS = ('all', 'smpl', 'h36m', 'coco')
PORT = 8765
EXAMPLE = 'python main/demo.py --input photo.jpg --bbox 120 40 210 480'
PAGE_GIVES = ('input', 'bbox', 'bbox_format', 'bbox_file', 'detect', 'smooth')  # instead of the command line
# option -> those of which one must be there too: without it, the option would do nothing
NEEDS = {'detector': ('detect',), 'detector_weights': ('detect',), 'detector_threshold': ('detect',),
         'port': ('serve',), 'bbox_format': ('bbox', 'bbox_file')}
PATHS = ('input', 'output', 'bbox_file', 'detector_weights')


def add_options(parser):
    """Add the demo's own options to an argparse parser."""
    add = parser.add_argument
    add('--test_epoch', type=int, metavar='N', help='snapshot_N of output/model_dump (default: the bundled one)')
    add('--input', metavar='PATH', help='a picture, a folder of pictures or a video (default: the bundled pictures)')
    add('--output', metavar='DIR', help='where the result folders go (default: output/demo)')
    add('--bbox', nargs='+', action='append', metavar='N', help='x y w h in pixels, one person each; or: full')
    add('--bbox_format', choices=FORMATS, help='xywh (default), or corners: x1 y1 x2 y2')
    add('--bbox_file', metavar='FILE', help='JSON: {"photo.jpg": [[x, y, w, h], ...]}; frame numbers for a video')
    add('--detect', action='store_true', help='find people with a torchvision detector')
    add('--detector', choices=DETECTORS, help=f'which one (default: {DETECTORS[0]})')
    add('--detector_weights', metavar='FILE', help='its weights, in place of a download')
    add('--detector_threshold', type=float, metavar='P', help=f'lowest score, 0 to 1 (default: {THRESHOLD})')
    add('--focal', nargs='+', type=float, metavar='F', help='focal length in pixels: f, or fx fy (default: 1500)')
    add('--princpt', nargs=2, type=float, metavar=('CX', 'CY'), help='principal point in pixels (default: centre)')
    add('--root_depth', nargs='+', type=float, metavar='Z', help='metres from camera to root joint: one, or one each')
    add('--placement', choices=PLACEMENTS, default='fitted', help='how the parametric mesh gets onto the lixel mesh '
        '(default: fitted); original: by its root joint alone, as in the original demo')
    add('--joint_set', choices=JOINT_SETS, default='all', help='joints in the record (default: all of the body model)')
    add('--left', action='store_true', help='left hands, by the network for right hands')
    add('--smooth', choices=METHODS, help='smooth a video over time')
    add('--serve', action='store_true', help='a web page on this computer: draw boxes, see meshes')
    add('--port', type=int, help=f'of the web page (default: {PORT}; 0: any free one)')


def plain_words(argv):
    """The command line with a blank before negative numbers such as -1e3 and -inf, which argparse takes for options."""
    return [f' {word}' if re.match('-[^-]', word) and _is_number(word) else word for word in argv]


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True


def box_texts(args):
    """Take apart what --bbox swallowed: boxes as lists of texts, or 'full'; key=value settings move to args.options."""
    if args.bbox is None:
        return None
    boxes = []
    for words in args.bbox:
        args.options += [word for word in words if '=' in word]
        words = [word.strip() for word in words if '=' not in word]
        boxes.append(FULL if words == [FULL] else words)
    return boxes


def check_options(args):
    """UserError for options that exclude or need each other."""
    def there(*names):
        return [name for name in names if getattr(args, name) is not None and getattr(args, name) is not False]

    for name in there(*PATHS):
        if not getattr(args, name):
            raise UserError(f'--{name} is empty: give a path')
    if args.serve and there(*PAGE_GIVES):
        raise UserError(f'--{there(*PAGE_GIVES)[0]} does not go with --serve: pictures and boxes come from the page')
    if args.serve and args.output:
        raise UserError('--output does not go with --serve: the page offers its results for download')
    given = there('bbox', 'bbox_file', 'detect')
    if len(given) > 1:
        raise UserError(f'--{given[0]} and --{given[1]} both say where the people are: give one of them')
    if args.input is None and not args.serve:
        for name in there('bbox', 'bbox_file', 'detect', 'left'):
            raise UserError(f'--{name} needs --input: a picture, a folder of pictures or a video')
    for name in there(*NEEDS):
        if not there(*NEEDS[name]):
            raise UserError(f'--{name} needs --{" or --".join(NEEDS[name])}')
    if args.placement == 'original' and args.root_depth is None:
        raise UserError('--placement original needs --root_depth: the original has no other source of the depth')
    if args.input is not None and not given:
        raise UserError(f'where are the people in {args.input}? Give boxes, as in: {EXAMPLE} (or --bbox_file FILE, '
                        '--detect, or --bbox full for the whole picture)')
    if args.smooth and not is_video(args.input or ''):
        raise UserError('--smooth is for videos')
    if args.focal is not None and len(args.focal) > 2:
        raise UserError('--focal takes one number, or two for x and y, in pixels')
    if args.detector_threshold is not None and not 0 <= args.detector_threshold <= 1:
        raise UserError('--detector_threshold is a score from 0 to 1')
