"""Validation while training: how good the network is after an epoch, and which snapshot is the best so far."""
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.snapshot import checkpoint
from common.train.metrics_file import MetricsFile

log = logging.getLogger(__name__)


class Validation:
    """Tests the network on a validation split, and links the best snapshot of the stage.

    Args:
        test: tests the network as it is; returns the summary of the split, or None in all processes but the first.
        stage: 'lixel' or 'param'; the MPJPE of that mesh decides.
        folder: of the snapshots.
        metrics: takes a row per validation.
    """

    def __init__(self, test: Callable[[], dict[str, Any] | None], stage: str, folder: Path,
                 metrics: MetricsFile) -> None:
        self.test = test
        self.name = f'mpjpe_{stage}'
        self.folder = folder
        self.metrics = metrics

    def __call__(self, epoch: int, stage_start: int, global_step: int) -> None:
        """Validate the network after an epoch, whose snapshot is written.

        Args:
            epoch: that has ended. stage_start: first epoch of the stage. global_step: steps so far.
        """
        summary = self.test()
        if summary is None:
            return
        earlier = self._earlier(stage_start, epoch)
        values = {name: value for name, value in summary['metrics'].items() if value is not None}
        self.metrics.row({'epoch': epoch, 'step': 0, 'global_step': global_step} | values)
        error = values.get(self.name)
        if error is None or any(value <= error for value in earlier):
            return
        checkpoint.link_best(self.folder, epoch)
        log.info('epoch %d is the best of the stage so far: %s is snapshot_%d', epoch,
                 checkpoint.best_path(self.folder).name, epoch)

    def _earlier(self, first: int, end: int) -> list[float]:
        """The errors of the epochs first <= epoch < end, as far as they were validated."""
        if self.metrics.set_aside or not self.metrics.path.exists():  # the rows there are of another run
            return []
        rows = [json.loads(line) for line in self.metrics.path.read_text().splitlines()]
        return [row[self.name] for row in rows if self.name in row and first <= row['epoch'] < end]
