"""S3-Queue's conformance matrix (2 to 7) and its tests of concurrency, in the terms of our log: stores x cases.

Where our log has no such thing, the docstring of a case says what stands in its place. The first section of
the matrix is about stores (`test_stores.py`). On the virtual bucket a request takes 5 ms
of virtual time, so leases and retentions run out. In memory and in a file the cases that wait for them are
left out.
"""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from leaderless.hosting.laws.lawful import Observer
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from simulation.bucket import Bucket
from simulation.loop import VirtualEventLoop, run_virtual
from tests.around import slow_port
from tests.contract.matrix import cases
from tests.contract.matrix.stage import AGED, CASES, Stage
from tests.lawful import Lawful

IN_TIME = [name for name in CASES if name not in AGED]


@pytest.mark.simulation
@pytest.mark.parametrize("name", CASES)
def test_on_a_virtual_bucket(name: str) -> None:
    async def main(loop: VirtualEventLoop) -> None:
        observer = Observer()
        bucket = Bucket(loop.time, keep=False, changed=observer.changed)
        await CASES[name](Stage(slow_port(bucket, "p", 5.0), ages=True))
        assert observer.broken is None

    run_virtual(main)


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
    await CASES[name](Stage(lawful, ages=False))
    assert lawful.observer.broken is None


def test_every_section_has_its_cases() -> None:
    """2 to 7, and the tests of concurrency."""
    defined = Counter(name[0] for name in CASES if cases)
    assert defined == {"2": 9, "3": 7, "4": 6, "5": 8, "6": 4, "7": 4, "C": 12}
