"""What was found while a data set was loaded: counts, and the report of them."""
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

log = logging.getLogger(__name__)
CHECKED = 1000     # samples whose meshes are looked at
MISSING = 'image missing'


class Tally:
    """Counts what is odd about the samples of one data set, whose name it says.

    Attributes:
        counts: How often each oddity was found.
        first: Where each was found first.
        skip_reasons: The oddities for which samples are left out, in the order in which they were met.
        total: Samples looked at.
        seen: Samples that count for the limit that aborts the run, up to CHECKED.
        bad: Those of them that are odd.
        fits: Fits whose meshes were looked at.
        rejected: Those of them that are too far from the annotated joints.
        left: Rule of the 2-D fit check -> fits that it leaves.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self.skip_reasons: list[str] = []
        self.total = 0
        self.seen = 0
        self.bad = 0
        self.fits = 0
        self.rejected = 0
        self.left: Counter[str] = Counter()

    def skip(self, why: str, where: str, suspicious: bool = False) -> None:
        """Count something that is left out. suspicious: counts towards the limit that aborts the run."""
        self.counts[why] += 1
        self.first.setdefault(why, where)
        if suspicious and self.seen < CHECKED:
            self.seen += 1
            self.bad += 1

    def skip_sample(self, why: str, where: str, suspicious: bool = False) -> None:
        """The same for a whole sample: the report of a test says so, too."""
        reason = f'{why}, sample skipped'
        if reason not in self.skip_reasons:
            self.skip_reasons.append(reason)
        self.skip(reason, where, suspicious)

    def skipped(self) -> str:
        """How many samples were skipped, and why; an empty text for none."""
        return self.counted(self.skip_reasons)

    def counted(self, reasons: Iterable[str]) -> str:
        """How often each of the reasons was found, and where first."""
        return '; '.join(f'{self.counts[why]} x {why} (first: {self.first[why]})' for why in reasons)

    def report(self, earlier: bool = False) -> None:
        """Log what is odd. earlier: it was found at an earlier start, so that images may have come since."""
        if self.counts:
            hint = ''
            if earlier and self.counts[MISSING]:
                hint = f'; found at an earlier start: python tool/check_assets.py {self.name} looks for images again'
            log.warning('%s: %s%s', self.name, self.counted(self.counts), hint)
        if self.rejected:
            log.warning('%s: %d of the first %d fits are too far from the annotated joints to be used', self.name,
                        self.rejected, self.fits)
        if self.left:
            log.warning('%s: of the first %d fits, coco_fit_check=published leaves %d, coco_fit_check=exact %d',
                        self.name, self.fits, self.left['published'], self.left['exact'])

    def state(self) -> dict[str, Any]:
        """All counts, as plain values."""
        return {name: value for name, value in vars(self).items() if name in STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the counts of an earlier start."""
        for name in STATE:
            value = state[name]
            if isinstance(getattr(self, name), Counter):
                value = Counter(value)
            setattr(self, name, value)


STATE = ('counts', 'first', 'skip_reasons', 'total', 'seen', 'bad', 'fits', 'rejected', 'left')
