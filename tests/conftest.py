"""Shared by all tests: how hard hypothesis works. `HYPOTHESIS_PROFILE=nightly` digs deeper."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from simulation.garbage import collected_quietly

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("dev", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def garbage_collected() -> Iterator[None]:
    """The nodes that die in a test are gone when it ends (see `simulation.garbage`)."""
    with collected_quietly():
        yield
