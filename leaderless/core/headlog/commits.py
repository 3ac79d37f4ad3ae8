"""Committed offsets that are durable when they are acknowledged: a few registers, which the nodes share.

    committed/G   {format, slot, offsets: {key: offset}}    what consumers committed, through some nodes

A committed offset needs no place in the order of the log: of two, the higher one holds. So it does not
contend for the head. All that wait at a node go into one compare-and-set of its group's register, which
costs one round trip and two messages. A reader merges all registers by maximum. A fence does not stop it:
that stops appends, not consumers.

How many registers there are stands in the log (`Shape.offset_registers`). It does not follow from the number of
nodes, which may change: who reads fewer registers than others wrote misses what was committed.

A register does not grow with the keys: when it has more than `committed_keys`, its pairs ride in a batch, too,
and one that is in the log is left out at the next write. `slot` tells how much of the log has all that was
left out: a reader whose view is shorter reads on.

Law: each write replaces a value that was read, raises what it has, and leaves out only pairs that are in the
log below its `slot`. Both hold for ever. So a compare-and-set of unknown outcome, also one of a former life,
does no harm whenever it arrives, and it makes no difference which node of the group writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from leaderless.core.coordination import Json, Patience, StoreSilent, read_as
from leaderless.core.decoding import Decoder, record
from leaderless.core.estimates import Company
from leaderless.core.headlog.policy import linger_s
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.writer import Writer
from leaderless.core.messages import Cas, Offsets, Ok
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, call, gather
from leaderless.core.shape import FORMATS, LOG_FORMAT, Shape
from leaderless.core.strategy import Context


class Committed(NamedTuple):
    """What a register holds. What it has not is in the log below `slot`. `rest`: see `record`."""

    slot: int = 0
    offsets: Offsets = {}  # noqa: RUF012 - never changed
    rest: Mapping[str, Json] = {}

    @property
    def value(self) -> dict[str, Json]:
        """As the register holds it."""
        return {"format": LOG_FORMAT, **self.rest, "slot": self.slot, "offsets": {**self.offsets}}


committed_of: Decoder[Committed] = record(Committed, form=FORMATS)  # of a register's value


@dataclass(slots=True, eq=False)
class _Group:
    """Offsets that are written together; `silent`: why they could not be."""

    offsets: Offsets = field(default_factory=dict)
    done: Signal = field(default_factory=Signal)
    silent: StoreSilent | None = None


class DurableCommits:
    """The committed offsets of one node, and of all."""

    def __init__(self, context: Context, replica: Replica, writer: Writer) -> None:
        self._clock = context.clock
        self._keys_max = context.options.limits.committed_keys
        self._pace = context.options.pace
        self._company = Company()
        self._replica = replica
        self._view = replica.view
        self._writer = writer
        node, peers, _ = context.identity
        self._place = sorted(peers).index(node)
        self._held: Committed | None = None  # what the own register has; None: it must be read
        self._known = Committed()  # what it had when it was last known: that is committed for ever
        self._waiting = _Group()
        self._running = False

    def commit(self, offsets: Offsets) -> Process[None]:
        """Return when the offsets, or higher ones, are in the store. Raises `StoreSilent`."""
        if not self._lacking(offsets):
            return
        self._company.arrived(self._clock.now)
        group = self._waiting
        group.offsets = raised(group.offsets, offsets)
        if not self._running:
            self._running = True
            yield Spawn(self._run())
        yield Wait(group.done)
        if group.silent:
            raise group.silent

    def read(self) -> Process[Committed]:
        """All registers of the log, which the replica has read, merged. Raises `StoreSilent`."""
        merged = Committed()
        reads = [read_as(name, committed_of) for name in commit_registers(self._replica.shape)]
        for found in (yield from gather(reads)):
            if found:
                slot = max(merged.slot, found.slot)
                merged = Committed(slot, raised(merged.offsets, found.offsets))
        return merged

    @property
    def held(self) -> Offsets:
        """What the own register has or had, as far as this node knows: all of it is committed."""
        return self._known.offsets

    @property
    def _own(self) -> str:
        registers = commit_registers(self._replica.shape)
        return registers[self._place % len(registers)]

    def _run(self) -> Process[None]:
        try:
            while self._waiting.offsets:
                wait_s = linger_s(self._pace, self._company.per_second(self._clock.now))
                yield Sleep(self._clock.now + wait_s)
                group, self._waiting = self._waiting, _Group()
                try:
                    yield from self._write(group.offsets)
                except StoreSilent as silent:
                    group.silent = silent
                yield Notify(group.done)
        finally:
            self._running = False
            self._company.idle(self._clock.now)

    def _lacking(self, offsets: Offsets) -> Offsets:
        """Those that are neither in the register nor in the log, as far as this node knows."""
        held = self.held
        return {
            key: offset
            for key, offset in self._beyond_log(offsets).items()
            if offset > held.get(key, -1)
        }

    def _beyond_log(self, offsets: Offsets) -> Offsets:
        logged = self._view.committed
        return {key: offset for key, offset in offsets.items() if offset > logged.get(key, -1)}

    def _write(self, offsets: Offsets) -> Process[None]:
        """Raise the register to these offsets. Raises `StoreSilent`."""
        if not self._replica.head.version:
            yield from self._replica.found()  # or another node may make it with fewer registers
        register, patience = self._own, Patience()
        while patience.lasts:
            old = self._held or (yield from read_as(register, committed_of))
            self._held = self._known = held = old or Committed()
            if not (lacking := self._lacking(offsets)):
                return
            new = self._raised(held, lacking)
            outcome = yield from call(Cas(register, old and old.value, new.value, create=not old))
            patience.had(outcome)
            self._held = new if isinstance(outcome, Ok) else None
            if self._held is not None:
                self._known = new
                yield from self._move_into_log(new.offsets)
                return
        raise StoreSilent(f"{register!r} may be raised or not: the store gave no clear answer")

    def _raised(self, held: Committed, offsets: Offsets) -> Committed:
        kept = self._beyond_log(held.offsets)
        slot = held.slot if len(kept) == len(held.offsets) else max(held.slot, self._view.slot)
        return held._replace(slot=slot, offsets=kept | offsets)

    def _move_into_log(self, offsets: Offsets) -> Process[None]:
        """Let pairs of the register ride in batches when they are too many."""
        if len(offsets) > self._keys_max:
            yield from self._writer.commit_offsets(self._beyond_log(offsets))


def raised(offsets: Offsets, more: Offsets) -> Offsets:
    """The higher offset of each key; neither argument is changed."""
    return offsets | {key: at for key, at in more.items() if at > offsets.get(key, at - 1)}


def commit_registers(shape: Shape) -> list[str]:
    """The registers of a log of this shape."""
    return [f"committed/{number}" for number in range(shape.offset_registers)]
