"""The demo's command-line options, and what excludes what."""
from common.demo.boxes import FORMATS, FULL
from common.demo.detector import DETECTORS
from common.demo.smoothing import METHODS
from common.demo.sources import is_video
from common.errors import UserError

JOINT_SETS = ('all', 'smpl', 'h36m', 'coco')
EXAMPLE = 'python main/demo.py --input photo.jpg --bbox 120 40 210 480'


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
    add('--detector', choices=DETECTORS, default=DETECTORS[0], help='which one (default: %(default)s)')
    add('--detector_weights', metavar='FILE', help='its weights, in place of a download')
    add('--detector_threshold', type=float, default=0.7, metavar='P', help='lowest score (default: %(default)s)')
    add('--focal', nargs='+', type=float, metavar='F', help='focal length in pixels: f, or fx fy (default: 1500)')
    add('--princpt', nargs=2, type=float, metavar=('CX', 'CY'), help='principal point in pixels (default: centre)')
    add('--root_depth', nargs='+', type=float, metavar='Z', help='metres from camera to root joint: one, or one each')
    add('--joint_set', choices=JOINT_SETS, default='all', help='joints in the record (default: all of the body model)')
    add('--left', action='store_true', help='left hands, by the network for right hands')
    add('--smooth', choices=METHODS, help='smooth a video over time')
    add('--serve', action='store_true', help='a web page on this computer: draw boxes, see meshes')
    add('--port', type=int, default=8765, help='of the web page (default: %(default)s; 0: any free one)')


def box_texts(args):
    """Take apart what --bbox swallowed: boxes as lists of texts, or 'full'; key=value settings move to args.options."""
    if args.bbox is None:
        return None
    boxes = []
    for words in args.bbox:
        args.options += [word for word in words if '=' in word]
        words = [word for word in words if '=' not in word]
        boxes.append(FULL if words == [FULL] else words)
    return boxes


def check_options(args):
    """UserError for options that exclude or need each other."""
    if args.serve:
        for name in ('input', 'bbox', 'bbox_file', 'detect', 'smooth'):
            if getattr(args, name):
                raise UserError(f'--{name} does not go with --serve: pictures and boxes come from the page')
        return
    given = [name for name in ('bbox', 'bbox_file', 'detect') if getattr(args, name)]
    if len(given) > 1:
        raise UserError(f'--{given[0]} and --{given[1]} both say where the people are: give one of them')
    if args.input is None:
        for name in ('bbox', 'bbox_file', 'detect', 'left'):
            if getattr(args, name):
                raise UserError(f'--{name} needs --input: a picture, a folder of pictures or a video')
    elif not given:
        raise UserError(f'where are the people in {args.input}? Give boxes, as in: {EXAMPLE} (or --bbox_file FILE, '
                        '--detect, or --bbox full for the whole picture)')
    if args.smooth and not is_video(args.input or ''):
        raise UserError('--smooth is for videos')
    if args.focal is not None and len(args.focal) > 2:
        raise UserError('--focal takes one number, or two for x and y, in pixels')
    if args.detector_weights and not args.detect:
        raise UserError('--detector_weights needs --detect')
