"""How fast is it here? Every number stands beside a yardstick that was measured in the same run.

    python tool/benchmark.py                                  # the published network for bodies, GPU 0 or the CPU
    python tool/benchmark.py --cfg nano --gpu cpu --json speed.json
    python tool/benchmark.py --batch 16 amp=bf16 resnet_type=101      # settings as for main/train.py
    python tool/benchmark.py --parts onnx --cfg nano          # onnxruntime beside PyTorch, on the CPU
    python tool/benchmark.py --parts opening --files FOLDER   # a data set as large as MuCo: 1.7 GB are written there
    python tool/benchmark.py --scaling                        # 1 and 2 processes (CPU), 1, 2, 4, ... GPUs

prints a table of inference and training step (images/s; yardstick: torchvision's ResNet-50, float32, 256 px, the same
batch and threads), peak memory, loader (yardstick: cv2.imread of the same image) and evaluation (each kind of test
set; yardstick: the network's inference). Medians of five alternated repetitions. Needs neither data sets nor body-model
files.
"""
import argparse
import dataclasses
import json
import platform
import runpy
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, each_once, show_help
from common.errors import UserError, run_main

PART_NAMES = ('inference', 'training', 'memory', 'loader', 'evaluation', 'onnx')
BY_DEFAULT = PART_NAMES[:-1]  # onnx needs packages that are optional
OPENING = 'opening'  # not by default: it writes files of gigabytes
TEST_BATCH = 8
TRAIN_BATCH = 4


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('--gpu', metavar='IDS', help='0 or cpu; for --scaling also 0-3 (default: GPU 0, or the CPU)')
    parser.add_argument('--cfg', default='body', metavar='NAME', help='body (default), hand, nano, or a YAML file')
    parser.add_argument('--stage', choices=('lixel', 'param'), default='lixel')
    parser.add_argument('--batch', type=int, metavar='N', help='samples per batch '
                        f'(default: inference {TEST_BATCH}, training {TRAIN_BATCH})')
    parser.add_argument('--parts', default=','.join(BY_DEFAULT), metavar='A,B',
                        help='what to measure (%(default)s); onnx: onnxruntime beside PyTorch; opening: a large set')
    parser.add_argument('--files', metavar='FOLDER', type=Path, help='of opening: where its files are or will be '
                        '(default: a temporary folder)')
    parser.add_argument('--share', type=float, default=1., help='of opening: size of the files, 1 for that of MuCo')
    parser.add_argument('--scaling', action='store_true', help='measure how speed grows with the number of processes')
    parser.add_argument('--repeats', type=int, default=5, metavar='N', help='repetitions, of which the median counts')
    parser.add_argument('--json', metavar='FILE', type=a_path, help='also write the numbers there')
    parser.add_argument('--scaling_worker', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('options', nargs='*', metavar='key=value', help='settings of main/config.py')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

import torch

from common.devices.gpus import devices, tune
from common.devices.wrap import autocast_dtype
from common.files.whole import write_text
from common.snapshot.meta import versions
from main.config import Config
from tool.bench.evaluation import measure_evaluation
from tool.bench.loading import measure_loader
from tool.bench.memory import measure_memory
from tool.bench.network import choose_body, measure_inference, measure_training
from tool.bench.onnx import measure_onnx
from tool.bench.opening import measure_opening
from tool.bench.scaling import measure_scaling, worker
from tool.bench.timing import HEADER, Row
from tool.files.write import writing

MEASURES = (measure_inference, measure_training, measure_memory, measure_loader, measure_evaluation, measure_onnx)
PARTS = dict(zip(PART_NAMES, MEASURES, strict=True))


def settings(args: argparse.Namespace) -> tuple[Config, str]:
    """The Config to measure, without pretrained weights, and a line about its body model or ''."""
    cfg = Config()
    cfg.load(args.cfg)
    cfg.set_args(args.gpu, args.stage)
    cfg.update({'test_batch_size': args.batch or TEST_BATCH,
                'train_batch_size': args.batch or TRAIN_BATCH,
                'synthetic_cache': False,  # nano's cache takes minutes to draw
                'use_index': False})
    cfg.override(each_once(args.options))
    cfg.update({'pretrained_backbone': False})
    cfg.check_training()
    return cfg, choose_body(cfg)


def describe(cfg: Config) -> dict[str, object]:
    """What is measured, and on what: {name: plain value}."""
    device = devices()[0]
    name = cpu_name()
    if device.type == 'cuda':
        name = torch.cuda.get_device_name(device)
    amp = cfg.amp
    if amp != 'none' and not autocast_dtype(amp, device):
        amp = f'float32 (this CPU has no {amp})'
    network = (f'two ResNet-{cfg.resnet_type} of width {cfg.resnet_width}, {times(cfg.input_img_shape)} px, '
               f'{times(cfg.output_hm_shape)} lixels')
    return {'device': name, 'threads': torch.get_num_threads(), 'amp': amp, 'stage': cfg.stage,
            'network': network, 'body_model': cfg.human_model, **versions()}


def times(numbers: tuple[int, ...]) -> str:
    """(256, 192) -> '256x192'."""
    return 'x'.join(map(str, numbers))


def cpu_name() -> str:
    """The processor's name where Linux tells it."""
    info = Path('/proc/cpuinfo')
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    return platform.processor() or platform.machine()


def measure(cfg: Config, args: argparse.Namespace, parts: list[str]) -> list[Row]:
    """Measure and print the table."""
    if args.scaling:
        command = [str(Path(__file__).resolve()), '--cfg', args.cfg, '--stage', args.stage, *args.options]
        if args.batch is not None:
            command += ['--batch', str(args.batch)]
        rows = measure_scaling(command, args.repeats)
        print(HEADER, *rows, sep='\n')
        return rows
    rows = []
    print(HEADER)
    for part in parts:
        if part == OPENING:
            new = measure_opening(cfg, args.files, args.share, args.repeats)
        else:
            new = PARTS[part](cfg, devices()[0], args.repeats)
        print(*new, sep='\n', flush=True)
        rows += new
    return rows


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = make_parser().parse_intermixed_args(argv)
    if args.repeats < 1 or args.batch is not None and args.batch < 1:
        raise UserError('--repeats and --batch must be 1 or more')
    if args.json and (Path(args.json).is_dir() or not Path(args.json).parent.is_dir()):
        raise UserError(f'--json {args.json}: name a file, in a folder that is there')
    parts = args.parts.split(',')
    known = [*PARTS, OPENING]
    if not set(parts) <= set(known):
        raise UserError(f'--parts {args.parts}: some of {", ".join(known)}, with commas between them')
    cfg, note = settings(args)
    tune('high')  # as in training; the yardstick too
    if args.scaling_worker:
        worker(cfg)
        return
    facts = describe(cfg)
    for name, value in facts.items():
        print(f'{name}: {value}')
    if note:
        print(note)
    print()
    rows = measure(cfg, args, parts)
    if args.json:
        content = {**facts, 'repeats': args.repeats, 'rows': [dataclasses.asdict(row) for row in rows]}
        with writing(args.json):
            write_text(args.json, json.dumps(content, indent=2) + '\n')


if __name__ == '__main__':
    run_main(main)
