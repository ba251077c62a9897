"""Train one stage: snapshots in output/model_dump, the log in output/log.

    python main/train.py --gpu 0-3 --stage lixel
    python main/train.py --gpu 0-3 --stage param --continue
    python main/train.py --cfg nano train_batch_size=16        # embedded synthetic data, runs on a CPU
    torchrun --nproc_per_node 4 main/train.py --gpu 0-3 --stage lixel
"""
import logging
import runpy
import sys
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().with_name('init_path.py')))

from common.arguments import Parser, show_help
from common.errors import UserError, run_main
from main.cli import configure, make_parser
from main.config import cfg


def own_parser() -> Parser:
    """The parser of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--continue', dest='continue_train', action='store_true',
                        help='resume the newest snapshot (lixel -> param: from its weights)')
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

import torch

from common.devices import processes
from main.hints import next_hint, resume_hint

log = logging.getLogger('main.train')  # whatever the name of a file that is run as a script


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: its words; default: the process's own.
    Returns:
        The exit code: 0, or 128 and the number of the signal that ended the training early.
    Raises:
        UserError: whatever the user has to put right.
    """
    parser = own_parser()
    args = parser.parse_intermixed_args(argv)
    if args.continue_train and args.snapshot:
        parser.error('--continue takes the newest snapshot, --snapshot FILE one of your choice: '
                     'give one of them')
    configure(args, args.continue_train)

    from common.base import Trainer  # after the GPUs are chosen
    try:
        trainer = Trainer(cfg, args.snapshot)
        finished = trainer.train()
        words = sys.argv if argv is None else ['main/train.py', *argv]
        if processes.is_main() and finished:
            log.info(next_hint(words, args.snapshot, cfg.stage, trainer.progress.epoch - 1))
        elif processes.is_main():
            log.info('stopped; the last step is saved. %s', resume_hint(words, args.snapshot))
    except torch.OutOfMemoryError as error:
        raise UserError(f'{own_words(error)}: lower train_batch_size and raise grad_accum by the '
                        'same factor for the same total batch, or use amp=bf16') from error
    processes.close()
    return trainer.loop.exit_code


def own_words(error: torch.OutOfMemoryError) -> str:
    """The first line of PyTorch's message; DataParallel puts the traceback of a replica's thread before it."""
    message = str(error).strip()
    if message.startswith('Caught'):
        message = message.rsplit('OutOfMemoryError: ', 1)[-1]
    return message.splitlines()[0]


if __name__ == '__main__':
    run_main(main)
