"""From the loader to the load check: errors of the annotation files, and the images that a test leaves out."""
import logging
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from common.errors import UserError, one_line
from data.sample import Sample

log = logging.getLogger(__name__)
LAYOUT_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def parsed(samples: Iterable[Sample], name: str, folder: Path) -> Iterator[Sample]:
    """The samples that a loader yields.

    Args:
        samples: What `load()` of a data set returns.
        name: Of the data set.
        folder: Of the data set.
    Raises:
        UserError: A record is not laid out as the loader expects; the message names the place.
    """
    last = None
    try:
        for sample in samples:
            yield sample
            last = sample.ann_id
    except LAYOUT_ERRORS as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(f'{name}: the record after id {last} is not laid out as expected: '
                        f'{type(error).__name__} {one_line(error)} ({Path(place.filename).name}, line '
                        f'{place.lineno}); python tool/check_assets.py {name} names the file and the record '
                        f'in {folder}') from error


def without_fits(samples: Iterable[Sample], name: str, fit_models: Sequence[str], body_model: str) -> Iterator[Sample]:
    """The samples without their fits, which are of other body models than the one to train."""
    log.warning('%s: its fits are of %s and are not used to train %s', name, ' or '.join(fit_models), body_model)
    for sample in samples:
        sample.fit = None
        yield sample


class Exclusion:
    """Leaves images out of a test.

    Args:
        names: The ends of their paths.
        where: The data set and its split, for messages.
    Attributes:
        count: Samples left out.
    """

    def __init__(self, names: Sequence[str], where: str) -> None:
        self.names = {str(name) for name in names}
        self.where = where
        self.count = 0

    def filter(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples of the other images. UserError: a name fits no image."""
        endings = tuple(f'/{name}' for name in self.names)
        found: set[str] = set()
        for sample in samples:
            path = f'/{sample.img_path}'
            if path.endswith(endings):
                found.update(name for name in self.names if path.endswith(f'/{name}'))
                self.count += 1
            else:
                yield sample
        unknown = sorted(self.names - found)
        if unknown:
            raise UserError(f'exclude: {self.where} has no image {unknown[0]}')
