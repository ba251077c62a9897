"""Curves of a training run, or of several to compare, as one picture.

    python tool/plot_log.py                                   # output/log/metrics.jsonl -> output/log/losses.png
    python tool/plot_log.py --out runs.png output other/run   # a folder or a metrics.jsonl each, one colour per run

A panel each for the total loss, its terms and the learning rate, over the epochs; pale: every step, strong: smoothed.
Values that span more than a factor of 20 get a logarithmic axis. Works while the training runs. Needs OpenCV only.
"""
import json
import math
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from common.arguments import Parser, not_empty  # noqa: E402
from common.errors import UserError, run_main  # noqa: E402
from common.files.images import write_image  # noqa: E402
from tool.chart import Curve, draw_panels  # noqa: E402

COUNTERS = ('epoch', 'step', 'global_step')


def find_log(path):
    """The metrics.jsonl that a path means: the file, or the one in an output folder or its log folder."""
    if not path:
        raise UserError('the name of a run is empty: name an output folder or a metrics.jsonl')
    path = Path(path)
    for file in (path, path / 'metrics.jsonl', path / 'log' / 'metrics.jsonl'):
        if file.is_file():
            return file
    raise UserError(f'{path}: no metrics.jsonl there; a training writes it into <output_dir>/log')


def read_rows(path):
    """The steps of a run in order: [{epoch, step, loss, ...}].

    A run resumed from an earlier point wrote some steps twice: the later ones count. A line that is not whole (the
    training is just writing it, or was killed there) is left out. UserError: no step at all.
    """
    rows = []
    for line in path.read_text(encoding='utf-8', errors='replace').splitlines():
        try:
            row = json.loads(line)
            position = row['epoch'], row['step']
        except (ValueError, KeyError, TypeError):
            continue
        while rows and (rows[-1]['epoch'], rows[-1]['step']) >= position:
            rows.pop()
        rows.append(row)
    if not rows:
        raise UserError(f'{path} holds no training step: is it the metrics.jsonl of a training?')
    return rows


def epochs_of(rows):
    """(N,) position of every row in epochs: 1.5 is half way through the second one."""
    longest = {}
    for row in rows:
        longest[row['epoch']] = max(longest.get(row['epoch'], 1), row['step'] + 1)
    # the epoch under way is not whole: the one before it tells how long it will be
    last = rows[-1]['epoch']
    longest[last] = max(longest[last], longest.get(last - 1, 1))
    return np.array([row['epoch'] + (row['step'] + 1) / longest[row['epoch']] for row in rows])


def smooth(values, window):
    """(N,) running mean over at most `window` steps around each, fewer at the ends; NaN are left out."""
    known = np.isfinite(values)
    sums, counts = (np.concatenate([[0.], np.cumsum(v)]) for v in (np.where(known, values, 0), known))
    i = np.arange(len(values))
    first, last = np.maximum(i - window // 2, 0), np.minimum(i + window // 2 + 1, len(values))
    return np.divide(sums[last] - sums[first], counts[last] - counts[first], out=np.full(len(values), np.nan),
                     where=counts[last] > counts[first])


def panels_of(runs, window=None):
    """{title: [Curve of each run that has it]}. runs: {label: rows}; window: steps, None: a fiftieth of the run."""
    names = list(dict.fromkeys(name for rows in runs.values() for row in rows for name in row if name not in COUNTERS))
    names.sort(key=lambda name: {'loss': 0, 'lr': 2}.get(name, 1))
    panels = {name: [] for name in names}
    for index, (label, rows) in enumerate(runs.items()):
        x = epochs_of(rows)
        for name in names:
            y = np.array([row.get(name, math.nan) for row in rows], float)
            if np.isfinite(y).any():
                thick = y if name == 'lr' else smooth(y, window or max(1, len(rows) // 50))
                panels[name].append(Curve(label, index, x, y, np.where(np.isfinite(y), thick, np.nan)))
    return panels


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('logs', nargs='*', metavar='RUN', help='metrics.jsonl or output folder (default: output)')
    parser.add_argument('--out', metavar='FILE', type=not_empty,
                        help='picture to write (default: losses.png beside the first log)')
    parser.add_argument('--smooth', type=int, metavar='N', help='steps to average over (default: 1/50 of the run)')
    args = parser.parse_args(argv)
    if args.smooth is not None and args.smooth < 1:
        raise UserError(f'--smooth {args.smooth}: must be 1 or more steps')
    logs = list(dict.fromkeys(args.logs)) or [str(ROOT / 'output')]
    files = [find_log(path) for path in logs]
    labels = logs if len(logs) > 1 else ['']
    runs = {label: read_rows(file) for label, file in zip(labels, files, strict=True)}
    out = Path(args.out) if args.out else files[0].with_name('losses.png')
    write_image(out, draw_panels(panels_of(runs, args.smooth))[..., ::-1])
    for label, rows in runs.items():
        print(f'{label or files[0]}: {len(rows)} steps, epoch {rows[-1]["epoch"]}, loss {rows[-1]["loss"]:.4f}')
    print(f'wrote {out}')


if __name__ == '__main__':
    run_main(main)
