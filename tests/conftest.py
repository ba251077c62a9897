"""Fixtures that several test files share."""
import pytest

from tests.golden import make_bodies, make_datasets


@pytest.fixture(scope='session')
def stand_in_bodies(tmp_path_factory):
    """Folder with stand-ins for the official SMPL and MANO files, and for the two joint regressors."""
    folder = tmp_path_factory.mktemp('bodies')
    make_bodies.write(str(folder))
    return folder


@pytest.fixture(scope='session')
def tiny_datasets(tmp_path_factory, stand_in_bodies):
    """A data_dir with tiny complete copies of Human36M, MuCo, MSCOCO, PW3D and FreiHAND. Do not change it."""
    folder = tmp_path_factory.mktemp('data')
    make_datasets.main(str(stand_in_bodies), str(folder))
    return folder
