"""Servers that several files of process tests use."""

from collections.abc import Iterator

import pytest

from tests import servers


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with servers.moto() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(moto: str) -> str:
    """moto's server with a bucket that is empty."""
    servers.make_bucket(moto)
    return moto
