"""Every sample of every loader and the metrics, against numbers recorded from the published system."""
from pathlib import Path

import pytest

from tests.golden.check_data import check_file

GOLDEN = Path(__file__).resolve().parents[1] / 'golden'


@pytest.mark.parametrize('kind, comparisons', [('body', 1675), ('hand', 236)])
def test_samples_and_metrics_are_those_of_the_published_system(kind, comparisons, stand_in_bodies, tiny_datasets):
    check = check_file(GOLDEN / f'data_{kind}_0.npz', str(stand_in_bodies), str(tiny_datasets))
    assert not check.faults
    assert check.compared == comparisons
