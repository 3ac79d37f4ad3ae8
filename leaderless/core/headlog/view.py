"""A node's view: the log's entries folded, always a prefix of the log.

The fold asserts the invariants that it can see, by their names in `design.md` and in the models.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter

import orjson

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.headlog.outline import Outline
from leaderless.core.limits import Limits
from leaderless.core.messages import Batch, Entry, Offsets, Pairs, Times

SECTIONS = 1024  # of the whole memory; each is forgotten as a whole
ENTRY_BYTES = 400  # about what an entry takes in memory beside its messages
TIME_BYTES = 150  # about what a time takes, and its place
INT_BYTES = 40  # about what an integer takes, and its place in a list
TOKEN = "\0"  # begins the name of a key's token among committed offsets


class Section:
    """Some entries in a row, which are forgotten together.

    `end`: the slot after them; `ends`: those of their keys there; `bytes`: about, in memory.
    """

    __slots__ = ("bytes", "end", "ends")

    def __init__(self) -> None:
        self.bytes: int = 0
        self.end: int = 0
        self.ends: Offsets = {}


class View:
    """What a node knows of the log.

    `slot`: how many entries are folded. `messages[key]` are the messages from offset `first[key]` on; those
    before it are in runs, and were forgotten (`evict`) or never read (`skip_to`). `times[key]` are theirs.
    `bytes` is about what is in memory.
    `committed[key]` is a committed offset, `writers[writer]` the highest seq of a writer in the log,
    `tokens` has the highest token of each key, by its name there (`conditions.token_of`);
    `placed[writer]` is the newest batch of each writer of this node's own: its seq and its first offsets.
    """

    def __init__(self, own: Iterable[str], limits: Limits) -> None:
        self._limits = limits
        self._section_bytes = limits.memory_bytes // SECTIONS
        self.slot: int = 0
        self.placed: dict[str, tuple[int, Offsets]] = {writer: (-1, {}) for writer in own}
        self.messages: dict[str, list[Json]] = {}
        self.times: dict[str, Times] = {}
        self.first: dict[str, int] = {}
        self.bytes: int = 0
        self.committed: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.writers: dict[str, int] = {}
        self._recent: deque[Entry] = deque()
        self._weights: deque[int] = deque()  # of these, in bytes
        self._recent_bytes = 0
        self._sections: deque[Section] = deque()

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
        self._forget_entries()

    def entries_of(self, batches: Sequence[Batch], time: int | None) -> list[Entry]:
        """The entries of batches behind the view: this assigns their offsets, and their `time`.

        Raises `InvariantBroken` unless each is new, and alone of its writer.
        """
        ends: Offsets = {}
        entries: dict[str, Entry] = {}
        for batch in batches:
            writer, seq, _, blocks, commits, _, expected = batch
            if writer in entries or self.writers.get(writer, -1) >= seq:
                raise InvariantBroken(
                    f"AckedExactlyOnce: in the log already, or twice here: {batch}"
                )
            appends = {}
            for key, msgs in blocks.items():
                first = ends[key] if key in ends else self.end(key)
                if expected and expected.get(key, first) != first:
                    raise InvariantBroken(f"ConditionKept: key {key!r} ends at {first}: {batch}")
                appends[key] = first, msgs
                ends[key] = first + len(msgs)
            entries[writer] = Entry(writer, seq, appends, commits, time)
        return [*entries.values()]

    def _forget_entries(self) -> None:
        """Keep the newest entries that may be in an answer to a peer: `answer_bytes`, or a single one."""
        while self._recent_bytes > self._limits.answer_bytes and len(self._recent) > 1:
            self._recent.popleft()
            self._recent_bytes -= self._weights.popleft()

    def _require_next(self, entries: list[Entry]) -> None:
        """Each batch is new, and each block of messages begins where its key ended."""
        ends: Offsets = {}
        newest: dict[str, int] = {}
        for slot, (writer, seq, appends, *_) in enumerate(entries, self.slot):
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
        writer, seq, appends, commits, time = entry
        self.writers[writer] = seq
        if writer in self.placed:
            self.placed[writer] = seq, {key: first for key, (first, _) in appends.items()}
        sections, weight = self._sections, ENTRY_BYTES
        if not sections or sections[-1].bytes >= self._section_bytes:
            sections.append(Section())
        section = sections[-1]
        for key, (first, msgs) in appends.items():
            if key in self.messages:
                self.messages[key] += msgs
            else:
                self.messages[key] = [*msgs]
            section.ends[key] = first + len(msgs)
            if time is not None:
                times = self.times.get(key)
                if times is None:
                    times = self.times[key] = []
                if not times or times[-1][1] != time:
                    times.append((first, time))
                    weight += TIME_BYTES
            for msg in msgs:
                weight += INT_BYTES if type(msg) is int else _weight(msg)
        if commits:
            self._raise(commits)
        self.slot += 1
        section.end = self.slot
        section.bytes += weight
        self.bytes += weight
        self._recent.append(entry)
        self._weights.append(weight)
        self._recent_bytes += weight

    def skip_to(self, outline: Outline) -> None:
        """Go on at the slot of an outline, if that is later: all messages before it are in runs."""
        if outline.slot <= self.slot:
            return
        self.evict(self.slot)
        self.first |= outline.ends
        self._raise(outline.commits)
        for writer, seq in outline.writers.items():
            self.writers[writer] = max(seq, self.writers.get(writer, seq))
        for writer, newest in outline.placed.items():
            if newest[0] > self.placed[writer][0]:
                self.placed[writer] = newest
        self.slot = outline.slot
        self._recent.clear()  # they no longer end where the view does
        self._weights.clear()
        self._recent_bytes = 0

    def _raise(self, commits: Offsets) -> None:
        for name, number in commits.items():
            known = self.tokens if name.startswith(TOKEN) else self.committed
            known[name] = max(number, known.get(name, number))

    def has(self, batch: Batch) -> bool:
        """As `contains`, of a batch."""
        return self.writers.get(batch.writer, -1) >= batch.seq

    def contains(self, writer: str, seq: int) -> bool:
        """Whether a batch is in the log; a writer's batches enter it in the order of their seq."""
        return self.writers.get(writer, -1) >= seq

    def since(self, slot: int) -> list[Entry] | None:
        """The entries from `slot` on, at most `answer_bytes`; None when they are no longer at hand."""
        lacking = max(0, self.slot - slot)
        if lacking > len(self._recent):
            return None
        return [*islice(reversed(self._recent), lacking)][::-1]  # mostly few of many

    def end(self, key: str) -> int:
        """The next offset of a key."""
        return self.first.get(key, 0) + len(self.messages.get(key, ()))

    def fills(self, key: str, offset: int, messages_max: int) -> bool:
        """Whether an answer from `offset` on, of so many messages or `answer_bytes`, ends before the view does.

        Then nothing that the view lacks would be in it. One from runs ends there, for they are below the view.
        """
        msgs, start = self.messages.get(key, ()), max(0, offset) - self.first.get(key, 0)
        if start < 0 or len(msgs) - start >= messages_max:
            return True
        return weight_of(islice(msgs, start, None)) > self._limits.answer_bytes

    def read(self, key: str, offset: int, messages_max: int | None = None) -> Pairs | None:
        """`[[offset, msg], ...]` from the first message at or after `offset`: a contiguous run.

        None when it would begin below what is in memory. `messages_max`: None: `poll_messages`.
        """
        first = self.first.get(key, 0)
        start = max(0, offset) - first
        if start < 0:
            return None
        msgs = self.messages.get(key, ())[
            start : start + (messages_max or self._limits.poll_messages)
        ]
        pairs = [[at, msg] for at, msg in enumerate(msgs, start + first)]
        return timed(pairs, times) if (times := self.times.get(key)) else pairs

    def evict(self, slot: int, bytes_max: int = 0) -> None:
        """Forget the oldest messages, of slots below `slot`, until there are at most `bytes_max`."""
        while self._sections and self._sections[0].end <= slot and self.bytes > bytes_max:
            section = self._sections.popleft()
            self.bytes -= section.bytes
            for key, end in section.ends.items():
                msgs = self.messages[key]
                del msgs[: end - self.first.get(key, 0)]
                self.first[key] = end
                if times := self.times.get(key):
                    del times[: max(0, _place_of(times, end) - 1)]
                if not msgs:
                    del self.messages[key]
                    self.times.pop(key, None)


def cut(pairs: Pairs, bytes_max: int) -> tuple[Pairs, int]:
    """The first of `[[offset, msg], ...]`: one, and further ones while they have `bytes_max` together.

    Then about their bytes; all of `bytes_max` where one did not fit.
    """
    size = 0
    for place, pair in enumerate(pairs):
        msg = pair[1]
        weight = INT_BYTES if type(msg) is int else _weight(msg)
        if size + weight > bytes_max and place:
            return pairs[:place], bytes_max
        size += weight
    return pairs, size


def timed(pairs: Pairs, times: Times) -> Pairs:
    """Messages in a row, each with its time as the last of its list; None: it has none."""
    if not (pairs and times):
        return pairs
    place = _place_of(times, pairs[0][0])
    time = times[place - 1][1] if place else None
    for pair in pairs:
        if place < len(times) and times[place][0] == pair[0]:
            time = times[place][1]
            place += 1
        pair.append(time)
    return pairs


def _place_of(times: Times, offset: int) -> int:
    """The place of the first time that is of later messages than the one at `offset`."""
    return bisect_right(times, offset, key=itemgetter(0))


def require_contiguous(key: str, start: int, run: Pairs) -> None:
    """What a poll answers is every offset from `start` on, as far as it goes. Raises `InvariantBroken`."""
    first, last = run[0][0], run[-1][0]
    if (first, last) != (start, start + len(run) - 1):
        text = f"{len(run)} messages from {first} to {last}, not from {start} on"
        raise InvariantBroken(f"PollContiguous: key {key!r} has {text}")


def weight_of(msgs: Iterable[Json]) -> int:
    """About the bytes of messages."""
    return sum(map(_weight, msgs))


def _weight(msg: Json) -> int:
    """About the bytes that a message takes in memory."""
    if isinstance(msg, int):
        return INT_BYTES
    return 64 + (len(msg) if isinstance(msg, str) else 4 * len(orjson.dumps(msg)))
