"""The numbers of a run: one JSON row per training step in metrics.jsonl, and TensorBoard events on request."""
import itertools
import json
from pathlib import Path
from typing import Any

from common.errors import optional_import
from common.train.logger import Appender

COUNTERS = ('epoch', 'step', 'global_step')


class MetricsFile:
    """Writes `folder`/metrics.jsonl, or another file of such rows.

    Args:
        folder: the log folder; it must exist.
        enabled: False in every process but the first of a distributed run: all methods do nothing.
        tensorboard: also write TensorBoard events into the folder.
        name: of the file.
    Raises:
        UserError: the package tensorboard is not installed.
    """

    def __init__(self, folder: Path, enabled: bool = True, tensorboard: bool = False,
                 name: str = 'metrics') -> None:
        self.path = folder / f'{name}.jsonl'
        self.enabled = enabled
        self.set_aside = False
        self.file: Appender | None = None
        self.board: Any = None
        if enabled and tensorboard:
            optional_import('tensorboard', 'tensorboard=true')
            from torch.utils.tensorboard import SummaryWriter
            self.board = SummaryWriter(folder)

    def new_run(self) -> None:
        """The rows that follow are of another run: the first of them renames those of an earlier one."""
        self.set_aside = True

    def row(self, values: dict[str, float]) -> None:
        """Add a row {name: number}, which must hold `epoch`, `step` and `global_step`."""
        if not self.enabled:
            return
        if self.file is None:
            if self.set_aside and self.path.exists():
                self.path.rename(self._free_name())
            self.set_aside = False
            self.file = Appender(self.path)
        self.file.write(json.dumps(values) + '\n')
        if self.board:
            for name, value in values.items():
                if name not in COUNTERS:
                    self.board.add_scalar(name, value, values['global_step'])

    def _free_name(self) -> Path:
        """<name>.<n>.jsonl, the first that is not there."""
        names = (self.path.with_suffix(f'.{number}.jsonl') for number in itertools.count(1))
        return next(path for path in names if not path.exists())
