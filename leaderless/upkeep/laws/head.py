"""The laws of the head: how the log grows, and what the head may let go of."""

from collections.abc import Mapping, Sequence

from leaderless.core.coordination import Json, Misfit, is_deleted
from leaderless.core.headlog.records import entry_of, heading_of, segment_name, segment_of
from leaderless.core.messages import Entry, Heading
from leaderless.core.shape import Shape
from leaderless.upkeep.laws.rules import (
    Order,
    is_same,
    raising,
    require,
    require_sealing,
    require_shape,
)

RECENT, WHOLE_TAIL_EVERY = 8, 16  # entries that are compared in each head, and all of them in some


class HeadLaw:
    """The log as the head has let it grow.

    `tail`: the entries of slots `base` and on, as registers hold them. `commits[key]`: the slots whose entries
    raised the committed offset of a key, each with the offset. `shape`: what `format` or the head has said.
    """

    def __init__(self) -> None:
        self.version: int = 0
        self.epoch: int = 0
        self.sealed: int = 0
        self.base: int = 0
        self.state: str = "open"
        self.shape: Shape | None = None
        self.tail: list[Json] = []
        self.order: Order = Order()
        self.commits: dict[str, list[tuple[int, int]]] = {}

    @property
    def end(self) -> int:
        """The slot after the newest entry."""
        return self.base + len(self.tail)

    def changed(self, value: Json, objects: Mapping[str, Json]) -> list[Entry]:
        """The entries that a new head adds; `objects` has the segments."""
        require(bool(value), "HeadNeverReturns", "the head was deleted")
        new = heading_of(value)
        version = new.version
        text = f"version {version} after {self.version}"
        require(version == self.version + 1, "HeadNeverReturns", text)
        entries, left = entries_in(value), self._leaving(new, objects)
        kept = len(self.tail) - left
        # All of a long tail for each change would be quadratic. A segment is compared as a whole.
        since = 0 if left or version % WHOLE_TAIL_EVERY == 0 else max(0, kept - RECENT)
        same = is_same(entries[since:kept], self.tail[left + since :])
        text = f"slots {new.base + since} to {self.end - 1} are not as they were"
        require(same, "HeadNeverReturns" if len(entries) >= kept else "CommittedReadable", text)
        added = entries[kept:]
        self._require_epoch(new, len(added))
        require_shape(self.shape, new.shape, raising)
        self._take(new)
        self.base, self.sealed = new.base, new.sealed
        del self.tail[:left]
        return self._grow(added)

    def require_segment(self, number: int, new: Json) -> None:
        """A new segment holds the first entries of the tail."""
        segment = segment_of(new)
        assert segment is not None, "a tombstone is no new segment"
        head = self.sealed, self.base, self.tail
        require_sealing(number, segment.base, entries_in(new), head, raising)

    def _leaving(self, new: Heading, objects: Mapping[str, Json]) -> int:
        """How many entries the head lets go of: those that the next segment holds."""
        if new.sealed == self.sealed:
            text = f"base {self.base} became {new.base}, and no segment was sealed"
            require(new.base == self.base, "CommittedReadable", text)
            return 0
        text = f"segment {new.sealed} comes next, after {self.sealed}"
        require(new.sealed == self.sealed + 1, "CommittedReadable", text)
        segment = objects.get(segment_name(self.sealed))
        text = f"the head lets go of segment {self.sealed}, which is not there"
        require(not (segment is None or is_deleted(segment)), "CommittedReadable", text)
        held = entries_in(segment)
        text = f"{new.base - self.base} entries leave, and segment {self.sealed} holds {len(held)}"
        is_held = new.base == self.base + len(held) and is_same(held, self.tail[: len(held)])
        require(is_held, "CommittedReadable", text)
        return len(held)

    def _require_epoch(self, new: Heading, added: int) -> None:
        epoch, state = new.epoch, new.state
        rises = epoch > self.epoch or (epoch, state) == (self.epoch, self.state)
        text = f"{state} in epoch {epoch}, after {self.state} in epoch {self.epoch}"
        require(rises, "NoAppendWhileFenced", text)
        closed = self.state == "fenced" or epoch != self.epoch
        require(not (added and closed), "NoAppendWhileFenced", text, "with", added, "batches")

    def _take(self, new: Heading) -> None:
        self.version, self.epoch, self.state = new.version, new.epoch, new.state
        self.shape = new.shape

    def _grow(self, values: Sequence[Json]) -> list[Entry]:
        added = [entry_of(value) for value in values]
        for slot, (writer, seq, appends, committed, time) in enumerate(added, self.end):
            blocks = ((key, first, len(messages)) for key, (first, messages) in appends.items())
            self.order.take_blocks(blocks, raising)
            self.order.take_batches([(writer, seq)], raising)
            self.order.take_times([time], raising)
            self.order.take_tokens([(appends, committed)], raising)
            self.note_commits(slot, committed)
        self.tail += values
        return added

    def note_commits(self, slot: int, committed: dict[str, int]) -> None:
        """Committed offsets in the entry of a slot, or in a run that begins there."""
        for key, offset in committed.items():
            known = self.commits.setdefault(key, [])
            if not known or offset > known[-1][1]:
                known.append((slot, offset))

    def committed_below(self, key: str, slot: int) -> int:
        """The committed offset of a key in the log below a slot; -1 for none."""
        below = (offset for at, offset in reversed(self.commits.get(key, [])) if at < slot)
        return next(below, -1)


def entries_in(value: Json) -> list[Json]:
    """The entries of a head or a segment, as it holds them. Raises `Misfit`."""
    match value:
        case {"entries": [*entries]}:
            return entries
    raise Misfit("it has no entries")
