"""The numbers of a run: one JSON row per training step in metrics.jsonl, and TensorBoard events on request."""
import itertools
import json
from pathlib import Path
from typing import Any

from common.errors import optional_import
from common.train.logger import Appender

COUNTERS = ('epoch', 'step', 'global_step')


class MetricsFile:
    """Writes `folder`/metrics.jsonl.

    Args:
        folder: the log folder; it must exist.
        enabled: False in every process but the first of a distributed run: all methods do nothing.
        tensorboard: also write TensorBoard events into the folder.
    Raises:
        UserError: the package tensorboard is not installed.
    """

    def __init__(self, folder: Path, enabled: bool = True, tensorboard: bool = False) -> None:
        self.path = folder / 'metrics.jsonl'
        self.enabled = enabled
        self.file: Appender | None = None
        self.board: Any = None
        if enabled and tensorboard:
            optional_import('tensorboard', 'tensorboard=true')
            from torch.utils.tensorboard import SummaryWriter
            self.board = SummaryWriter(folder)

    def new_run(self) -> None:
        """The rows that follow are of another run: rename those of an earlier one to metrics.<n>.jsonl."""
        if not self.enabled or not self.path.exists():
            return
        for number in itertools.count(1):
            free = self.path.with_name(f'metrics.{number}.jsonl')
            if not free.exists():
                self.path.rename(free)
                return

    def row(self, values: dict[str, float]) -> None:
        """Add a row {name: number}, which must hold `epoch`, `step` and `global_step`."""
        if not self.enabled:
            return
        if self.file is None:
            self.file = Appender(self.path)
        self.file.write(json.dumps(values) + '\n')
        if self.board:
            for name, value in values.items():
                if name not in COUNTERS:
                    self.board.add_scalar(name, value, values['global_step'])
