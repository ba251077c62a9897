"""Meshes and numbers for the people in your images.

    python main/demo.py                                              # the bundled images, model and body
    python main/demo.py --cfg nano_hand                              # the same for hands
    python main/demo.py --input photo.jpg --bbox 120 40 210 480      # x y width height in pixels; may be repeated
    python main/demo.py --input photos/ clip.mp4 --detect            # folders and videos, people found by a detector
    python main/demo.py --serve                                      # a web page on this computer to draw the boxes on
    python main/demo.py --input photo.jpg --bbox full --snapshot output/model_dump/snapshot_17.pth.tar

For each image it writes a folder output/demo/<name>/ with overlays (rendered_mesh_*.jpg, output_mesh_*.jpg), meshes
(output_mesh_*.obj), an overview.jpg, and all numbers with their units (result.json, result.npz).
"""
import argparse
import dataclasses
import functools
import logging
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().with_name('init_path.py')))

from common.arguments import Parser, show_help, written_out
from common.demo import options
from main.cli import chosen_snapshot, configure, make_parser


def own_parser() -> Parser:
    """The parser of the command line, for its help."""
    parser = make_parser(__doc__)
    options.add_options(parser)
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

from common.demo.image_run import run_images
from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.detector import Detector, download_size
from common.demo.inputs.detectors import THRESHOLD
from common.demo.inputs.find import find_inputs
from common.demo.inputs.sources import BoxSource
from common.demo.inputs.video import Video, is_video
from common.demo.video_run import Wishes, run_video
from common.demo.web.finder import Finder
from common.demo.web.serve import serve
from common.demo.web.work import Work
from common.devices.gpus import devices
from common.errors import UserError, run_main
from main.bundled import HAND_SAMPLES, HAND_SNAPSHOT, SAMPLES, SNAPSHOT
from main.config import cfg
from main.predictor import Predictor

SETTINGS = ('amp', 'body_model', 'data_dir', 'human_model_dir', 'output_dir', 'test_batch_size')
log = logging.getLogger('main.demo')  # whatever the name of a file that is run as a script


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
    refuse_idle(args.options)
    if args.serve:
        return serve(Work(make_predictor(args), make_finder(args)), args.port, args.host)
    sources = args.input
    box_file = args.bbox_file
    if sources is None:
        samples = HAND_SAMPLES if cfg.is_hand else SAMPLES
        sources = [samples]
        box_file = samples / 'samples.json'
    inputs = find_inputs(*sources)
    boxes_of = BoxSource(args.bbox, box_format=args.bbox_format)
    if box_file:
        boxes_of.table = read_box_file(box_file, args.detector_threshold)
    boxes_of.check(inputs)  # fails sooner than the network
    predictor = make_predictor(args)
    boxes_of.detector = make_detector(args)
    output = Path(args.output or Path(cfg.output_dir) / 'demo')
    images = {path: name for path, name in inputs.items() if not is_video(path)}
    runs: list[Callable[[], int]] = []
    if images:
        runs.append(lambda: run_images(predictor, images, boxes_of, output, args.turntable))
    wishes = Wishes(args.smooth, args.side_by_side, args.turntable, args.every_frame)
    for path in inputs:
        if path not in images:
            own = dataclasses.replace(boxes_of, notes=[])
            runs.append(functools.partial(run_clip, predictor, path, own, output, wishes))
    return run_all(predictor, runs)


def run_clip(predictor: Predictor, path: Path, boxes_of: BoxSource, output: Path, wishes: Wishes) -> int:
    """Write the results of the video file of a path; see run_video."""
    return run_video(predictor, Video(path), boxes_of, output, wishes)


def run_all(predictor: Predictor, runs: list[Callable[[], int]]) -> int:
    """Run the images and each video; what is wrong with one of them does not stop the others. UserError: something."""
    failed = []
    for run in runs:
        predictor.predictor.network_time = 0.
        try:
            run()
        except UserError as error:
            if len(runs) == 1:
                raise
            failed.append(str(error))
    if failed:
        raise UserError('; '.join(failed))
    return 0


def refuse_idle(words: list[str]) -> None:
    """UserError for a `key=value` setting that changes nothing of the demo."""
    for word in words:
        key = word.partition('=')[0]
        if key not in SETTINGS:
            raise UserError(f'{key}=... has no effect on the demo: the settings that have are {", ".join(SETTINGS)}')


def make_predictor(args: argparse.Namespace) -> Predictor:
    """The network, and what the options say of camera, joints and files."""
    path: str | Path = HAND_SNAPSHOT if cfg.is_hand else SNAPSHOT
    if args.snapshot or args.test_epoch is not None:
        path = chosen_snapshot(args)
    predictor = Predictor(path, stage=args.stage, left_hand=args.left, focal=args.focal, princpt=args.princpt,
                          root_depth=args.root_depth, placement=args.placement, joint_set=args.joint_set,
                          axes=args.axes, config=cfg)
    if args.input is None and not args.serve:  # the bundled images
        predictor.warnings = []
    for warning in predictor.warnings:
        log.warning('%s', warning)
    return predictor


def make_detector(args: argparse.Namespace) -> Detector | None:
    """The person detector of --detect, or None."""
    if not args.detect:
        return None
    if cfg.is_hand:
        raise UserError('--detect finds people, not hands: give boxes of the hands with --bbox x y w h')
    return named_detector(args)


def make_finder(args: argparse.Namespace) -> Finder | None:
    """The person detector of the page, or None for hands. One with weights of its own is made at once."""
    if cfg.is_hand:
        return None
    if args.detector_weights is None:
        return Finder(lambda: named_detector(args), args.detector, download_size(args.detector))
    detector = named_detector(args)
    return Finder(lambda: detector, args.detector, 0)


def named_detector(args: argparse.Namespace) -> Detector:
    """The detector of the options."""
    threshold = args.detector_threshold
    if threshold is None:
        threshold = THRESHOLD
    return Detector(args.detector, args.detector_weights, threshold, device=devices()[0])


if __name__ == '__main__':
    run_main(main)
