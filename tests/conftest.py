"""Shared by all tests: how hard hypothesis works, and which tests share a process.

`HYPOTHESIS_PROFILE=nightly` digs deeper.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from simulation.garbage import collected_quietly
from tests.stores import STORES

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("dev", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

TESTS = Path(__file__).parent
FOLDER_MARKS = ("process", "simulation")  # a folder of this name holds tests of this mark
# Tests of such a mark run one after the other where pytest-xdist runs several at once: they share one
# Spark session or one browser, or start processes that measure time.
GROUPS = ("spark", "browser", "process")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark tests by their folder, and put those that cannot share a machine into one group."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDER_MARKS:
            item.add_marker(folder)
        group = next((name for name in GROUPS if item.get_closest_marker(name)), None)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def garbage_collected() -> Iterator[None]:
    """The nodes that die in a test are gone when it ends (see `simulation.garbage`)."""
    with collected_quietly():
        yield


@pytest.fixture(params=sorted(folder.name for folder in STORES.iterdir()))
def store(request: pytest.FixtureRequest) -> Path:
    """Each store of the real tool in turn."""
    return STORES / request.param
