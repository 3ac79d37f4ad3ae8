"""S3-Queue's conformance matrix (2 to 7) and its tests of concurrency, in the terms of our log: stores x cases.

The cases stand in `matrix.txt`; `REWRITE=1` writes there what happens on the virtual bucket. The first
section of the matrix is about stores (`test_stores.py`). On the virtual bucket a request takes 5 ms of virtual
time, so leases and retentions run out. In memory and in a file the cases that wait for them are left out.
"""

import os
from collections import Counter
from pathlib import Path

import anyio
import pytest

from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from tests.datadriven.logs import Logs
from tests.datadriven.runner import cases_of
from tests.lawful import Lawful

MATRIX = Path(__file__).parent / "matrix.txt"
CASES = cases_of(MATRIX)
IN_TIME = [name for name in CASES if not name.endswith("(waits)")]


@pytest.mark.simulation
@pytest.mark.parametrize("name", CASES)
def test_on_a_virtual_bucket(name: str) -> None:
    found = Logs().play(CASES[name])
    if os.environ.get("REWRITE") == "1":
        MATRIX.write_text(MATRIX.read_text().replace(CASES[name], found))
    else:
        assert found == CASES[name]


@pytest.mark.simulation
@pytest.mark.parametrize("write", range(1, 11))
def test_a_compaction_is_resumed_after_a_crash_at_each_step(write: int) -> None:
    case = CASES["5 resumed after a crash at each step (waits)"].replace(
        "before 0", f"before {write}"
    )
    assert Logs().play(case) == case


@pytest.mark.parametrize("name", IN_TIME)
def test_in_memory(name: str) -> None:
    anyio.run(lawfully, name, MemoryStore())


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TIME)
def test_in_a_file(name: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    anyio.run(lawfully, name, store)
    anyio.run(store.aclose)


async def lawfully(name: str, store: Store) -> None:
    """Play a case on a store whose changes are judged."""
    lawful = Lawful(store)
    assert await Logs().played_on(lawful, CASES[name]) == CASES[name]
    assert lawful.observer.broken is None


def test_every_section_has_its_cases() -> None:
    """2 to 7, and the tests of concurrency. A crash of a compaction has two."""
    defined = Counter(name[0] for name in CASES)
    assert defined == {"2": 9, "3": 7, "4": 6, "5": 9, "6": 4, "7": 4, "C": 12}
