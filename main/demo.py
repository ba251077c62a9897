"""Meshes and numbers for the people in your pictures.

    python main/demo.py                                              # the bundled pictures, model and body
    python main/demo.py --cfg nano_hand                              # the same for hands
    python main/demo.py --input photo.jpg --bbox 120 40 210 480      # x y width height in pixels; may be repeated
    python main/demo.py --input photos/ --detect                     # a folder (or a video), people found by a detector
    python main/demo.py --serve                                      # a web page on this computer to draw the boxes on
    python main/demo.py --input photo.jpg --bbox full --snapshot output/model_dump/snapshot_17.pth.tar

For each picture it writes a folder output/demo/<name>/ with overlays (rendered_mesh_*.jpg, output_mesh_*.jpg), meshes
(output_mesh_*.obj), an overview.jpg, and all numbers with their units (result.json, result.npz).
"""
import sys
from pathlib import Path

if not __package__:
    import init_path  # noqa: F401

from common import checkpoint, snapshot_meta
from common.demo import options, run
from common.demo.boxes import read_box_file
from common.demo.detector import DETECTORS, THRESHOLD, Detector
from common.demo.predictor import Predictor
from common.demo.record import JointReader
from common.demo.sources import BoxSource, find_inputs, is_video
from common.demo.video import video
from common.demo.web.results import Results
from common.demo.web.server import serve
from common.device import devices
from common.errors import UserError, run_main
from common.human_model import get_human_model
from common.nets.fuse import prepare_for_inference
from common.parallel import wrap
from data.codec import LixelCodec
from data.files import read_regressor
from data.joint_set import COCO, HUMAN36M
from main.cli import chosen_snapshot, configure, make_parser
from main.config import ROOT, cfg
from main.model import get_model

SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano.pth.tar'
SAMPLES = ROOT / 'data' / 'Synthetic' / 'samples'
HAND_SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano_hand.pth.tar'
HAND_SAMPLES = ROOT / 'data' / 'Synthetic' / 'hand_samples'


def main(argv=None):
    parser = make_parser(__doc__)
    options.add_options(parser)
    args = parser.parse_intermixed_args(options.plain_words(sys.argv[1:] if argv is None else argv))
    boxes = options.box_texts(args)
    options.check_options(args)
    configure(args)
    own_snapshot = SNAPSHOT
    samples = SAMPLES
    if cfg.is_hand:
        own_snapshot = HAND_SNAPSHOT
        samples = HAND_SAMPLES
    bundled = args.input is None
    inputs = [] if args.serve else find_inputs(samples if bundled else args.input)
    box_file = samples / 'samples.json' if bundled else args.bbox_file
    table = read_box_file(box_file) if box_file else None  # fails sooner than the network
    path = chosen_snapshot(args) if args.snapshot or args.test_epoch is not None else own_snapshot
    predictor = load_predictor(path, args.stage, args.left)
    settings = run.Settings(
        output=Path(args.output) if args.output else Path(cfg.output_dir) / 'demo', snapshot=str(Path(path).resolve()),
        joints=joint_reader(predictor.human_model, args.joint_set), box_size_m=cfg.bbox_3d_size, focal=args.focal,
        princpt=args.princpt, root_depth=args.root_depth, smooth=args.smooth)
    if args.serve:
        return serve(Results(predictor, settings), options.PORT if args.port is None else args.port)
    source = BoxSource(boxes, table, make_detector(args), args.bbox_format)
    if is_video(inputs[0]):
        return video(inputs[0], source, predictor, settings)
    return run.pictures(inputs, source, predictor, settings)


def load_predictor(path, stage, left_hand):
    """The network of a snapshot, with body model and sizes as recorded there (`cfg` is set accordingly)."""
    content = checkpoint.read(path)
    snapshot_meta.tell_unfinished(content, path)
    meta = snapshot_meta.describe(content, path)
    if cfg.body_model not in ('auto', meta['human_model']):
        raise UserError(f'{path} was trained with the body model {meta["human_model"]}, not {cfg.body_model}')
    snapshot_meta.adopt(meta, cfg, path, stage)
    cfg.check()
    human_model = get_human_model(cfg.human_model, model_dir=cfg.human_model_dir)
    if left_hand and not human_model.is_hand:
        raise UserError(f'--left is for hands; {path} was trained with the body model {cfg.human_model}')
    model = get_model(cfg, human_model, 'test')
    checkpoint.load_network(model, content, path, regressor_optional=cfg.stage == 'lixel')
    found = devices()
    net = wrap(prepare_for_inference(model, found[0]), found, cfg.amp)
    codec = LixelCodec(cfg.input_img_shape, cfg.output_hm_shape, cfg.bbox_3d_size)
    batch_size = cfg.test_batch_size * len(found)
    return Predictor(net, human_model, codec, cfg.input_img_shape, batch_size, found[0], left_hand)


def make_detector(args):
    """The person detector of --detect, or None."""
    if not args.detect:
        return None
    if cfg.is_hand:
        raise UserError('--detect finds people, not hands: give boxes of the hands with --bbox x y w h')
    threshold = THRESHOLD if args.detector_threshold is None else args.detector_threshold
    return Detector(args.detector or DETECTORS[0], args.detector_weights, threshold, device=devices()[0])


def joint_reader(human_model, name):
    """The joints of --joint_set, read from meshes of a body model."""
    own = human_model.joint_set
    regressor = human_model.joint_regressor.cpu().numpy()
    if name == 'all':
        return JointReader(own.joints_name, regressor, own.skeleton)
    if human_model.is_hand:
        raise UserError(f'--joint_set {name} is a set of body joints; for hands there is only: all')
    if name == 'smpl':
        count = human_model.kinematic_joint_num
        skeleton = tuple(pair for pair in own.skeleton if max(pair) < count)
        return JointReader(own.joints_name[:count], regressor[:count], skeleton)
    if name in human_model.regressors:
        regressor = human_model.regressor(name)
    else:
        regressor = read_regressor(cfg.data_dir, name, human_model.vertex_num)
    joint_set, count = {'h36m': HUMAN36M, 'coco': COCO}[name], len(regressor)
    skeleton = tuple(pair for pair in joint_set.skeleton if max(pair) < count)
    return JointReader(joint_set.joints_name[:count], regressor, skeleton)


if __name__ == '__main__':
    run_main(main)
