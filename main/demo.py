"""Meshes and numbers for the people in your images.

    python main/demo.py                                              # the bundled images, model and body
    python main/demo.py --cfg nano_hand                              # the same for hands
    python main/demo.py --input photo.jpg --bbox 120 40 210 480      # x y width height in pixels; may be repeated
    python main/demo.py --input photos/ --detect                     # a folder (or a video), people found by a detector
    python main/demo.py --serve                                      # a web page on this computer to draw the boxes on
    python main/demo.py --input photo.jpg --bbox full --snapshot output/model_dump/snapshot_17.pth.tar

For each image it writes a folder output/demo/<name>/ with overlays (rendered_mesh_*.jpg, output_mesh_*.jpg), meshes
(output_mesh_*.obj), an overview.jpg, and all numbers with their units (result.json, result.npz).
"""
import argparse
import runpy
import sys
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().with_name('init_path.py')))

from common.arguments import written_out
from common.demo import options
from common.demo.image_run import run_images
from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.detector import THRESHOLD, Detector
from common.demo.inputs.sources import BoxSource, find_inputs
from common.demo.inputs.video import is_video
from common.demo.people.body import root_row
from common.demo.people.placer import Placer
from common.demo.pipeline import Pipeline
from common.demo.video_run import Wishes, run_video
from common.demo.web.results import Results
from common.demo.web.server import serve
from common.devices.gpus import devices
from common.errors import UserError, run_main
from main.cli import chosen_snapshot, configure, make_parser
from main.config import ROOT, cfg
from main.predictor import joint_reader, load_predictor

SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano.pth.tar'
SAMPLES = ROOT / 'data' / 'Synthetic' / 'samples'
HAND_SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano_hand.pth.tar'
HAND_SAMPLES = ROOT / 'data' / 'Synthetic' / 'hand_samples'


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); returns the exit code.

    Raises:
        UserError: whatever the user has to put right.
    """
    args = options.parse(make_parser(__doc__), sys.argv[1:] if argv is None else argv)
    for name in options.PATHS:
        if getattr(args, name):
            setattr(args, name, written_out(getattr(args, name), f'--{name}'))
    configure(args)
    if args.serve:
        return serve(Results(make_pipeline(args)), args.port)
    source = args.input
    box_file = args.bbox_file
    if source is None:
        source = HAND_SAMPLES if cfg.is_hand else SAMPLES
        box_file = source / 'samples.json'
    inputs = find_inputs(source)
    boxes_of = BoxSource(args.bbox, box_format=args.bbox_format)
    if box_file:
        boxes_of.table = read_box_file(box_file, args.detector_threshold)
    boxes_of.check(inputs)  # fails sooner than the network
    pipeline = make_pipeline(args)
    boxes_of.detector = make_detector(args)
    output = Path(args.output or Path(cfg.output_dir) / 'demo')
    if is_video(inputs[0]):
        wishes = Wishes(args.smooth, args.side_by_side, args.turntable, args.every_frame)
        return run_video(pipeline, inputs[0], boxes_of, output, wishes)
    return run_images(pipeline, inputs, boxes_of, output, args.turntable)


def make_pipeline(args: argparse.Namespace) -> Pipeline:
    """The network, and what the options say of camera and joints."""
    path: str | Path = HAND_SNAPSHOT if cfg.is_hand else SNAPSHOT
    if args.snapshot or args.test_epoch is not None:
        path = chosen_snapshot(args)
    predictor = load_predictor(cfg, path, args.stage, args.left)
    human_model = predictor.human_model
    placer = Placer(cfg.bbox_3d_size, args.focal, args.princpt, args.root_depth)
    if args.placement == 'original':
        placer.root_row = root_row(human_model).cpu().numpy()
    return Pipeline(predictor, placer, joint_reader(human_model, args.joint_set, cfg.data_dir))


def make_detector(args: argparse.Namespace) -> Detector | None:
    """The person detector of --detect, or None."""
    if not args.detect:
        return None
    if cfg.is_hand:
        raise UserError('--detect finds people, not hands: give boxes of the hands with --bbox x y w h')
    threshold = args.detector_threshold
    if threshold is None:
        threshold = THRESHOLD
    return Detector(args.detector, args.detector_weights, threshold, device=devices()[0])


if __name__ == '__main__':
    run_main(main)
