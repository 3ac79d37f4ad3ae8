"""Logs of the library in memory, one for each test."""

from collections.abc import AsyncIterator

import pytest

from leaderless import open_log
from leaderless.library.log import Log


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A store in memory that no other test has."""
    return f"memory:{request.node.nodeid}"


@pytest.fixture
async def log(url: str) -> AsyncIterator[Log]:
    """An open log in that store."""
    async with open_log(url) as log:
        yield log
