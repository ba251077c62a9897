"""The page's server, for the tests of the page and of its results."""
import functools

import pytest

from tests.page_server import page_server, send


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    with page_server(tmp_path_factory.mktemp('web')) as running:
        yield running


@pytest.fixture
def ask(server):
    return functools.partial(send, server)
