"""A log of any length: what a start, a poll and an update of the index cost does not grow with the log."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
import pytest

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.index import COMPACTED, index_of, part_of
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.records import HEAD, Head, Segment, head_of, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Block, Cas, Entry, Get, Heading, Outcome, Put, StoreOp
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from tests.driver import Driver
from tests.ported import Store

CHILDREN, LEVELS = 4, 5  # of pages: enough for 4^5 runs
SMALL = Limits(memory_bytes=1 << 14)
SHAPE = Shape(seal_entries=2, segments_per_run=2, page_children=CHILDREN, page_bytes=1 << 10)
EMPTY = Head(Heading(shape=SHAPE), [])
OWN = "sleeper/0"
LONG, SHORT = 1_200, 300  # entries; a run has four


class LongLog:
    """A log that grows as committers and a compacting worker make it; every call of the store is counted.

    Two keys stay for ever; a further one is written eight times and left.
    """

    def __init__(self, entries: int) -> None:
        self.store = Store()
        self.worker = Driver(self.apply)
        self.calls: Counter[str] = Counter()
        self.index_bytes = 0  # of the largest update
        self.log: dict[str, list[str]] = {}
        self.grow(entries)

    def apply(self, op: StoreOp) -> Outcome:
        if isinstance(op, Get):
            self.calls[op.key] += 1
        if isinstance(op, Cas) and op.key == COMPACTED:
            self.index_bytes = max(self.index_bytes, len(orjson.dumps([op.old, op.new])))
        return self.store.apply(op)

    def grow(self, entries: int, writer: str = "w/0") -> None:
        value = self.store.registers.get(HEAD)
        head: Head = head_of(value) if value else EMPTY
        for slot in range(head.end, head.end + entries):
            if head.full:
                segment = Segment(head.base, head.tail)
                self.store.apply(Put(segment_name(head.sealed), segment.value))
            head = head.with_entries([self._entry(writer, slot)], 1, "n9", len(head.tail))
            self.store.apply(Put(HEAD, head.value))
        replica = Replica(self.worker.clock, "worker", [], SMALL, founding=SHAPE)
        self.worker.call(replica.refresh())
        self.worker.call(
            Compactor(self.worker.clock, replica, f"worker {head.end}", Pace()).consider()
        )
        self.calls.clear()

    def _entry(self, writer: str, slot: int) -> Entry:
        keys = (f"stays {slot % 2}", f"key {slot // 8}")
        firsts = {key: len(self.log.get(key, ())) for key in keys}
        for key in keys:
            self.log.setdefault(key, []).append(f"{slot} of {key}")
        appends: dict[str, Block] = {key: (firsts[key], [f"{slot} of {key}"]) for key in keys}
        return Entry(writer, slot, appends, {keys[1]: slot})

    def reader(self, limits: Limits = SMALL) -> tuple[Driver, Replica]:
        driver = Driver(self.apply)
        return driver, Replica(driver.clock, "reader", [OWN], limits, founding=SHAPE)

    def read(self, driver: Driver, replica: Replica, key: str, start: int = 0) -> list[Any]:
        """All messages of a key from an offset on."""
        memory, found = Memory(replica), list[list[Any]]()
        while more := driver.call(memory.read(key, start + len(found))):
            found += more
        assert [offset for offset, _ in found] == [*range(start, start + len(found))]
        return [msg for _, msg in found]


@cache
def log_of(entries: int) -> LongLog:
    """A log that no test changes."""
    return LongLog(entries)


def starting(log: LongLog, limits: Limits = SMALL) -> tuple[Driver, Replica]:
    driver, replica = log.reader(limits)
    log.calls.clear()
    driver.call(replica.refresh())
    return driver, replica


def test_an_update_of_the_index_does_not_grow_with_the_log() -> None:
    index = index_of(log_of(LONG).store.registers[COMPACTED])
    assert index.end >= LONG - 8
    levels = Counter(listed.level for listed in index.listed)
    assert len(levels) <= LEVELS
    assert max(levels.values()) <= CHILDREN
    entry = len(orjson.dumps([*index.listed[0]])) + 16
    bound = 2 * entry * CHILDREN
    assert log_of(SHORT).index_bytes <= bound * 4 + 300
    assert log_of(LONG).index_bytes <= bound * LEVELS + 300  # from and to


def test_a_start_reads_a_bounded_part_of_the_log() -> None:
    reads = {}
    for entries in (SHORT, LONG):
        log = log_of(entries)
        _, replica = starting(log)
        assert {key: replica.view.end(key) for key in log.log} == {
            key: len(msgs) for key, msgs in log.log.items()
        }
        parts = sum(listed.parts for listed in index_of(log.store.registers[COMPACTED]).listed)
        reads[entries] = log.calls.total()
        assert reads[entries] <= parts + 2 + 3  # head, index, segments that are in no run
    runs = sum(name.startswith("run/") for name in log_of(LONG).store.registers)
    assert reads[LONG] < runs / 4


@pytest.mark.parametrize("key", ["stays 0", "stays 1", "key 0", "key 71", f"key {LONG // 8 - 1}"])
def test_a_poll_reads_one_way_down(key: str) -> None:
    log = log_of(LONG)
    for offset in {0, len(log.log[key]) // 2, len(log.log[key]) - 1}:
        driver, replica = starting(log)
        log.calls.clear()
        [first, *_] = driver.call(Memory(replica).read(key, offset))
        assert first == [offset, log.log[key][offset]]
        assert log.calls.total() <= CHILDREN * LEVELS + LEVELS


@pytest.mark.parametrize("lost", range(0, 20, 3))
def test_a_silent_read_of_a_start_loses_nothing_else(lost: int) -> None:
    """One read that was refused threw all away that was read: a node with a long log never served."""
    log = log_of(LONG)
    driver, replica = log.reader(replace(SMALL, memory_bytes=1 << 20))
    log.calls.clear()
    driver.start(replica.refresh())
    for _ in range(lost):
        driver.carry_out()
    silent = driver.calls[-1].op.key
    while driver.running:
        place = next((at for at, call in enumerate(driver.calls) if call.op.key == silent), None)
        driver.carry_out("ok" if place is None else "call lost", which=place or 0)
    [failure] = driver.results
    assert isinstance(failure, StoreSilent)
    assert silent not in log.calls
    driver.results.clear()
    driver.call(replica.refresh())
    assert {name for name, times in log.calls.items() if times > 1} <= {HEAD, COMPACTED}
    assert replica.view.slot == LONG


def test_a_node_that_slept_goes_on_at_the_index() -> None:
    """It learns where its batch is, though the segment is deleted and the run far down in the index."""
    log = LongLog(8)
    driver, replica = log.reader()
    driver.call(replica.refresh())
    log.grow(1, OWN)
    log.grow(SHORT)
    driver.call(replica.refresh())
    assert log.calls.total() <= CHILDREN * LEVELS
    assert replica.view.placed[OWN] == (8, {"stays 0": 4, "key 1": 0})
    for key in ("stays 0", "key 0", "key 1", "key 20"):
        assert log.read(driver, replica, key) == log.log[key]


def test_parts_of_a_page_are_bounded_and_hold_the_keys_of_their_hash() -> None:
    log = LongLog(SHORT)
    registers = log.store.registers
    pages = {name: value for name, value in registers.items() if name.startswith("page/")}
    assert len(pages) > len({name.rpartition("/")[0] for name in pages})  # some have several parts
    parts = Counter(name.rpartition("/")[0] for name in pages)
    for name, page in pages.items():
        whole, _, part = name.rpartition("/")
        part, _, of = part.partition("-of-")
        assert int(of) == parts[whole]
        assert len(orjson.dumps(page)) <= 4 * SHAPE.page_bytes
        assert all(part_of(key, parts[whole]) == int(part) for key in page["keys"])


def test_reads_side_by_side_share_what_they_read() -> None:
    log = log_of(LONG)
    driver, replica = starting(log, replace(SMALL, memory_bytes=1 << 20))
    log.calls.clear()
    memory = Memory(replica)
    for _ in range(5):
        driver.start(memory.read("key 3", 0))
    driver.finish()
    assert driver.results == [driver.results[0]] * 5
    assert set(log.calls.values()) == {1}
