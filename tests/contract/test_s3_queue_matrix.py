"""S3-Queue's conformance matrix (2 to 7), on our log in its own terms, and on S3-Queue: stores x cases.

The cases stand in `matrix.txt`, with those of its tests of concurrency, and in `queue_matrix.txt`;
`REWRITE=1` writes there what happens on the virtual bucket. The first section of the matrix is about stores
(`test_stores.py`). On the virtual bucket a request takes 5 ms of virtual time, so leases and retentions run
out. Elsewhere the cases that wait for them are left out.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from simulation.logs import LOGS, PUBLISHED, REPAIRED
from simulation.s3_queue.client import Repeating
from tests.datadriven.programs import Program, Programs
from tests.datadriven.runner import cases_of
from tests.lawful import Lawful
from tests.servers import Place
from tests.store_process import Process
from tests.topics import Queue, RepairedQueue

FOLDER = Path(__file__).parent
MATRIX, QUEUE_MATRIX = FOLDER / "matrix.txt", FOLDER / "queue_matrix.txt"
CASES, OF_QUEUES = cases_of(MATRIX), cases_of(QUEUE_MATRIX)
TOPICS: Mapping[str, type[Process]] = {PUBLISHED: Queue, REPAIRED: RepairedQueue}
WAITS = "(waits)"
IN_TIME = [name for name in CASES if not name.endswith(WAITS)]


def cases_for(log: str) -> dict[str, str]:
    """The cases of a log, by their headings."""
    if log not in TOPICS:
        return CASES
    other = "repaired:" if log == PUBLISHED else "published:"
    return {name: case for name, case in OF_QUEUES.items() if not name.startswith(other)}


def player_of(log: str) -> Programs:
    return Programs(TOPICS.get(log, Program))


EVERY = [(log, name) for log in LOGS for name in cases_for(log)]


@pytest.mark.simulation
@pytest.mark.parametrize(("log", "name"), EVERY)
def test_on_a_virtual_bucket(log: str, name: str) -> None:
    case = cases_for(log)[name]
    found = player_of(log).play(case)
    if os.environ.get("REWRITE") == "1":
        matrix = QUEUE_MATRIX if log in TOPICS else MATRIX
        matrix.write_text(matrix.read_text().replace(case, found))
    else:
        assert found == case


@pytest.mark.simulation
@pytest.mark.parametrize("write", range(1, 11))
def test_a_compaction_is_resumed_after_a_crash_at_each_step(write: int) -> None:
    case = CASES["5 resumed after a crash at each step (waits)"].replace(
        "before 0", f"before {write}"
    )
    assert Programs().play(case) == case


@pytest.mark.simulation
def test_a_range_of_several_pages_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.s3_queue.published.PAGE", 2)
    for topic in TOPICS.values():
        played = Programs(topic).play("> p fill 7\n> p compact 1 6\n> objects index\n")
        assert "1..6 COMPACTED, 7..7 WAL" in played


@pytest.mark.parametrize("name", IN_TIME)
def test_in_memory(name: str) -> None:
    anyio.run(lawfully, name, MemoryStore())


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TIME)
def test_in_a_file(name: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    anyio.run(lawfully, name, store)
    anyio.run(store.aclose)


BYTES = re.compile(r", \d+ bytes \w+")  # the head names the limits of its store
REAL = "The real profile: two producers, a compaction, two consumers"


@pytest.mark.process
@pytest.mark.parametrize(
    "place", ["s3", pytest.param("etcd", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("log", LOGS)
def test_the_real_profile_on_a_server(log: str, place: Place) -> None:
    anyio.run(on_a_server, log, REAL, place)


@pytest.mark.process
@pytest.mark.stores
@pytest.mark.parametrize("place", ["s3", "etcd"], indirect=True)
@pytest.mark.parametrize(("log", "name"), [each for each in EVERY if not each[1].endswith(WAITS)])
def test_on_a_server(log: str, name: str, place: Place) -> None:
    anyio.run(on_a_server, log, name, place)


async def on_a_server(log: str, name: str, place: Place) -> None:
    """Play a case. A client library repeats what a server does not answer well, but no compare-and-set."""
    case = cases_for(log)[name]
    async with aclosing(place.open()) as store:
        patient = Repeating(store, updates=False) if log in TOPICS else store
        played = await player_of(log).played_on(patient, case)
        assert BYTES.sub("", played) == BYTES.sub("", case)


async def lawfully(name: str, store: Store) -> None:
    """Play a case on a store whose changes are judged."""
    lawful = Lawful(store)
    assert await Programs().played_on(lawful, CASES[name]) == CASES[name]
    assert lawful.observer.broken is None


def test_every_section_has_its_cases() -> None:
    """2 to 7, and the tests of concurrency. A crash of a compaction has two."""
    defined = Counter(name[0] for name in CASES)
    assert defined == {"2": 9, "3": 8, "4": 7, "5": 9, "6": 4, "7": 4, "C": 12, "T": 1}
    for log in TOPICS:
        names = [
            name.removeprefix("published: ").removeprefix("repaired: ") for name in cases_for(log)
        ]
        assert {"2", "3", "4", "5", "6", "7"} <= {name[0] for name in names}
