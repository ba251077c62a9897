"""From a loader to the samples of a data set: parsed and checked, or mapped from the index of an earlier start."""
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from common.human_model.body_model import HumanModel
from data.boxes import Boxes
from data.checks.load_check import LoadCheck
from data.checks.parsing import Exclusion, parsed, without_fits
from data.checks.tally import MISSING
from data.fit_bodies import FitBodies
from data.index import Index, Parsed, Watched, sample_key
from data.packed import PackedSamples
from data.sample import Sample
from data.settings import Settings


class Loader(Protocol):
    """What is needed of a data set; MeshDataset says what each is."""
    name: str
    split: str
    cfg: Settings
    training: bool
    folder: Path
    fit_models: tuple[str, ...]
    kept: tuple[str, ...]
    human_model: HumanModel
    body: FitBodies
    check: LoadCheck
    boxes: Boxes
    exclusion: Exclusion

    def load(self) -> Iterator[Sample]:
        """Yield the Samples of self.split."""


def open_samples(loader: Loader) -> PackedSamples:
    """The samples of a data set, with the counts of its checks and what load() sets beside them.

    Raises:
        UserError: A file is missing or broken, or too many samples are bad.
    """
    cfg = loader.cfg
    parse = functools.partial(parse_samples, loader)
    if cfg.use_index:
        key = sample_key(type(loader), loader.split, cfg, loader.human_model)
        index = Index(cfg.cache_dir, key, functools.partial(getattr, cfg))
        found = index.open(parse)
        if found.is_earlier and lacks_images(found.state['check'], cfg.max_missing_images):
            found = index.open(parse, again=True)
    else:
        found = parse()
    loader.check.restore(found.state['check'])
    loader.boxes.restore(found.state['boxes'])
    loader.exclusion.count = found.state['excluded']
    vars(loader).update(found.state['kept'])
    loader.check.report(found.is_earlier)
    return found.samples


def lacks_images(counts: dict[str, Any], share: float) -> bool:
    """Whether more than this share of the samples had no image when they were parsed. counts: see Tally.state."""
    return counts['counts'].get(MISSING, 0) > share * counts['total']


def parse_samples(loader: Loader) -> Parsed:
    """What load() yields, checked and packed. UserError: see `open_samples`."""
    cfg = loader.cfg
    watched: Any = Watched(cfg)
    loader.cfg = watched
    try:
        samples = parsed(loader.load(), loader.name, loader.folder)
        if loader.training and loader.body.is_foreign:
            samples = without_fits(samples, loader.name, loader.fit_models, loader.human_model.name)
        packed = PackedSamples.pack(loader.exclusion.filter(loader.check.filter(samples)))
    finally:
        loader.cfg = cfg
    loader.boxes.check_source()
    state = {'check': loader.check.state(), 'boxes': loader.boxes.state(), 'excluded': loader.exclusion.count,
             'kept': {name: getattr(loader, name) for name in loader.kept}}
    return Parsed(packed, state, watched.asked)
