"""The laws of the head: how the log grows, and what the head may let go of."""

from collections.abc import Sequence
from typing import Any

from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.records import segment_name
from leaderless.library.laws.rules import Order, raising, require

Entry = Sequence[Any]  # [writer, seq, {key: [first_offset, [msg, ...]]}, {key: committed_offset}]
RECENT, WHOLE_TAIL_EVERY = 8, 16  # entries that are compared in each head, and all of them in some


class HeadLaw:
    """The log as the head has let it grow, from the state that it began with.

    `tail`: the entries of slots `base` and on. `commits[key]`: the slots whose entries raised the committed
    offset of a key, each with the offset.
    """

    def __init__(self) -> None:
        self.version = self.epoch = self.sealed = self.base = 0
        self.state = "open"
        self.shape: Any = None
        self.tail: list[Entry] = []
        self.order = Order()
        self.commits: dict[str, list[tuple[int, int]]] = {}

    @property
    def end(self) -> int:
        """The slot after the newest entry."""
        return self.base + len(self.tail)

    def begin(self, value: dict[str, Any]) -> None:
        """Take the head as it stands, when all that is before it is folded."""
        self._heading(value)
        self.sealed = value["sealed"]
        self.fold(value["base"], entries_in(value))

    def fold(self, base: int, entries: list[Entry]) -> None:
        """Take entries from slot `base` on, such as those of a segment, when all before them is folded."""
        self.base, self.tail = base, []
        self._grow(entries)

    def changed(self, new: Any, objects: dict[str, Any]) -> list[Entry]:
        """The entries that a new head adds; `objects` has the segments."""
        require(bool(new), "HeadNeverReturns", "the head was deleted")
        version = new["version"]
        text = f"version {version} after {self.version}"
        require(version == self.version + 1, "HeadNeverReturns", text)
        entries, left = entries_in(new), self._leaving(new, objects)
        kept = len(self.tail) - left
        # All of a long tail for each change would be quadratic. A segment is compared as a whole.
        since = 0 if left or version % WHOLE_TAIL_EVERY == 0 else max(0, kept - RECENT)
        same = [*entries[since:kept]] == self.tail[left + since :]
        text = f"slots {new['base'] + since} to {self.end - 1} are not as they were"
        require(same, "HeadNeverReturns" if len(entries) >= kept else "CommittedReadable", text)
        added = entries[kept:]
        self._require_epoch(new, added)
        self._require_shape(new)
        self._heading(new)
        self.base, self.sealed = new["base"], new["sealed"]
        del self.tail[:left]
        self._grow(added)
        return added

    def require_segment(self, number: int, new: dict[str, Any]) -> None:
        """A new segment holds the first entries of the tail."""
        entries = [*new["entries"]]
        text = f"segment {number} of slot {new['base']} is made when {self.sealed} is next, of {self.base}"
        is_next = (number, new["base"]) == (self.sealed, self.base)
        require(is_next and bool(entries), "SegmentsImmutable", text)
        same = entries == self.tail[: len(entries)]
        text = f"segment {number} has {len(entries)} entries that the tail does not begin with"
        require(same, "SegmentsImmutable", text)

    def _leaving(self, new: dict[str, Any], objects: dict[str, Any]) -> int:
        """How many entries the head lets go of: those that the next segment holds."""
        if new["sealed"] == self.sealed:
            text = f"base {self.base} became {new['base']}, and no segment was sealed"
            require(new["base"] == self.base, "CommittedReadable", text)
            return 0
        text = f"segment {new['sealed']} comes next, after {self.sealed}"
        require(new["sealed"] == self.sealed + 1, "CommittedReadable", text)
        segment = objects.get(segment_name(self.sealed))
        text = f"the head lets go of segment {self.sealed}, which is not there"
        require(segment not in (None, TOMBSTONE), "CommittedReadable", text)
        assert segment is not None
        held = [*segment["entries"]]
        text = (
            f"{new['base'] - self.base} entries leave, and segment {self.sealed} holds {len(held)}"
        )
        is_held = new["base"] == self.base + len(held) and held == self.tail[: len(held)]
        require(is_held, "CommittedReadable", text)
        return len(held)

    def _require_epoch(self, new: dict[str, Any], added: list[Entry]) -> None:
        epoch, state = new["epoch"], new["state"]
        rises = epoch > self.epoch or (epoch, state) == (self.epoch, self.state)
        text = f"{state} in epoch {epoch}, after {self.state} in epoch {self.epoch}"
        require(rises, "NoAppendWhileFenced", text)
        closed = self.state == "fenced" or epoch != self.epoch
        require(not (added and closed), "NoAppendWhileFenced", text, "with", len(added), "batches")

    def _require_shape(self, new: dict[str, Any]) -> None:
        """The shape comes once: with the log, or into an old one in a new epoch."""
        shape = new.get("shape")
        comes = self.shape is None and (not self.version or new["epoch"] > self.epoch)
        text = f"{self.shape} became {shape} in epoch {new['epoch']}"
        require(shape == self.shape or comes, "ShapeNeverChanges", text)

    def _heading(self, new: dict[str, Any]) -> None:
        self.version, self.epoch, self.state = new["version"], new["epoch"], new["state"]
        self.shape = new.get("shape")

    def _grow(self, added: list[Entry]) -> None:
        for slot, (writer, seq, appends, committed) in enumerate(added, self.end):
            blocks = ((key, first, len(messages)) for key, (first, messages) in appends.items())
            self.order.take_blocks(blocks, raising)
            self.order.take_batches([(writer, seq)], raising)
            self.note_commits(slot, committed)
        self.tail += added

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


def entries_in(head: dict[str, Any]) -> list[Entry]:
    """The entries of a head; logs of an older release call them `tail`."""
    entries: list[Entry] = head["entries"] if "entries" in head else head["tail"]
    return entries
