"""A node that is about to break a law stops before the store is told; one that reads a broken log says so.

`tests/mutants/node.toml` has mutants without these checks.
"""

from collections.abc import Callable
from typing import Any

import pytest

from leaderless.core.claims import Claim, Claims
from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.archive import Archive, Truncated
from leaderless.core.headlog.attempt import raise_epoch
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    IndexEntry,
    distribute,
    index_of,
    new_page,
)
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.records import HEAD, Head, Run
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import View, require_contiguous
from leaderless.core.messages import Block, Heading, Put
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from simulation.nodes import LINEARIZABLE
from simulation.oracle import Violation
from tests.compacting import SHAPE, SMALL, JudgedStore, Worker, entry_of, messages_of, reader_of
from tests.driver import Driver
from tests.ported import Store
from tests.stepped import SteppedCluster

REGISTER = "claim/work"
ONE, TWO = IndexEntry(0, 0, 1, 0, 4, 1, 9), IndexEntry(0, 2, 3, 4, 8, 1, 9)


def compacted(entries: int) -> Store:
    """The registers of a log whose runs are made, which no oracle sees change."""
    store = JudgedStore(entries)
    Worker(store, "worker").finish()
    return store.copy()


# ------------------------------------------------------------ OneLiveClaim


def claims_of(driver: Driver) -> Claims:
    """Of a worker that has the task, in epoch 1 and with a beat of 1."""
    claims = Claims(driver.clock, REGISTER, "me", Pace())
    assert driver.call(claims.claim()) == 0
    driver.call(claims.beat())
    return claims


def test_a_lease_is_never_given_back_in_an_older_epoch() -> None:
    store = Store()
    driver = Driver(store.apply)
    claims = claims_of(driver)
    before = store.registers
    with pytest.raises(InvariantBroken, match=r"^OneLiveClaim"):
        driver.call(claims._give_back(Claim(0, "me")))
    assert store.registers == before


@pytest.mark.parametrize("shown", [Claim(1, "other", 3), Claim(1, "me"), None], ids=str)
def test_a_lease_that_came_back_is_found_out(shown: Claim | None) -> None:
    store = Store()
    driver = Driver(store.apply)
    claims = claims_of(driver)
    store.cells.clear()
    if shown:
        store.apply(Put(REGISTER, shown.value))
    with pytest.raises(InvariantBroken, match=r"^OneLiveClaim"):
        driver.call(claims.claim())


# ------------------------------------------------------------ CursorNeverPassesCompacted, IndexMatchesRuns


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (Claim(), Claim(1, "a"), None),
        (Claim(1, "a"), Claim(1, "a", 1), None),
        (Claim(1, "a", 1), Claim(1, None, 1), None),
        (Claim(1, "a", 5), Claim(2, "b"), None),
        (Claim(1, "a"), Claim(7, None), None),
        (Claim(2, None), Claim(1, None), "OneLiveClaim"),
        (Claim(1, "a"), Claim(), "OneLiveClaim"),
        (Claim(1, "a"), Claim(1, "b"), "OneLiveClaim"),
        (Claim(1, None), Claim(1, "a"), "OneLiveClaim"),
        (Claim(1, "a", 2), Claim(1, "a", 1), "OneLiveClaim"),
        (Index(), Index(1, 0, (ONE,)), None),
        (Index(1, 0, (ONE,)), Index(2, 0, (ONE,)), None),
        (Index(1, 0, (ONE,)), Index(1, 2, (ONE,)), None),
        (Index(1, 0, (ONE,)), Index(5, 4, (ONE, TWO)), None),
        (Index(2, 0, (ONE,)), Index(1, 2, (ONE,)), "OneLiveClaim"),
        (Index(), Index(1, 1), "CursorNeverPassesCompacted"),
        (Index(1, 2, (ONE,)), Index(1, 3, (ONE,)), "CursorNeverPassesCompacted"),
        (Index(1, 2, (ONE,)), Index(1, 0, (ONE,)), "CursorNeverPassesCompacted"),
        (Index(1, 2, (ONE, TWO)), Index(1, 2, (ONE,)), "CommittedReadable"),
        (Index(), Index(1, 0, (TWO,)), "IndexMatchesRuns"),
        (Index(), Index(1, 0, (ONE, TWO._replace(base=5))), "IndexMatchesRuns"),
        (Index(), Index(1, 0, (ONE, TWO._replace(first=3))), "IndexMatchesRuns"),
    ],
)
def test_what_a_lease_and_an_index_may_become(before: Any, after: Any, name: str | None) -> None:
    if name is None:
        after.require_after(before)
    else:
        with pytest.raises(InvariantBroken, match=f"^{name}"):
            after.require_after(before)


def compactor_on(store: Store) -> tuple[Driver, Compactor]:
    """One that has read the log."""
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "worker", [], SMALL, founding=SHAPE)
    driver.call(replica.refresh())
    return driver, Compactor(driver.clock, replica, "worker", Pace())


def test_a_run_that_does_not_follow_the_others_is_never_named() -> None:
    """Segments have other slots than when they were sealed."""
    store = JudgedStore(7).copy()
    driver, compactor = compactor_on(store)
    for number in range(3):
        register = f"segment/{number}"
        segment = store.registers[register]
        store.apply(Put(register, segment | {"base": segment["base"] + 1}))
    driver.start(compactor.consider())
    driver.finish()
    assert index_of(store.registers[COMPACTED]) == Index(epoch=1)


def test_an_index_that_came_back_is_found_out() -> None:
    store = compacted(7)
    driver, compactor = compactor_on(store)
    earlier = store.registers[COMPACTED]
    store.apply(Put(COMPACTED, earlier | {"epoch": 7}))
    driver.call(compactor._replica.read_index())
    store.apply(Put(COMPACTED, earlier))
    with pytest.raises(InvariantBroken, match=r"^OneLiveClaim"):
        driver.call(compactor._replica.read_index())


def test_of_two_indices_one_became_the_other() -> None:
    archive = Archive(lambda: 0)
    known = Index(2, 2, (ONE,))
    for index in (Index(2, 0, (ONE,)), known, Index(1, 0, (ONE,))):
        archive.learn(index)  # what was read earlier may come later
    with pytest.raises(InvariantBroken, match=r"^CursorNeverPassesCompacted"):
        archive.learn(Index(3, 0, (ONE,)))
    assert archive.index == known


def reader_without_memory(store: Store) -> tuple[Driver, Memory]:
    """A node that has read the directory of the log, and must read its runs again."""
    driver, replica = reader_of(store, 0)
    driver.call(replica.refresh())
    return driver, Memory(replica)


def test_a_run_has_the_slots_that_are_listed() -> None:
    store = compacted(19)
    driver, memory = reader_without_memory(store)
    assert driver.call(memory.read("k", 0))[0] == [0, messages_of(19)["k"][0]]
    store.apply(Put("run/0-1", store.registers["run/0-1"] | {"end": 5}))
    driver, memory = reader_without_memory(store)
    with pytest.raises(InvariantBroken, match=r"^IndexMatchesRuns: run/0-1"):
        driver.call(memory.read("k", 0))


def test_a_key_of_a_page_has_no_gap() -> None:
    runs = [Run(base, base + 1, {"k": (base, ["msg"])}, {}, {}) for base in range(3)]
    drafts = {0: new_page([ONE, TWO])}
    distribute(runs[0], 0, drafts, 1)
    with pytest.raises(InvariantBroken, match=r"^OffsetsDense: key 'k' at 2 after 1"):
        distribute(runs[2], 1, drafts, 1)


# ------------------------------------------------------------ PollContiguous


@pytest.mark.parametrize("run", [[[3, "a"], [4, "b"]], [[1, "a"]], [[2, "a"], [4, "b"]]], ids=str)
def test_a_poll_answers_every_offset_from_the_asked_one_on(run: list[list[int | str]]) -> None:
    require_contiguous("k", 2, [[2, "a"], [3, "b"]])
    with pytest.raises(InvariantBroken, match=r"^PollContiguous"):
        require_contiguous("k", 2, [[*pair] for pair in run])


def test_a_run_that_lacks_what_its_page_says_is_no_answer() -> None:
    store = compacted(19)
    run = store.registers["run/0-1"]
    _, [_, *msgs] = run["keys"]["k"]
    store.apply(Put("run/0-1", run | {"keys": run["keys"] | {"k": [1, msgs]}}))
    driver, memory = reader_without_memory(store)
    with pytest.raises(InvariantBroken, match=r"^PollContiguous"):
        driver.call(memory.read("k", 0))


def test_what_a_retention_left_begins_after_what_it_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def truncated(_archive: Archive, _key: str, offset: int, _end: int) -> Process[Block]:
        raise Truncated(offset)
        yield

    driver, memory = reader_without_memory(compacted(19))
    monkeypatch.setattr(Archive, "find", truncated)
    with pytest.raises(InvariantBroken, match=r"^CommittedReadable"):
        driver.call(memory.read("k", 0))


@pytest.mark.parametrize("archived", [False, True], ids=["from memory", "from runs"])
def test_an_answer_with_a_gap_is_never_given(
    archived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_gap(_memory: Memory, _key: str, offset: int, *_: int) -> Process[list[list[int]]]:
        return [[offset, 0], [offset + 2, 0]]
        yield

    cluster = SteppedCluster(["n0"], "leaderless", LINEARIZABLE)
    monkeypatch.setattr(Memory, "read", with_a_gap)
    monkeypatch.setattr(View, "read", lambda *_: None if archived else [[0, 0], [2, 0]])
    cluster.request("c1", "n0", {"type": "poll", "offsets": {"k": 0}})
    with pytest.raises(Violation, match=r"NeverCrashes.*PollContiguous"):
        cluster.run(1.0, every_s=0.01)


# ------------------------------------------------------------ NoAppendWhileFenced


@pytest.mark.parametrize(
    "change",
    [
        lambda fenced: fenced.with_entries([entry_of(0)], 1, "n9"),
        lambda fenced: Head(fenced.heading._replace(epoch=0, version=2), fenced.tail),
    ],
    ids=["grown", "older"],
)
def test_a_fenced_log_does_not_grow_in_its_epoch(change: Callable[[Head], Head]) -> None:
    store = Store()
    fenced = Head(Heading(state="fenced", epoch=1, version=1, shape=SHAPE), [])
    store.apply(Put(HEAD, fenced.value))
    driver = Driver(store.apply)
    driver.start(raise_epoch("me"))
    driver.carry_out()  # it has read the head
    store.apply(Put(HEAD, change(fenced).value))
    driver.finish()
    [broken] = driver.results
    assert isinstance(broken, InvariantBroken)
    assert str(broken).startswith("NoAppendWhileFenced")
