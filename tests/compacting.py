"""A short log, in a store that is judged at every change, and workers that compact it or read it."""

from collections import Counter
from dataclasses import replace
from typing import Any

import orjson

from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.index import COMPACTED, index_of
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.records import (
    HEAD,
    Head,
    Segment,
    head_of,
    segment_name,
)
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Block, Entry, Heading, Json, Put
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from simulation.headlog import HeadLogOracle
from simulation.oracle import Promises, require
from tests.driver import Driver
from tests.ported import Store

ENTRIES = 11  # five segments and a tail of one: two runs and a segment
KEYS = ("j", "k", "l")
SOUND: set[bytes] = set()  # states of the store that were read already, in any test
UNBOUNDED = 1 << 30
LEASE_S = Pace().lease_s
SMALL = Limits(memory_bytes=UNBOUNDED)
AT_PACE = replace(SMALL, compaction_bytes=UNBOUNDED)
SHAPE = Shape(seal_entries=2, segments_per_run=2, page_children=2, page_bytes=64)
EMPTY = Head(Heading(shape=SHAPE), [])


def entry_of(slot: int) -> Entry:
    """An entry with a message for two of the keys."""
    written = _keys_of(slot)
    firsts = {key: sum(key in _keys_of(lower) for lower in range(slot)) for key in written}
    appends: dict[str, Block] = {key: (firsts[key], [f"{slot}{key}"]) for key in written}
    return Entry(f"w{slot % 2}", slot, appends, {written[0]: slot})


def _keys_of(slot: int) -> tuple[str, str]:
    return KEYS[slot % 3], KEYS[(slot + 1) % 3]


def messages_of(entries: int) -> dict[str, list[Json]]:
    """What every key holds after so many entries."""
    messages: dict[str, list[Json]] = {}
    for slot in range(entries):
        for key, (_, msgs) in entry_of(slot).appends.items():
            messages.setdefault(key, []).extend(msgs)
    return messages


def reader_of(store: Store, bytes_max: int = UNBOUNDED) -> tuple[Driver, Replica]:
    """A node that only reads, and has read nothing yet."""
    driver = Driver(store.apply)
    limits = replace(SMALL, memory_bytes=bytes_max)
    return driver, Replica(driver.clock, "reader", [], limits, founding=SHAPE)


def log_of(driver: Driver, replica: Replica) -> dict[str, list[Any]]:
    """All messages of a replica's view, from memory or read back."""
    memory = Memory(replica)
    log: dict[str, list[Any]] = {}
    for key in KEYS:
        while found := driver.call(memory.read(key, at := len(log.get(key, ())))):
            assert [offset for offset, _ in found] == [*range(at, at + len(found))]
            log.setdefault(key, []).extend(msg for _, msg in found)
    return log


class JudgedStore(Store):
    """A store whose oracle judges every change; after each, a fresh reader must find the whole log."""

    def __init__(self, entries: int = ENTRIES) -> None:
        super().__init__(self._judge)
        self.oracle = HeadLogOracle(Promises())
        self.entries = 0
        self._grows = False
        self._changes = 0
        self.grow_to(entries)

    def grow_to(self, entries: int) -> None:
        """Append and seal as committers do."""
        self._grows = True
        value = self.registers.get(HEAD)
        log: Head = head_of(value) if value else EMPTY
        for slot in range(self.entries, entries):
            if log.full:
                segment = Segment(log.base, log.tail)
                self.apply(Put(segment_name(log.sealed), segment.value))
            log = log.with_entries([self._sent(entry_of(slot))], 1, "n9", len(log.tail))
            self.apply(Put(HEAD, log.value))
        self.entries = entries
        self._grows = False

    def require_compacted(self) -> None:
        """All that can be is in runs, and nothing else is left."""
        index = index_of(self.registers[COMPACTED])
        runs = sum(name.startswith("run/") for name in self.registers)
        segments = (self.entries - 1) // SHAPE.seal_entries
        assert runs == segments // SHAPE.segments_per_run
        assert index.cursor == index.sealed == SHAPE.segments_per_run * runs
        assert max(Counter(each.level for each in index.listed).values()) <= SHAPE.page_children

    def lose(self, *registers: str) -> None:
        """They are gone; no fresh reader looks any more."""
        self._grows = True
        for register in registers:
            del self.cells[register]

    def _sent(self, entry: Entry) -> Entry:
        for key, (_, msgs) in entry.appends.items():
            for msg in msgs:
                self.oracle.asked({"type": "send", "key": key, "msg": msg})
        self.oracle.asked({"type": "commit_offsets", "offsets": entry.commits})
        return entry

    def _judge(self, register: str, old: Any, new: Any) -> None:
        # Each worker has a clock of its own, so the time for which a claim stood cannot be judged here.
        self._changes += 1
        self.oracle.changed(register, old, new, self._changes * LEASE_S)
        if not self._grows and (state := orjson.dumps(self.registers)) not in SOUND:
            driver, replica = reader_of(self.copy())
            driver.call(replica.refresh())
            whole = log_of(driver, replica) == messages_of(self.entries)
            require(whole, "CommittedReadable", f"after {register} became {new}")
            SOUND.add(state)


class Worker(Driver):
    """A node that compacts whatever it can."""

    def __init__(
        self, store: Store, name: str, shape: Shape = SHAPE, limits: Limits = SMALL
    ) -> None:
        super().__init__(store.apply)
        replica = Replica(self.clock, name, [], limits, founding=shape)
        self.call(replica.refresh())
        self.start(Compactor(self.clock, replica, name, Pace()).consider())

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
        """Crash: what it asked may arrive, and nobody waits for the answers."""
        self.late += [call.op for call in self.calls]
        self.calls.clear()
