"""Servers, and a bench, that several files of process tests use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.process.test_bench import Bench, leftovers


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    with servers.moto() as endpoint:
        yield endpoint


@pytest.fixture(params=["moto", pytest.param("ceph", marks=pytest.mark.stores)])
def endpoint(request: pytest.FixtureRequest) -> str:
    """An S3 server with a bucket that is empty."""
    endpoint: str = request.getfixturevalue(request.param)
    servers.make_bucket(endpoint)
    return endpoint


@pytest.fixture
def mock(moto: str) -> str:
    """moto's server with a bucket that is empty, for tests that say themselves what a server does otherwise."""
    servers.make_bucket(moto)
    return moto


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench that leaves no process behind."""
    yield Bench(tmp_path)
    assert leftovers(tmp_path) == []
