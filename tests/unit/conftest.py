"""Logs of the library in memory, one for each test, and the laws of all logs in memory."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.store.memory import MemoryStore
from tests.lawful import lawful_memory


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A store in memory that no other test has."""
    return f"memory:{request.node.nodeid}"


@pytest.fixture
async def log(url: str) -> AsyncIterator[Log]:
    """An open log in that store."""
    async with open_log(url) as log:
        yield log


@pytest.fixture
def store() -> MemoryStore:
    """An empty store that only the test has."""
    return MemoryStore()


@pytest.fixture(autouse=True)
def laws(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every log in memory keeps the laws, unless the test says that it breaks some (`lawless`)."""
    with ExitStack() as stack:
        if not request.node.get_closest_marker("lawless"):
            stack.enter_context(lawful_memory())
        yield
