"""Fixtures of the tests of the tools."""
import pytest

from tests.raw_releases import write_body_models


@pytest.fixture(scope='session')
def model_dir(tmp_path_factory):
    """Folder with official model files, as the converters need them. Do not change it."""
    return write_body_models(tmp_path_factory.mktemp('models'))
