"""Reads runs and pages back from the store, few at a time, and keeps the last used ones in memory.

None of them ever changes, so what was read once holds. An older index is a valid one for the slots below its
end until a store deletes a run that has a page above it (`Replica.unless_old`).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from leaderless.core.coordination import InvariantBroken, StoreSilent, read_as
from leaderless.core.headlog.index import Holding, Index, IndexEntry, Page, Part, decode_part
from leaderless.core.headlog.records import Run, slice_of
from leaderless.core.headlog.view import TIME_BYTES, weight_of
from leaderless.core.messages import Held
from leaderless.core.process import Process, Signal, Spawn, Wait, gather, notifying

T = TypeVar("T")
READS_AT_ONCE = 8  # more of them hide a long round trip, and take memory
SLICED_READS_AT_ONCE = 16  # of runs without their messages, and of pages: the store may be far
KEY_BYTES, NUMBER_BYTES = 300, 40  # about what a key takes in memory, and a number


def windows(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in their order, up to `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


class Truncated(Exception):
    """What is asked for was deleted by a retention; the argument is the first offset that the key has."""

    def __init__(self, earliest: int) -> None:
        super().__init__(f"the key begins at {earliest}")
        self.earliest = earliest


class Archive:
    """The runs and pages that one node has read, in at most `room()` bytes of memory, about.

    `index` is the newest index that this node has read. `sliced`: see `Shape`. `at_once`: reads at once.
    `ahead_bytes` of runs, of `run_bytes` each, are read before a reader needs them that goes through the log in
    order. Runs take of the room; of slices the store keeps so many bytes.
    """

    def __init__(
        self,
        room: Callable[[], int],
        sliced: bool = False,
        ahead_bytes: int = 0,
        run_bytes: int = 1,
    ) -> None:
        self.index: Index = Index()
        self._sliced = sliced
        self.at_once = SLICED_READS_AT_ONCE if sliced else READS_AT_ONCE
        self._ahead = min(ahead_bytes // run_bytes, self.at_once // 2)
        self._ahead_bytes = ahead_bytes
        self._run_bytes = 1  # in memory, of the largest run, or slice of one, that was read
        self._room = room
        # The last used one at the end.
        self._kept: OrderedDict[str, tuple[Part, int]] = OrderedDict()
        self._reading: dict[str, Signal] = {}
        self.bytes: int = 0

    def learn(self, index: Index) -> None:
        """Take an index that stood in the store, unless a newer one is known.

        Raises `InvariantBroken` when of the two neither may have become the other.
        """
        older, newer = sorted((self.index, index), key=lambda one: (one.epoch, one.end, one.cursor))
        newer.require_after(older)
        self.index = newer

    def read(self, register: str, reading: Process[Part] | None = None) -> Process[Part]:
        """What a register of the index holds. Raises `StoreSilent`, `InvariantBroken`.

        `reading`: reads what is kept under that name; None: the register.
        """
        while (kept := self._kept.get(register)) is None:
            if register in self._reading:
                yield Wait(self._reading[register])
            elif len(self._reading) >= self.at_once:
                yield Wait(next(iter(self._reading.values())))
            else:
                done = self._reading[register] = Signal()
                return (yield from notifying(done, self._fetch(register, reading)))
        self._kept.move_to_end(register)
        return kept[0]

    def find(self, key: str, offset: int, end: int) -> Process[Held]:
        """The block of a key that holds `offset`, which is below `end`, the key's end in runs.

        Raises `StoreSilent`, `Truncated`; `InvariantBroken` when no run has the offset.
        """
        found = yield from self._locate(key, offset, end)
        if not isinstance(found, Holding):
            return found
        if self._sliced:
            return (yield from self._read_slice(found.listed.slice_of(key, offset)))
        run = yield from self._part_of(found.listed, key)
        if not isinstance(run, Run):
            raise InvariantBroken(f"IndexMatchesRuns: {found.listed} is no run")
        return run.block(key)

    def read_ahead(self, key: str, offset: int, end: int, readers: int) -> Process[None]:
        """Read the next runs of a key from `offset` on, which is below `end`, before anybody asks for them.

        `readers`: so many share the room. What is read ahead of one must not push out what another one needs.
        What goes wrong is nobody's yet: who needs it will ask again.
        """
        with suppress(StoreSilent, InvariantBroken, Truncated):
            held = readers * self._run_bytes
            left = self._ahead_bytes if self._sliced else self._room() - held
            for _ in range(min(self._ahead, left // held)):
                if offset >= end:
                    return
                found = yield from self._locate(key, offset, end)
                if isinstance(found, Holding) and not self._sliced:
                    yield Spawn(self._try(self._part_of(found.listed, key)))
                    offset = found.end
                    continue
                if isinstance(found, Holding):  # this slice says where the next one begins
                    found = yield from self._read_slice(found.listed.slice_of(key, offset))
                offset = found[0] + len(found[1])

    def _try(self, reading: Process[Part]) -> Process[None]:
        with suppress(StoreSilent, InvariantBroken):
            yield from reading

    def _locate(self, key: str, offset: int, end: int) -> Process[Holding | Held]:
        """Which run of a page holds an offset of a key; the block, where it is in a run of no page."""
        listed = self.index.listed  # the nearer side first
        ordered = listed if 2 * offset < end else listed[::-1]
        for some in windows(ordered, self.at_once):
            for part in (yield from gather([self._part_of(each, key) for each in some])):
                if part.holds(key, offset):
                    return (yield from self._descend(part, key, offset))
        raise InvariantBroken(f"CommittedReadable: no run holds {offset} of key {key!r}")

    def _descend(self, part: Part, key: str, offset: int) -> Process[Holding | Held]:
        while isinstance(part, Page):
            holding = part.holding_of(key, offset)
            if not holding.listed.level:
                return holding
            part = yield from self._part_of(holding.listed, key)
        return part.block(key)

    def read_all(self, registers: Iterable[str]) -> Process[list[Part]]:
        """What these registers hold, read side by side."""
        return (yield from gather([self.read(register) for register in registers]))

    def trim(self) -> None:
        """Forget what was not used for longest, all but the newest, until there is room."""
        room = self._room()
        while self.bytes > room and len(self._kept) > 1:
            _, (_, size) = self._kept.popitem(last=False)
            self.bytes -= size

    def _part_of(self, listed: IndexEntry, key: str) -> Process[Part]:
        """The part of a run or page in which a key stands. Raises `StoreSilent`, `InvariantBroken`."""
        part = yield from self.read(register := listed.register_of(key))
        if (part.base, part.end) != (listed.base, listed.end):
            held = f"{register} has slots {part.base} to {part.end - 1}"
            raise InvariantBroken(f"IndexMatchesRuns: {held}, listed is {listed}")
        return part

    def _read_slice(self, register: str) -> Process[Held]:
        found = yield from read_as(register, slice_of)
        if found is None:
            raise InvariantBroken(f"CommittedReadable: {register} is missing")
        if isinstance(found, int):
            raise Truncated(found)
        self._run_bytes = max(self._run_bytes, weight_of(found[1]))
        return found

    def _fetch(self, register: str, reading: Process[Part] | None) -> Process[Part]:
        try:
            found = yield from reading or read_as(register, decode_part)
        finally:
            del self._reading[register]
        if found is None:
            raise InvariantBroken(f"CommittedReadable: {register} is missing")
        self.keep(register, found)
        return found

    def keep(self, register: str, part: Part) -> None:
        """Take what a register of the index is known to hold, as if it was read."""
        size = _memory_of(part)
        if isinstance(part, Run):
            self._run_bytes = max(self._run_bytes, size)
        self._kept[register] = part, size
        self.bytes += size
        self.trim()


def _memory_of(part: Part) -> int:
    """About the bytes that a run or a page takes in memory."""
    keys = KEY_BYTES * len(part.keys)
    if isinstance(part, Page):
        return keys + NUMBER_BYTES * sum(map(len, part.keys.values()))
    times = TIME_BYTES * sum(map(len, part.times.values()))
    return keys + times + sum(weight_of(msgs) for _, msgs in part.keys.values())
