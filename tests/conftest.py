"""Fixtures that several test files share."""
import json
import os

import pytest
import torch

from common.train.logger import close_log
from data import build_dataset, index
from main.config import Config
from tests.data_tools import HANDS, copy_set, data_config
from tests.golden import make_bodies, make_datasets


def pytest_configure():
    """Test processes side by side have a thread each, and so have the programs that they start."""
    if 'PYTEST_XDIST_WORKER' in os.environ:
        os.environ['OMP_NUM_THREADS'] = '1'
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_log_is_left():
    """A run's log stays open to the end of its process; here, to the end of the test."""
    yield
    close_log()


@pytest.fixture(autouse=True)
def no_index_is_left(monkeypatch, tmp_path_factory):
    """Tests that name no cache_dir keep their indices among the temporary files."""
    usual = index.index_path
    folder = tmp_path_factory.getbasetemp() / 'indices'

    def path(cache_dir, name, split):
        if str(cache_dir) == Config().cache_dir:
            cache_dir = folder
        return usual(cache_dir, name, split)

    monkeypatch.setattr(index, 'index_path', path)


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


@pytest.fixture
def open_set(stand_in_bodies, tiny_datasets):
    """Opens a data set of the tiny data, or of another data_dir."""
    def build(name, split, *overrides, data_dir=tiny_datasets):
        hands = HANDS if name == 'FreiHAND' else []
        return build_dataset(name, split, data_config(stand_in_bodies, data_dir, *hands, *overrides))
    return build


@pytest.fixture
def changed(tiny_datasets, tmp_path):
    """Copies one data set, with the joint regressors, and applies `change(content)` to one of its JSON files: in place,
    or with the new content as its result. Returns the new data_dir."""
    def copy(name, file, change):
        copy_set(tiny_datasets, tmp_path, *{name, 'Human36M'})
        path = tmp_path / name / file
        content = json.loads(path.read_text())
        new = change(content)
        path.write_text(json.dumps(content if new is None else new))
        return tmp_path
    return copy
