"""Two steps in place of one (specs/TwoStepAssign), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specs.second.explorer import Model, with_item

EMPTY, WAL, COMPACTED, TOMBSTONE = "empty", "wal", "compacted", "tombstone"


class Writer(NamedTuple):
    """A writer: its phase, the counter as it read it, the offset that it assigned."""

    phase: str
    seen: tuple[int, int] | None
    own: int


IDLE = Writer("idle", None, 0)


class State(NamedTuple):
    """`counter` is (next offset, pending offset or 0); `entries` of the index begin with offset 1."""

    counter: tuple[int, int]
    entries: tuple[str, ...]
    cursor: int
    writers: tuple[Writer, ...]
    compactor: str
    was_readable: frozenset[int]


@dataclass(frozen=True)
class TwoStepAssign(Model[State]):
    """The repaired protocol; each flag is a broken variant of the manifest.

    Compaction merges the offsets from 1 to `range_last`.
    """

    writers: int
    max_offset: int
    range_last: int
    put_always: bool = False
    deleted_for_good: bool = False
    appends_in_turn: bool = False
    compacts_in_turn: bool = False
    nothing_pending: bool = False
    cursor_too_far: bool = False

    def initial(self) -> list[State]:
        """An empty log."""
        index = (EMPTY,) * self.max_offset
        return [State((1, 0), index, 1, (IDLE,) * self.writers, "idle", frozenset())]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Writers append in phases and may crash; anybody helps; one compactor works once."""
        for number, writer in enumerate(state.writers):
            for name, after, become in self._writer_steps(state, writer):
                writers = with_item(state.writers, number, become)
                yield name, after._replace(writers=writers)
        pending = state.counter[1]
        if pending and state.entries[pending - 1] == EMPTY:
            yield "Help", self._materialise(state, pending)
        yield from self._compaction(state)

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/TwoStepAssign."""
        return {
            "TypeOK": lambda state: state.cursor in (1, self.range_last + 1),
            "CommittedStaysReadable": lambda s: s.was_readable <= self._readable(s.entries),
            "NoOffsetLost": self._no_offset_lost,
            "CompactedStays": self._compacted_stays,
        }

    def _writer_steps(self, state: State, writer: Writer) -> Iterator[tuple[str, State, Writer]]:
        following = state.counter[0]
        match writer:
            case Writer(phase="idle"):
                busy = self.appends_in_turn and state.compactor not in ("idle", "done")
                if following <= self.max_offset and not busy:
                    yield "ReadCounter", state, Writer("read", state.counter, 0)
                return
            case Writer(phase="read", seen=(_, seen_pending)):
                after = self._materialise(state, seen_pending)
                yield "MaterialisePending", after, writer._replace(phase="ready")
            case Writer(phase="ready", seen=seen) if seen == state.counter:
                left = 0 if self.nothing_pending else following
                after = state._replace(counter=(following + 1, left))
                yield "CasCounter", after, Writer("assigned", seen, following)
            case Writer(phase="ready"):
                yield "CasCounter", state, IDLE
            case Writer(phase="assigned", own=own):
                yield "MaterialiseOwn", self._materialise(state, own), IDLE
        yield "WriterCrash", state, IDLE

    def _compaction(self, state: State) -> Iterator[tuple[str, State]]:
        inside = range(self.range_last)  # positions of the offsets that are merged
        if state.compactor == "idle":
            busy = self.compacts_in_turn and any(w.phase != "idle" for w in state.writers)
            if all(state.entries[i] == WAL for i in inside) and not busy:
                yield "CompactStart", state._replace(compactor="write")
        elif state.compactor == "write":
            after = self._with_index(state, {self.range_last - 1: COMPACTED})
            yield "CompactWrite", after._replace(compactor="delete")
        elif state.compactor == "delete":
            gone = EMPTY if self.deleted_for_good else TOMBSTONE
            after = self._with_index(state, dict.fromkeys(inside[:-1], gone))
            yield "CompactDelete", after._replace(compactor="cursor")
        elif state.compactor == "cursor":
            cursor = self.range_last + (2 if self.cursor_too_far else 1)
            yield "CompactCursor", state._replace(compactor="done", cursor=cursor)

    def _materialise(self, state: State, offset: int) -> State:
        if offset == 0:
            return self._with_index(state, {})
        old = state.entries[offset - 1]
        new = WAL if self.put_always or old == EMPTY else old
        return self._with_index(state, {offset - 1: new})

    def _with_index(self, state: State, changes: Mapping[int, str]) -> State:
        index = tuple(changes.get(i, entry) for i, entry in enumerate(state.entries))
        return state._replace(
            entries=index, was_readable=state.was_readable | self._readable(index)
        )

    def _readable(self, index: tuple[str, ...]) -> frozenset[int]:
        found: set[int] = set()
        for offset, entry in enumerate(index, 1):
            if entry == WAL:
                found.add(offset)
            elif entry == COMPACTED:
                found.update(range(offset - self.range_last + 1, offset + 1))
        return frozenset(found)

    def _no_offset_lost(self, state: State) -> bool:
        following, pending = state.counter
        return set(range(1, following)) - {pending} <= self._readable(state.entries)

    def _compacted_stays(self, state: State) -> bool:
        if state.cursor <= self.range_last:
            return True
        *merged, last = state.entries[: self.range_last]
        return last == COMPACTED and not {WAL, COMPACTED} & set(merged)
