"""The Leaderless Log Protocol as published (specs/LeaderlessLog), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specs.second.explorer import Model, with_item

EMPTY, WAL, COMPACTED, TORN = "empty", "wal", "compacted", "torn"
Rounds = tuple[tuple[int, int], ...]


class Entry(NamedTuple):
    """An entry of the index, at the end offset of what it covers."""

    kind: str = EMPTY
    size: int = 0


class Writer(NamedTuple):
    """A writer: its phase, the end offset that it got, the size of its batch, what its last read gave."""

    phase: str = "idle"
    offset: int = 0
    batch: int = 0
    read: str = "none"


class State(NamedTuple):
    """`entries` of the index and `times` (how often an offset was given out, at most 2) begin with offset 1."""

    entries: tuple[Entry, ...]
    counter: int
    fenced: bool
    cursor: int
    writers: tuple[Writer, ...]
    compactor: str
    turn: int
    times: tuple[int, ...]

    def start(self, end: int) -> int:
        """The first offset that the entry at `end` covers."""
        return end - self.entries[end - 1].size + 1

    def covers(self, offset: int) -> Iterator[int]:
        """The end offsets of the entries that cover an offset."""
        for end in range(offset, len(self.entries) + 1):
            if self.entries[end - 1].kind != EMPTY and self.start(end) <= offset:
                yield end


@dataclass(frozen=True)
class LeaderlessLog(Model[State]):
    """The published protocol; each flag is a variant of the manifest."""

    writers: int
    max_offset: int
    max_batch: int
    rounds: Rounds
    may_compact_repaired: bool = False
    counter_skips: bool = False
    counter_forgets_size: bool = False
    counter_from_zero: bool = False
    counter_from_one: bool = False
    stale_counter: bool = False
    state_ignored: bool = False
    torn_entry: bool = False
    still_wal: bool = False
    nothing_deleted: bool = False
    deleted_from_beginning: bool = False
    cursor_too_far: bool = False
    delete_first: bool = False

    def initial(self) -> list[State]:
        """An empty log that is open."""
        size = self.max_offset
        idle = (Writer(),) * self.writers
        return [State((Entry(),) * size, 1, False, 1, idle, "idle", 0, (0,) * size)]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Writers append and read, the compactor works in three steps, the log is fenced and opened."""
        for number, writer in enumerate(state.writers):
            for name, after, become in self._write(state, writer):
                writers = with_item(state.writers, number, become)
                yield name, after._replace(writers=writers)
        yield from self._compact(state)
        if state.fenced:
            counter = 0 if self.counter_from_zero else 1 if self.counter_from_one else state.counter
            yield "UnfenceLog", state._replace(fenced=False, counter=counter)
        else:
            yield "FenceLog", state._replace(fenced=True)

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/LeaderlessLog."""
        return {
            "TypeOK": self._type_ok,
            "NoOffsetDuplicates": lambda s: all(each.kind != TORN for each in s.entries),
            "MonotonicOffsets": lambda s: s.counter >= 1,
            "FencedRejectsAppends": lambda s: not s.fenced or not self._assigns(s),
            "CompactionPreservesData": self._preserves_data,
            "NoPhantomEntries": self._no_phantoms,
            "CursorConsistency": lambda s: s.cursor <= s.counter,
            "NoOverlappingRanges": lambda s: (
                not any(
                    s.entries[a - 1].kind == s.entries[b - 1].kind == WAL for a, b in _overlaps(s)
                )
            ),
            "OverlapsOnlyWhileCompacting": lambda s: all(
                s.entries[b - 1].kind == COMPACTED and s.start(b) <= s.start(a) and s.cursor <= b
                for a, b in _overlaps(s)
            ),
            "NoReaderError": lambda s: all(each.read != "error" for each in s.writers),
            "SequentialCompactionSafety": lambda s: all(
                s.entries[last - 1].kind == COMPACTED for _, last in self.rounds[: s.turn]
            ),
            "OffsetsAssignedOnce": lambda s: max(s.times) <= 1,
            "AssignedStaysReadable": lambda s: all(
                any(s.covers(offset)) for offset in range(1, s.counter)
            ),
        }

    # ------------------------------------------------------------ writers

    def _write(self, state: State, writer: Writer) -> Iterator[tuple[str, State, Writer]]:
        match writer.phase:
            case "idle":
                if not state.fenced:
                    for count in range(1, self.max_batch + 1):
                        begun = writer._replace(phase="writing", batch=count)
                        yield "StartAppend", state, begun
                for offset in range(1, min(state.counter, self.max_offset + 1)):
                    found = "ok" if any(state.covers(offset)) else "error"
                    yield "ReadEntry", state, writer._replace(read=found)
            case "writing":
                yield "WALWriteSuccess", state, writer._replace(phase="assigning")
                yield "WALWriteFail", state, writer._replace(phase="failed")
            case "assigning":
                yield from self._assign(state, writer)
            case _:
                yield "AppendComplete", state, Writer(read=writer.read)

    def _assign(self, state: State, writer: Writer) -> Iterator[tuple[str, State, Writer]]:
        first = self._counter_seen(state)
        end = first + writer.batch - 1
        fits = end <= self.max_offset
        if fits and (not state.fenced or self.state_ignored):
            times = (
                min(2, each + 1) if first <= offset <= end else each
                for offset, each in enumerate(state.times, 1)
            )
            entry = Entry(TORN if self.torn_entry else WAL, writer.batch)
            after = _with_entries(state, {end: entry})
            after = after._replace(counter=self._counter_after(state, end), times=tuple(times))
            yield "AssignOffset", after, writer._replace(phase="done", offset=end)
        failed = writer._replace(phase="failed")
        if state.fenced:
            yield "AssignOffsetFenced", state, failed
        elif not fits:
            yield "AssignOffsetExhausted", state, failed

    def _counter_seen(self, state: State) -> int:
        stale = self.stale_counter and state.counter > 1 and not state.fenced
        return state.counter - 1 if stale else state.counter

    def _counter_after(self, state: State, end: int) -> int:
        if self.counter_forgets_size:
            return state.counter + 1
        return end + 2 if self.counter_skips else end + 1

    def _assigns(self, state: State) -> bool:
        """Whether an offset can be assigned now."""
        steps = (step for each in state.writers for step in self._write(state, each))
        return any(name == "AssignOffset" for name, *_ in steps)

    # ------------------------------------------------------------ the compactor

    def _compact(self, state: State) -> Iterator[tuple[str, State]]:
        _, last = self.rounds[state.turn]
        match state.compactor:
            case "idle":
                if self._may_compact(state):
                    yield "CompactStart", state._replace(compactor="writing")
                return
            case "done":
                turn = min(state.turn + 1, len(self.rounds) - 1)
                yield "CompactReset", state._replace(compactor="idle", turn=turn)
                return
            case "writing":
                after = self._deleted(state) if self.delete_first else self._written(state)
                yield "CompactWriteCompactedIndex", after._replace(compactor="deleting")
            case "deleting":
                after = self._written(state) if self.delete_first else self._deleted(state)
                yield "CompactDeleteOldEntries", after._replace(compactor="moving")
            case "moving":
                cursor = last + (2 if self.cursor_too_far else 1)
                yield "CompactUpdateCursor", state._replace(compactor="done", cursor=cursor)
        yield "CompactorCrash", state._replace(compactor="idle")

    def _may_compact(self, state: State) -> bool:
        first, last = self.rounds[state.turn]
        inside = range(first, last + 1)
        covered = all(
            any(state.entries[end - 1].kind == WAL for end in state.covers(offset))
            for offset in inside
        ) and all(state.start(o) >= first for o in inside if state.entries[o - 1].kind != EMPTY)
        if not self.may_compact_repaired:
            return covered
        kind = state.entries[last - 1].kind
        return (covered and kind != EMPTY) or (kind == COMPACTED and state.cursor <= last)

    def _written(self, state: State) -> State:
        first, last = self.rounds[state.turn]
        kind = WAL if self.still_wal else COMPACTED
        return _with_entries(state, {last: Entry(kind, last - first + 1)})

    def _deleted(self, state: State) -> State:
        first, last = self.rounds[state.turn]
        begin = 1 if self.deleted_from_beginning else first
        gone = range(0) if self.nothing_deleted else range(begin, last)
        return _with_entries(state, dict.fromkeys(gone, Entry()))

    # ------------------------------------------------------------ laws

    def _type_ok(self, state: State) -> bool:
        known = all(e.kind != TORN and e.size <= self.max_offset for e in state.entries)
        ends = range(1, self.max_offset + 2)
        return known and state.counter in ends and state.cursor in ends

    def _preserves_data(self, state: State) -> bool:
        _, last = self.rounds[state.turn]
        wrote = state.compactor in ("deleting", "moving", "done")
        return not wrote or state.entries[last - 1].kind == COMPACTED

    def _no_phantoms(self, state: State) -> bool:
        first, last = self.rounds[state.turn]
        deleted = state.compactor in ("moving", "done")
        return not deleted or all(
            each.kind == EMPTY for each in state.entries[first - 1 : last - 1]
        )


def _overlaps(state: State) -> Iterator[tuple[int, int]]:
    """Pairs of end offsets whose entries overlap, the lower one first."""
    ends = [end for end, entry in enumerate(state.entries, 1) if entry.kind != EMPTY]
    for place, low in enumerate(ends):
        yield from ((low, high) for high in ends[place + 1 :] if state.start(high) <= low)


def _with_entries(state: State, changes: Mapping[int, Entry]) -> State:
    index = tuple(changes.get(end, entry) for end, entry in enumerate(state.entries, 1))
    return state._replace(entries=index)
