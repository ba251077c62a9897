"""The full-size network, both stages, bodies and hands, against numbers recorded from the published system."""
import os
from pathlib import Path

import pytest

from tests.golden.check_model import check_file

GOLDEN = Path(__file__).resolve().parents[3] / 'tests' / 'golden'
MEMORY_GB = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2 ** 30


@pytest.mark.skipif(MEMORY_GB < 12, reason='the full-size network in float64 needs 12 GB of memory')
@pytest.mark.parametrize('stage, kind, comparisons', [
    ('lixel', 'body', 485), ('param', 'body', 139), ('lixel', 'hand', 485), ('param', 'hand', 125)])
def test_network_is_the_published_one(stage, kind, comparisons, stand_in_bodies):
    check = check_file(GOLDEN / f'model_{stage}_{kind}_123_r50.npz', str(stand_in_bodies))
    assert not check.faults
    assert check.compared == comparisons
