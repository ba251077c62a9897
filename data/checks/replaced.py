"""Samples that turn out to be unusable during a training, and are replaced by others."""
import logging

from common.errors import UserError

log = logging.getLogger(__name__)
MAX_REPLACED = 20  # different unusable samples that one process replaces before a training stops


class Replaced:
    """The unusable samples so far.

    Args:
        name: Of the data set.
        allowed: Whether there may be any.
    Attributes:
        indices: Theirs.
    """

    def __init__(self, name: str, allowed: bool) -> None:
        self.indices: set[int] = set()
        self.name = name
        self.allowed = allowed

    def note(self, index: int, error: Exception, missing: int, length: int) -> None:
        """Add a sample and warn of it.

        Args:
            index: Of the sample.
            error: What is wrong with it.
            missing: How many images were reported as missing at the start, and allowed: they are no reason to stop.
            length: Samples of the data set.
        Raises:
            UserError: There may be none, or these are too many.
        """
        known = index in self.indices  # from an earlier epoch
        self.indices.add(index)
        count = len(self.indices)
        if not self.allowed or count > MAX_REPLACED + missing or count == length:
            raise UserError(f'{self.name}: {count} samples could not be used, the last of them: {error}') from error
        if not known:
            log.warning('%s: sample %d cannot be used and is replaced: %s', self.name, index, error)
