"""Do all GPUs work, alone and together, and which settings are best here? Needs no data.

    python tool/check_gpus.py --gpu 0-3
    python tool/check_gpus.py --gpu cpu      # two processes, and simulated devices

prints what the machine has, a row for every check, and the command to train with: about a minute per GPU. Exit code 0
if all is fine, 1 if a check fails, 2 for a mistake in the command.
"""
import argparse
import runpy
from functools import partial
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, show_help
from common.errors import UserError, run_main


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('--gpu', metavar='IDS', default='0', help='0, 0,2, 0-3 or cpu (default: GPU 0)')
    parser.add_argument('--ddp_worker', action='store_true', help=argparse.SUPPRESS)
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

import torch

from common.devices.cpus import core_count
from common.devices.gpus import devices, select_gpus, tune
from tool.gpus import agreement, machine, modes
from tool.gpus.results import WRONG, Row, run_check
from tool.gpus.speed import MODES, Speeds

REPLICAS = 'DataParallel = one device'
PROCESSES = 'torchrun = one process'


def run_checks(used: list[torch.device], meshes: modes.Meshes) -> tuple[list[Row], Speeds]:
    """All checks of some devices: their rows, and the speeds among them."""
    rows: list[Row] = []
    speeds = Speeds()
    program = str(Path(__file__).resolve())
    for device in used:
        run_check('float64 = CPU', device, partial(agreement.same_as_cpu, device), rows)
    run_check(REPLICAS, 'all', partial(agreement.replicas_same_as_one, used), rows)
    run_check(PROCESSES, 'all', partial(agreement.processes_same_as_one, used, program), rows)
    for device in used:
        run_check('no host sync', device, partial(modes.no_waiting, device), rows)
        run_check('float32', device, partial(meshes.float32, device), rows)
        for amp in ('bf16', 'fp16'):
            run_check(amp, device, partial(modes.half_precision, meshes, device, amp), rows)
    for device in used:
        for mode in ('float32', 'bf16', 'fp16'):
            run_check(f'speed, {mode}', device, partial(speeds.measure, device, mode), rows)
    run_check('compile', used[0], partial(meshes.compiled, used[0]), rows)  # the slowest
    run_check('speed, compile', used[0], partial(speeds.measure, used[0], 'compile'), rows)
    return rows, speeds


def command(gpus: str, used: list[torch.device], rows: list[Row], speeds: Speeds) -> str:
    """The command to train with, by what works."""
    wrong = {row.check for row in rows if row.verdict == WRONG}
    settings = speeds.best(used, [mode for mode in MODES if mode not in wrong])
    words = ['python']
    if len(used) > 1 and PROCESSES not in wrong:
        words = ['torchrun', '--nproc_per_node', str(len(used))]
    return ' '.join([*words, 'main/train.py', '--gpu', gpus, *settings])


def conclude(gpus: str, used: list[torch.device], rows: list[Row], speeds: Speeds) -> int:
    """Print the verdict, and what to train with. Returns the exit code."""
    wrong = [row for row in rows if row.verdict == WRONG]
    print()
    for line in machine.notes():
        print(line)
    if not wrong:
        print(f'all is fine. Train with: {command(gpus, used, rows, speeds)}')
        return 0
    print(f'{len(wrong)} of {len(rows)} checks failed:')
    for row in wrong:
        print(f'  {row.check}, {row.device}: {row.detail}')
    bad = {row.device for row in wrong if row.check == 'float64 = CPU'}
    if bad:
        print(f'do not train on {", ".join(sorted(bad))}')
    elif len(used) > 1 and {row.check for row in wrong} >= {REPLICAS, PROCESSES}:
        print('do not train on several of these GPUs before that is repaired; one alone works')
    else:
        print(f'what works: {command(gpus, used, rows, speeds)}')
    return 1


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); returns the exit code."""
    args = make_parser().parse_args(argv)
    torch.set_num_threads(min(torch.get_num_threads(), core_count()))
    select_gpus(args.gpu)
    used = devices()
    if used[0].type == 'cpu' and args.gpu != 'cpu':
        raise UserError(f'--gpu {args.gpu}: PyTorch {torch.__version__} finds no GPU here: nvidia-smi must list them, '
                        'and PyTorch must be built for CUDA (docs/multi_gpu.md, section 1); --gpu cpu checks the rest')
    if args.ddp_worker:
        agreement.ddp_worker(used[0])
        return 0
    tune('high')
    meshes = modes.Meshes()  # before CUDA: drawing images may fork
    print(*machine.describe(used), sep='\n', end='\n\n')
    rows, speeds = run_checks(used, meshes)
    return conclude(args.gpu, used, rows, speeds)


if __name__ == '__main__':
    run_main(main)
