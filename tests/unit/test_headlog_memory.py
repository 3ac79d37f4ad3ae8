"""Bounded memory: what is moved out is read back, contiguous, whatever happens meanwhile."""

import pytest

from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import ENTRY_BYTES
from tests.compacting import ENTRIES, JudgedStore, Worker, log_of, messages_of, reader_of
from tests.driver import Driver

SIZES = [0, 200, 800, 1 << 20]  # of the memory, in bytes


@pytest.fixture
def store() -> JudgedStore:
    """A log of which the first eight entries are in two runs."""
    store = JudgedStore()
    Worker(store, "worker").finish()
    return store


def read_everything(driver: Driver, memory: Memory, entries: int = ENTRIES) -> None:
    """Poll each key from each offset to its end; every answer must go on where the last one ended."""
    for key, msgs in messages_of(entries).items():
        for start in range(-1, len(msgs) + 1):
            found = driver.call(memory.read(key, start))
            while run := driver.call(memory.read(key, max(0, start) + len(found))):
                found += run
            assert found == [[at, msg] for at, msg in enumerate(msgs)][max(0, start) :]


def resident_bytes(replica: Replica, entries: int) -> int:
    """What the newest entries take, which are in memory."""
    msgs = [msg for msgs in replica.view.messages.values() for msg in msgs]
    return sum(64 + len(msg) for msg in msgs if isinstance(msg, str)) + entries * ENTRY_BYTES


@pytest.mark.parametrize("size", SIZES)
def test_a_start_with_a_log_larger_than_memory(store: JudgedStore, size: int) -> None:
    driver, replica = reader_of(store, size)
    driver.call(replica.refresh())
    assert replica.view.bytes == resident_bytes(replica, ENTRIES - 8)  # what is in no run
    read_everything(driver, Memory(replica))
    # One run, if there is no room.
    assert replica.archive.bytes <= max(size - replica.view.bytes, 2_000)


@pytest.mark.parametrize("size", SIZES)
def test_eviction_while_serving(size: int) -> None:
    store = JudgedStore()
    driver, replica = reader_of(store, size)
    memory = Memory(replica)
    driver.call(replica.refresh())
    driver.call(memory.evict())
    assert log_of(driver, replica) == messages_of(ENTRIES)  # nothing is compacted: it must stay
    assert replica.view.bytes == resident_bytes(replica, ENTRIES)
    Worker(store, "worker").finish()
    driver.call(memory.evict())
    in_runs = 0 if size == 1 << 20 else 8
    assert replica.view.bytes == resident_bytes(replica, ENTRIES - in_runs)
    read_everything(driver, memory)
    store.grow_to(ENTRIES + 8)
    Worker(store, "again").finish()
    driver.call(replica.refresh())
    driver.call(memory.evict())
    read_everything(driver, memory, store.entries)


def test_a_run_that_goes_on_after_the_view_is_cut_there() -> None:
    """Others compact what this node has not read yet: a poll answers what is in its view, and no more."""
    known = 10  # in the middle of a run
    store = JudgedStore(known)
    driver, replica = reader_of(store, 0)
    memory = Memory(replica)
    driver.call(replica.refresh())
    store.grow_to(ENTRIES + 8)
    Worker(store, "worker").finish()
    driver.call(memory.evict())
    assert replica.archive.index.end > replica.view.slot == known
    assert log_of(driver, replica) == messages_of(known)


def test_it_is_overfull_once_for_each_segment(store: JudgedStore) -> None:
    driver, replica = reader_of(JudgedStore(), 200)
    memory = Memory(replica)
    driver.call(replica.refresh())
    assert memory.overfull
    driver.start(memory.evict())
    assert not memory.overfull  # it is being seen to
    driver.finish()
    assert not memory.overfull  # the index had nothing; no need to look before another seal


def test_a_silent_store_leaves_the_log_in_memory() -> None:
    store = JudgedStore()
    driver, replica = reader_of(store, 0)
    memory = Memory(replica)
    driver.call(replica.refresh())
    Worker(store, "worker").finish()
    driver.start(memory.evict())
    while driver.running:
        driver.carry_out("call lost")
    assert replica.view.bytes == resident_bytes(replica, ENTRIES)
    driver.call(memory.evict())
    assert replica.view.bytes == resident_bytes(replica, ENTRIES - 8)


@pytest.mark.parametrize("size", SIZES)
def test_two_reads_of_a_node_that_starts(store: JudgedStore, size: int) -> None:
    """A poll and a send that come together: the log is read once, by one of them."""
    driver, replica = reader_of(store, size)
    for _ in range(2):
        driver.start(replica.refresh())
    driver.finish()
    assert driver.results == [None, None]
    driver.results.clear()
    read_everything(driver, Memory(replica))


@pytest.mark.parametrize("order", [0, -1], ids=["oldest first", "newest first"])
def test_evictions_and_loads_may_cross(order: int) -> None:
    """A node that lags behind takes an outline of runs beside an eviction that is under way."""
    for paused in range(3):
        store = JudgedStore(7)
        driver, replica = reader_of(store, 0)
        memory = Memory(replica)
        driver.call(replica.refresh())
        store.grow_to(ENTRIES + 8)
        Worker(store, "worker").finish()
        driver.start(memory.evict())
        for _ in range(paused):
            if driver.running:
                driver.carry_out()
        driver.start(replica.refresh())
        while driver.running:
            driver.carry_out(which=order)
        assert set(driver.results) == {None}
        read_everything(driver, memory, store.entries)
