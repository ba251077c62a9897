"""How fast is it here? Every number stands beside a yardstick that was measured in the same run.

    python tool/benchmark.py                                  # the published network for bodies, GPU 0 or the CPU
    python tool/benchmark.py --cfg nano --gpu cpu --json speed.json
    python tool/benchmark.py --batch 16 amp=bf16 resnet_type=101      # settings as for main/train.py
    python tool/benchmark.py --parts onnx --cfg nano          # onnxruntime beside PyTorch, on the CPU
    python tool/benchmark.py --scaling                        # 1 and 2 processes (CPU), 1, 2, 4, ... GPUs

prints a table of inference and training step (images/s; yardstick: torchvision's ResNet-50, float32, 256 px, the same
batch and threads), peak memory, loader (yardstick: cv2.imread of the same picture) and evaluation (each kind of test
set; yardstick: the network's inference). Medians of five alternated repetitions. Needs neither data sets nor body-model
files.
"""
import argparse
import dataclasses
import json
import platform
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common.arguments import Parser, each_once, not_empty  # noqa: E402
from common.devices.gpus import devices  # noqa: E402
from common.devices.wrap import autocast_dtype  # noqa: E402
from common.errors import UserError, run_main  # noqa: E402
from common.snapshot.meta import versions  # noqa: E402
from main.config import Config  # noqa: E402
from main.config_check import check_train_batch  # noqa: E402
from tool.bench.evaluation import measure_evaluation  # noqa: E402
from tool.bench.loading import measure_loader  # noqa: E402
from tool.bench.memory import measure_memory  # noqa: E402
from tool.bench.network import choose_body, measure_inference, measure_training  # noqa: E402
from tool.bench.onnx import measure_onnx  # noqa: E402
from tool.bench.scaling import measure_scaling, worker  # noqa: E402
from tool.bench.timing import HEADER  # noqa: E402

PARTS = {'inference': measure_inference, 'training': measure_training, 'memory': measure_memory,
         'loader': measure_loader, 'evaluation': measure_evaluation, 'onnx': measure_onnx}
BY_DEFAULT = [part for part in PARTS if part != 'onnx']  # which needs packages that are optional
BATCHES = {'test_batch_size': 8, 'train_batch_size': 4}


def settings(args):
    """The Config to measure, without pretrained weights, and a line about its body model or ''."""
    cfg = Config()
    cfg.load(args.cfg)
    cfg.set_args(args.gpu, args.stage)
    cfg.update({name: args.batch or batch for name, batch in BATCHES.items()})
    cfg.update({'synthetic_cache': False})  # nano's takes minutes to draw
    cfg.override(each_once(args.options))
    cfg.update({'pretrained_backbone': False})
    check_train_batch(cfg.train_batch_size)
    return cfg, choose_body(cfg)


def tune_gpu():
    """As in training: the fastest convolutions, and TF32. It serves the yardstick as well."""
    if torch.cuda.is_available():
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision('high')


def describe(cfg):
    """What is measured, and on what: {name: plain value}."""
    device = devices()[0]
    half = autocast_dtype(cfg.amp, device)
    return {'device': torch.cuda.get_device_name(device) if device.type == 'cuda' else cpu_name(),
            'threads': torch.get_num_threads(), 'amp': cfg.amp if half or cfg.amp == 'none' else
            f'{cfg.amp} asked for, which this CPU has not: float32', 'stage': cfg.stage,
            'network': f'two ResNet-{cfg.resnet_type} of width {cfg.resnet_width}, {times(cfg.input_img_shape)} px, '
                       f'{times(cfg.output_hm_shape)} lixels',
            'body_model': cfg.human_model, **versions()}


def times(numbers):
    return 'x'.join(map(str, numbers))


def cpu_name():
    """The processor's name where Linux tells it."""
    info = Path('/proc/cpuinfo')
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor() or platform.machine()


def make_parser():
    parser = Parser(__doc__)
    parser.add_argument('--gpu', metavar='IDS', help='0 or cpu; for --scaling also 0-3 (default: GPU 0, or the CPU)')
    parser.add_argument('--cfg', default='body', metavar='NAME', help='body (default), hand, nano, or a YAML file')
    parser.add_argument('--stage', choices=('lixel', 'param'), default='lixel')
    parser.add_argument('--batch', type=int, metavar='N', help='samples per batch (default: inference '
                        f'{BATCHES["test_batch_size"]}, training {BATCHES["train_batch_size"]})')
    parser.add_argument('--parts', default=','.join(BY_DEFAULT), metavar='A,B',
                        help='what to measure (%(default)s); onnx: onnxruntime beside PyTorch')
    parser.add_argument('--scaling', action='store_true', help='measure how speed grows with the number of processes')
    parser.add_argument('--repeats', type=int, default=5, metavar='N', help='repetitions, of which the median counts')
    parser.add_argument('--json', metavar='FILE', type=not_empty, help='also write the numbers there')
    parser.add_argument('--scaling_worker', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('options', nargs='*', metavar='key=value', help='settings of main/config.py')
    return parser


def main(argv=None):
    args = make_parser().parse_intermixed_args(argv)
    if args.repeats < 1 or args.batch is not None and args.batch < 1:
        raise UserError('--repeats and --batch must be 1 or more')
    if args.json and (Path(args.json).is_dir() or not Path(args.json).parent.is_dir()):
        raise UserError(f'--json {args.json}: name a file, in a folder that is there')
    cfg, note = settings(args)
    tune_gpu()
    if args.scaling_worker:
        return worker(cfg)
    parts = args.parts.split(',')
    if not set(parts) <= set(PARTS):
        raise UserError(f'--parts {args.parts}: some of {", ".join(PARTS)}, with commas between them')
    facts = describe(cfg)
    print('\n'.join([f'{name}: {value}' for name, value in facts.items()] + ([note] if note else [])) + '\n')
    if args.scaling:
        batch = [] if args.batch is None else ['--batch', str(args.batch)]
        command = [str(Path(__file__).resolve()), '--cfg', args.cfg, '--stage', args.stage, *batch, *args.options]
        rows = measure_scaling(command, args.repeats)
        print('\n'.join([HEADER, *map(str, rows)]))
    else:
        rows = []
        print(HEADER)
        for part in parts:
            new = PARTS[part](cfg, devices()[0], args.repeats)
            print('\n'.join(map(str, new)), flush=True)
            rows += new
    if args.json:
        content = {**facts, 'repeats': args.repeats, 'rows': [dataclasses.asdict(row) for row in rows]}
        Path(args.json).write_text(json.dumps(content, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    run_main(main)
