"""A node's view: the log's entries folded, always a prefix of the log.

The fold asserts the invariants that it can see, by their names in `design.md` and in the models.
"""

from collections.abc import Iterable
from math import inf
from typing import Any

from leaderless.core.coordination import ceiling
from leaderless.core.headlog.records import Run
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry, Offsets


class InvariantBroken(AssertionError):
    """The log is not what it must be; the text begins with the invariant's name."""


class Archive:
    """Which register holds the messages that are no longer in memory.

    Per key a sparse index by end offset, looked up by ceiling, as in the Leaderless Log Protocol.
    """

    def __init__(self) -> None:
        self._ends: dict[str, list[int]] = {}
        self._registers: dict[str, list[str]] = {}

    def add(self, key: str, last_offset: int, register: str) -> None:
        """Note that `register` holds the messages of a key up to `last_offset`; in rising order."""
        self._ends.setdefault(key, []).append(last_offset)
        self._registers.setdefault(key, []).append(register)

    def register_of(self, key: str, offset: int) -> str | None:
        """The register with the first message at or after `offset`; None if it is not archived."""
        place = ceiling(self._ends.get(key, ()), offset)
        return None if place is None else self._registers[key][place]


class View:
    """What a node knows of the log.

    `slot`: how many entries are folded; those below `resident` were moved out of memory (`evict`).
    `messages[key]` are the messages from offset `first[key]` on; `bytes` is about what they take.
    `committed[key]` is a committed offset, `writers[writer]` the highest seq of a writer in the log,
    `placed[writer]` is the newest batch of each writer of this node's own: its seq and its first offsets.
    """

    def __init__(self, own: Iterable[str], limits: Limits) -> None:
        self._limits = limits
        self.slot = 0
        self.resident = 0
        self.placed: dict[str, tuple[int, Offsets]] = {writer: (-1, {}) for writer in own}
        self.messages: dict[str, list[Any]] = {}
        self.first: dict[str, int] = {}
        self.bytes = 0
        self.archive = Archive()
        self.committed: dict[str, int] = {}
        self.writers: dict[str, int] = {}
        self._recent: list[Entry] = []

    def fold(self, slot: int, entries: list[Entry]) -> None:
        """Take the entries of slots `slot` and on; those already known are passed over.

        Raises `InvariantBroken`, and takes nothing, when they do not continue the view.
        """
        if slot > self.slot:
            raise InvariantBroken(f"ViewIsPrefix: slot {slot} after {self.slot}")
        new = entries[self.slot - slot :]
        self._require_next(new)
        for entry in new:
            self._fold(entry)
        if len(self._recent) > 2 * (kept := self._limits.recent_entries):
            del self._recent[:-kept]

    def _require_next(self, entries: list[Entry]) -> None:
        """Each batch is new, and each block of messages begins where its key ended."""
        ends: Offsets = {}
        newest: dict[str, int] = {}
        for slot, (writer, seq, appends, _) in enumerate(entries, self.slot):
            if newest.get(writer, self.writers.get(writer, -1)) >= seq:
                raise InvariantBroken(
                    f"AckedExactlyOnce: batch {[writer, seq]} again in slot {slot}"
                )
            newest[writer] = seq
            for key, (first, msgs) in appends.items():
                if first != (end := ends.get(key) or self.end(key)):
                    raise InvariantBroken(f"OffsetsDense: key {key!r} at {first} after {end}")
                ends[key] = first + len(msgs)

    def _fold(self, entry: Entry) -> None:
        writer, seq, appends, commits = entry
        self.writers[writer] = seq
        if writer in self.placed:
            self.placed[writer] = seq, {key: first for key, (first, _) in appends.items()}
        for key, (_, msgs) in appends.items():
            self._extend(key, msgs)
        for key, offset in commits.items():
            if offset > self.committed.get(key, -1):
                self.committed[key] = offset
        self.slot += 1
        self._recent.append(entry)

    def fold_run(self, run: Run) -> None:
        """Take a compacted run that begins at or below the view's end."""
        if run.base > self.slot:
            raise InvariantBroken(f"ViewIsPrefix: run at slot {run.base} after {self.slot}")
        if run.end <= self.slot:
            return
        for key, (first, _) in run.keys.items():
            if first > (end := self.end(key)):
                raise InvariantBroken(f"OffsetsDense: key {key!r} at {first} after {end}")
        for key, (first, msgs) in run.keys.items():
            self._extend(key, msgs[self.end(key) - first :])
        for key, offset in run.commits.items():
            self.committed[key] = max(offset, self.committed.get(key, offset))
        for writer, (seq, placed) in run.writers.items():
            if seq > self.writers.get(writer, -1):
                self.writers[writer] = seq
                if writer in self.placed:
                    self.placed[writer] = seq, placed
        self.slot = run.end
        self._recent.clear()  # they no longer end where the view does

    def contains(self, writer: str, seq: int) -> bool:
        """Whether a batch is in the log; a writer's batches enter it in the order of their seq."""
        return self.writers.get(writer, -1) >= seq

    def since(self, slot: int) -> list[Entry] | None:
        """The entries from `slot` on, None when they are no longer at hand."""
        start = slot - (self.slot - len(self._recent))
        return self._recent[start:] if start >= 0 else None

    def fits_answer(self, entries: list[Entry]) -> bool:
        """Whether entries are few enough bytes for an answer to a peer; a single one always is."""
        blocks = (block for entry in entries for block in entry.appends.values())
        size = sum(_weight(msg) for _, msgs in blocks for msg in msgs)
        return len(entries) <= 1 or size <= self._limits.answer_bytes

    def end(self, key: str) -> int:
        """The next offset of a key."""
        return self.first.get(key, 0) + len(self.messages.get(key, ()))

    def read(self, key: str, offset: int, bytes_max: float = inf) -> list[list[Any]] | None:
        """`[[offset, msg], ...]` from the first message at or after `offset`: a contiguous run.

        None when it would begin below what is in memory. It ends after `bytes_max`, but has one message.
        """
        first = self.first.get(key, 0)
        start = max(0, offset) - first
        if start < 0:
            return None
        msgs = self.messages.get(key, ())[start : start + self._limits.poll_messages]
        return cut([[at, msg] for at, msg in enumerate(msgs, start + first)], bytes_max)

    def evict(self, register: str, run: Run) -> None:
        """Move out of memory what `register` holds, if it is the oldest run that is in memory."""
        if run.base != self.resident or run.end > self.slot:
            return  # another process was faster
        for key, (first, msgs) in run.keys.items():
            end = first + len(msgs)
            log, in_memory = self.messages.get(key, []), self.first.get(key, 0)
            self.bytes -= sum(_weight(msg) for msg in log[: end - in_memory])
            del log[: end - in_memory]
            self.first[key] = end
            self.archive.add(key, end - 1, register)
        self.resident = run.end

    def _extend(self, key: str, msgs: list[Any]) -> None:
        log = self.messages.setdefault(key, [])
        log += msgs
        for msg in msgs:
            self.bytes += _weight(msg)


def cut(pairs: list[list[Any]], bytes_max: float) -> list[list[Any]]:
    """The first of `[[offset, msg], ...]`: one, and further ones while they have `bytes_max` together."""
    size = 0
    for place, (_, msg) in enumerate(pairs):
        size += _weight(msg)
        if size > bytes_max and place:
            return pairs[:place]
    return pairs


def weight_of(pairs: list[list[Any]]) -> int:
    """About the bytes of `[[offset, msg], ...]`."""
    return sum(_weight(msg) for _, msg in pairs)


def _weight(msg: Any) -> int:
    """About the bytes that a message takes in memory."""
    if isinstance(msg, int):
        return 40
    return 64 + (len(msg) if isinstance(msg, str) else 4 * len(str(msg)))
