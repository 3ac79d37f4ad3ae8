"""A short log, a store that checks every change made to it, and nodes that compact or read it."""

from dataclasses import replace
from typing import Any

import orjson

from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.records import (
    COMPACTED,
    EMPTY,
    Head,
    Index,
    Segment,
    head_of,
    segment_name,
)
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Block, Entry, Outcome, Put, StoreOp
from leaderless.store.memory import MemoryStore
from tests.driver import Driver

ENTRIES = 11  # five segments and a tail of one: two runs and a segment
RUNS, CURSOR = 2, 4
KEYS = ("j", "k", "l")
SOUND: set[object] = set()  # states of the store that were read already, in any test
UNBOUNDED = 1 << 30
SMALL = Limits(seal_entries=2, segments_per_run=2, memory_bytes=UNBOUNDED)


def entry_of(slot: int) -> Entry:
    """An entry with a message for two of the keys."""
    written = _keys_of(slot)
    firsts = {key: sum(key in _keys_of(lower) for lower in range(slot)) for key in written}
    appends: dict[str, Block] = {key: (firsts[key], [f"{slot}{key}"]) for key in written}
    return Entry(f"w{slot % 2}", slot, appends, {written[0]: slot})


def _keys_of(slot: int) -> tuple[str, str]:
    return KEYS[slot % 3], KEYS[(slot + 1) % 3]


def messages_of(entries: int) -> dict[str, list[str]]:
    """What every key holds after so many entries."""
    messages: dict[str, list[str]] = {}
    for slot in range(entries):
        for key, (_, msgs) in entry_of(slot).appends.items():
            messages.setdefault(key, []).extend(msgs)
    return messages


def reader_of(store: MemoryStore, bytes_max: int = UNBOUNDED) -> tuple[Driver, Replica]:
    """A node that only reads, and has read nothing yet."""
    driver = Driver(store.apply)
    return driver, Replica(driver.clock, "reader", [], replace(SMALL, memory_bytes=bytes_max))


class CheckedStore(MemoryStore):
    """Raises at the very operation that breaks an invariant."""

    def __init__(self, entries: int = ENTRIES) -> None:
        super().__init__()
        self.entries = 0
        self._checked = False
        self.grow_to(entries)
        self._checked = True

    def grow_to(self, entries: int) -> None:
        """Append and seal as committers do."""
        value = self.registers.get("head")
        log: Head = head_of(value) if value else EMPTY
        for slot in range(self.entries, entries):
            if log.full(SMALL):
                segment = Segment(log.base, log.tail)
                super().apply(Put(segment_name(log.sealed), segment.value))
            log = log.with_entries([entry_of(slot)], 1, "n9", SMALL)
        super().apply(Put("head", log.value))
        self.entries = entries

    def apply(self, op: StoreOp) -> Outcome:
        """Carry out one operation; everything must be as it should afterwards."""
        texts = dict(self._texts)
        outcome = super().apply(op)
        if self._checked and self._texts != texts:
            before = {key: orjson.loads(text) for key, text in texts.items()}
            self._check(before, self.registers)
            self._check_readable(tuple(self._texts.items()))
        return outcome

    def _check(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        for register, value in before.items():
            if register.startswith("run/"):
                assert after[register] == value, "SegmentsAreImmutable"
            if register.startswith("segment/"):
                assert after[register] in (value, TOMBSTONE), "SegmentsAreImmutable"
        index = after.get(COMPACTED, Index().value)
        assert index["epoch"] >= before.get(COMPACTED, Index().value)["epoch"], "EpochNeverReturns"
        compacted = index["runs"][-1]["last"] + 1 if index["runs"] else 0
        assert index["cursor"] <= compacted, "CursorNeverPassesCompacted"
        for number in range(index["cursor"]):
            assert after[segment_name(number)] == TOMBSTONE, "CursorNeverPassesCompacted"

    def _check_readable(self, state: tuple[tuple[str, bytes], ...]) -> None:
        if state not in SOUND:
            driver, replica = reader_of(self)
            driver.call(replica.refresh())
            assert replica.view.messages == messages_of(self.entries), "CommittedReadable"
            SOUND.add(state)

    def require_compacted(self) -> None:
        """All that can be is in runs, and nothing else is left."""
        index = self.registers[COMPACTED]
        assert (len(index["runs"]), index["cursor"]) == (RUNS, CURSOR)


class Worker(Driver):
    """A node that compacts whatever it can; `calls_made` counts the calls that were carried out."""

    def __init__(self, store: CheckedStore, name: str) -> None:
        super().__init__(store.apply)
        replica = Replica(self.clock, name, [], SMALL)
        self.call(replica.refresh())
        self.start(Compactor(self.clock, replica, name).consider())

    def make_calls(self, count: int, which: int = 0) -> bool:
        """Go on for `count` store calls; says whether there were so many."""
        while self.running and count:
            if self.calls:
                self.carry_out(which=which)
                count -= 1
            else:
                self.pass_time()
        return not count

    def forget(self) -> None:
        """Crash: what it asked may arrive, and nobody hears the answers."""
        self.late += [op for _, op in self.calls]
        self.calls.clear()
