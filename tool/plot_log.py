"""Curves of a training run, or of several to compare, as one image. Needs the package matplotlib.

    python tool/plot_log.py                                   # output/log/metrics.jsonl -> output/log/losses.png
    python tool/plot_log.py --out runs.png output other/run   # a folder or a metrics.jsonl each, one colour per run

A panel each for the total loss, its terms and the learning rate, over the epochs; pale: every step, strong: smoothed.
Values that span more than a factor of 20 get a logarithmic axis. Works while the training runs.
"""
import json
import math
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path
from common.errors import UserError, optional_import, run_main
from common.files.images import write_image

ROOT = Path(__file__).resolve().parents[1]
COUNTERS = ('epoch', 'step', 'global_step')
PANEL = (4.8, 3.)  # width, height of a panel, hundreds of pixels
COLUMNS = 3  # panels beside each other


@dataclass
class Curve:
    """One run in a panel. Values are NaN where there is none.

    Attributes:
        label: Name of the run, empty if it is the only one.
        color: Number of its colour.
        x: (N,) epochs.
        y: (N,) values of every step.
        smoothed: (N,) running mean of y.
    """
    label: str
    color: int
    x: np.ndarray
    y: np.ndarray
    smoothed: np.ndarray


def find_log(name: str) -> Path:
    """The metrics.jsonl that a name means: the file, or the one in an output folder or its log folder."""
    path = Path(name)
    for file in (path, path / 'metrics.jsonl', path / 'log' / 'metrics.jsonl'):
        if file.is_file():
            return file
    raise UserError(f'{path}: no metrics.jsonl there; a training writes it into <output_dir>/log')


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The steps of a run in order: [{epoch, step, loss, ...}].

    A run resumed from an earlier point wrote some steps twice: the later ones count. A line that is not whole (the
    training is just writing it, or was killed there) is left out.

    Raises:
        UserError: There is no step at all.
    """
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding='utf-8-sig', errors='replace').splitlines():
        try:
            row = json.loads(line)
            position = (row['epoch'], row['step'])
        except (ValueError, KeyError, TypeError):
            continue
        while rows and (rows[-1]['epoch'], rows[-1]['step']) >= position:
            rows.pop()
        rows.append(row)
    if not rows:
        raise UserError(f'{path} holds no training step: is it the metrics.jsonl of a training?')
    return rows


def epochs_of(rows: list[dict[str, Any]]) -> np.ndarray:
    """(N,) position of every row in epochs: 1.5 is half way through the second one."""
    lengths: dict[int, int] = {}
    for row in rows:
        lengths[row['epoch']] = max(lengths.get(row['epoch'], 1), row['step'] + 1)
    # the epoch under way is not whole: it is taken to be as long as the one before it
    last = rows[-1]['epoch']
    lengths[last] = max(lengths[last], lengths.get(last - 1, 1))
    return np.array([row['epoch'] + (row['step'] + 1) / lengths[row['epoch']] for row in rows])


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """(N,) running mean over at most `window` steps around each, fewer at the ends; NaN are left out."""
    known = np.isfinite(values)
    sums = np.concatenate([[0.], np.cumsum(np.where(known, values, 0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    index = np.arange(len(values))
    first = np.maximum(index - window // 2, 0)
    last = np.minimum(index + window // 2 + 1, len(values))
    mean = np.full(len(values), np.nan)
    total = sums[last] - sums[first]
    count = counts[last] - counts[first]
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def panels_of(runs: dict[str, list[dict[str, Any]]],
              window: int | None = None) -> dict[str, list[Curve]]:
    """The curves of each panel: {title: [Curve of each run that has it]}, total loss first, learning rate last.

    Args:
        runs: {label: rows}.
        window: Steps to average over; None: a fiftieth of the run.
    """
    names = []
    for rows in runs.values():
        for row in rows:
            names += [name for name in row if name not in COUNTERS and name not in names]
    names.sort(key=lambda name: {'loss': 0, 'lr': 2}.get(name, 1))
    panels: dict[str, list[Curve]] = {name: [] for name in names}
    for color, (label, rows) in enumerate(runs.items()):
        x = epochs_of(rows)
        for name in names:
            y = np.array([row.get(name, math.nan) for row in rows], float)
            known = np.isfinite(y)
            if not known.any():
                continue
            smoothed = y
            if name != 'lr':
                smoothed = smooth(y, window or max(1, len(rows) // 50))
            panels[name].append(Curve(label, color, x, y, np.where(known, smoothed, np.nan)))
    return panels


def draw(panels: dict[str, list[Curve]]) -> np.ndarray:
    """Draw {title: curves} as (H, W, 3) uint8 RGB. UserError: matplotlib is not installed."""
    optional_import('matplotlib', 'plot_log.py')
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure((PANEL[0] * columns, PANEL[1] * rows), dpi=100, layout='constrained')
    for number, (title, curves) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, number, title=title, xlabel='epoch')
        axes.grid(alpha=.3)
        for curve in curves:
            color = f'C{curve.color}'
            axes.plot(curve.x, curve.y, color=color, linewidth=1, alpha=.35)
            axes.plot(curve.x, curve.smoothed, color=color, linewidth=2, label=curve.label)
        lowest = min(np.nanmin(curve.y) for curve in curves)
        highest = max(np.nanmax(curve.y) for curve in curves)
        if lowest > 0 and highest > 20 * lowest:
            axes.set_yscale('log')
        if curves[0].label:
            axes.legend(fontsize='small')
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    parser = Parser(__doc__)
    parser.add_argument('logs', nargs='*', metavar='RUN', type=a_path,
                        help='metrics.jsonl or output folder (default: output)')
    parser.add_argument('--out', metavar='FILE', type=a_path,
                        help='image to write (default: losses.png beside the first log)')
    parser.add_argument('--smooth', type=int, metavar='N', help='steps to average over (default: 1/50 of the run)')
    args = parser.parse_args(argv)
    if args.smooth is not None and args.smooth < 1:
        raise UserError(f'--smooth {args.smooth}: must be 1 or more steps')
    names = list(dict.fromkeys(args.logs)) or [str(ROOT / 'output')]
    files = {name: find_log(name) for name in names}
    runs = {name: read_rows(file) for name, file in files.items()}
    out = files[names[0]].with_name('losses.png')
    if args.out:
        out = Path(args.out)
    labelled = runs if len(runs) > 1 else {'': runs[names[0]]}
    write_image(out, draw(panels_of(labelled, args.smooth)))
    for name, rows in runs.items():
        print(f'{name}: {len(rows)} steps, epoch {rows[-1]["epoch"]}, loss {rows[-1]["loss"]:.4f}')
    print(f'wrote {out}')


if __name__ == '__main__':
    run_main(main)
