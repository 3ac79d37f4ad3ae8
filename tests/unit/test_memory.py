"""Bounded memory: what is moved out is read back, contiguous, whatever happens meanwhile."""

import pytest

from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.replica import Replica
from simulation.driver import Driver
from tests.compacting import (
    ENTRIES,
    JudgedStore,
    Worker,
    messages_of,
    reader_of,
)

SIZES = [0, 200, 800, 1 << 20]  # of the memory, in bytes
RESIDENT = {0: 8, 200: 8, 800: 4, 1 << 20: 0}  # a run has eight messages of about 66 bytes each


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


def resident_bytes(replica: Replica) -> int:
    return sum(64 + len(msg) for msgs in replica.view.messages.values() for msg in msgs)


@pytest.mark.parametrize("size", SIZES)
def test_a_start_with_a_log_larger_than_memory(store: JudgedStore, size: int) -> None:
    driver, replica = reader_of(store, size)
    driver.call(replica.refresh())
    assert replica.view.bytes == resident_bytes(replica)
    assert replica.view.resident == RESIDENT[size]
    read_everything(driver, Memory(replica, size))


@pytest.mark.parametrize("size", SIZES)
def test_eviction_while_serving(size: int) -> None:
    store = JudgedStore()
    driver, replica = reader_of(store, size)
    memory = Memory(replica, size)
    driver.call(replica.refresh())
    driver.call(memory.evict())
    assert replica.view.resident == 0  # nothing is compacted: it must stay
    Worker(store, "worker").finish()
    driver.call(memory.evict())
    assert (replica.view.resident > 0) == (size < 1 << 20)
    assert replica.view.bytes == resident_bytes(replica)
    read_everything(driver, memory)
    store.grow_to(ENTRIES + 8)
    Worker(store, "again").finish()
    driver.call(replica.refresh())
    driver.call(memory.evict())
    read_everything(driver, memory, store.entries)


def test_it_is_overfull_once_for_each_segment(store: JudgedStore) -> None:
    driver, replica = reader_of(JudgedStore(), 1 << 20)
    memory = Memory(replica, bytes_max=200)
    driver.call(replica.refresh())
    assert memory.overfull
    driver.start(memory.evict())
    assert not memory.overfull  # it is being seen to
    driver.finish()
    assert not memory.overfull  # the index had nothing; no need to look before another seal


def test_a_silent_store_leaves_the_log_in_memory(store: JudgedStore) -> None:
    driver, replica = reader_of(store)
    memory = Memory(replica, bytes_max=0)
    driver.call(replica.refresh())
    driver.start(memory.evict())
    while driver.running:
        driver.carry_out("call lost")
    assert replica.view.resident == 0
    driver.call(memory.evict())
    assert replica.view.resident == 8


@pytest.mark.parametrize("size", SIZES)
def test_two_reads_of_a_node_that_starts(store: JudgedStore, size: int) -> None:
    """A poll and a send that come together both load the log; its runs leave memory once."""
    driver, replica = reader_of(store, size)
    for _ in range(2):
        driver.start(replica.refresh())
    driver.finish()
    assert driver.results == [None, None]
    driver.results.clear()
    read_everything(driver, Memory(replica, size))


@pytest.mark.parametrize("order", [0, -1], ids=["oldest first", "newest first"])
def test_evictions_and_loads_may_cross(order: int) -> None:
    """A node that lags behind loads runs, and moves them out, beside an eviction that is under way."""
    for paused in range(8):
        store = JudgedStore(7)
        driver, replica = reader_of(store, 0)
        memory = Memory(replica, 0)
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
        assert replica.view.bytes == resident_bytes(replica)
