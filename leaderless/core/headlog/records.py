"""What the registers of the log hold, as typed values, and what peers show of them.

    head          {state, epoch, version, by, sealed, base, size, shape, entries}
    segment/S     {base, entries}                                the S-th sealed tail; never changes
    run/FIRST-LAST  {base, end, keys: {key: block}, commits, writers: {writer: [seq, {key: first_offset}]},
                     times: {key: [[first_offset, time], ...]}}
    entry         [writer, seq, {key: block}, {key: committed_offset}, time]
    block         [first_offset, [msg, ...]]

`leaderless.core.headlog.index` has the registers that list runs.

Each value is decoded and checked once, at the edge where it comes in; behind the edge its type says what it
is. A decoder raises `Misfit` for a value that no node can have written, and the caller takes that for no
answer. What a decoder cannot see, because it depends on the log before it, the view asserts when it folds.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from reprlib import repr as brief
from typing import Any, NamedTuple

from leaderless.core.coordination import (
    COUNT_END,
    InvariantBroken,
    Json,
    Misfit,
    count_of,
    is_deleted,
)
from leaderless.core.decoding import (
    KEY_BYTES_MAX,
    KNOWN,
    Decoder,
    bounded,
    decoder,
    record,
    require_keys,
)
from leaderless.core.messages import Block, Entry, Heading, Held, Offsets, Times
from leaderless.core.shape import NAMES, Shape

HEAD = "head"
ENTRY_BYTES = 48  # about what an entry's names and brackets take
OPEN, FENCED = "open", "fenced"

Writers = dict[str, tuple[int, Offsets]]  # of each its newest batch: the seq, and its first offsets


class Head:
    """A value of the head register: its heading, and the entries of slots `base`, `base + 1`, ...

    A tail is *full* when it has what the log's shape says (`seal_bytes`, `seal_entries`). That is a function of
    the head alone, so all processes agree. Nothing is added to a full tail, and any process may write its
    segment. A batch larger than a tail still fits: it fills one alone.

    `epoch`, `version`, `sealed`, `base` and `shape` are those of the heading, `end` is the slot after the
    newest entry, and `fenced` says whether appends are refused. Nothing of a head changes. `value_at_hand`: its
    `value`, if it was read or made already.
    """

    __slots__ = (
        "base",
        "end",
        "epoch",
        "fenced",
        "full",
        "heading",
        "sealed",
        "shape",
        "tail",
        "value_at_hand",
        "version",
    )
    epoch: int
    version: int
    sealed: int
    base: int
    shape: Shape

    def __init__(
        self, heading: Heading, tail: list[Entry], value: dict[str, Json] | None = None
    ) -> None:
        self.heading: Heading = heading
        self.tail: list[Entry] = tail
        state, self.epoch, self.version, _, self.sealed, self.base, size, self.shape = heading
        self.end: int = self.base + len(tail)
        self.fenced: bool = state == FENCED
        self.full: bool = size >= self.shape.seal_bytes or len(tail) >= self.shape.seal_entries
        self.value_at_hand: dict[str, Json] | None = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Head) and (self.heading, self.tail) == (other.heading, other.tail)

    def __hash__(self) -> int:
        return hash(self.heading)

    def __repr__(self) -> str:
        return f"Head({self.heading}, {self.tail})"

    @property
    def value(self) -> dict[str, Json] | None:
        """What the register holds, made when it is first needed; None before the first change."""
        if self.value_at_hand is None and self.heading.version:
            self.value_at_hand = value_of_heading(self.heading)
            self.value_at_hand["entries"] = [entry.value for entry in self.tail]
        return self.value_at_hand

    def found_as(self, read: "Head") -> None:
        """Take the value of this very head as it was `read`: it may have names of which no peer tells."""
        value, known = read.value_at_hand, self.value_at_hand
        if value and (known is None or value.keys() != known.keys()) and read == self:
            self.value_at_hand = value

    def with_entries(self, entries: Sequence[Entry], size: int, by: str, kept: int = 0) -> "Head":
        """The head after `entries`.

        `kept`: how many entries of a full tail its segment holds, counted from the first one. Exactly those
        leave the head.
        """
        size += ENTRY_BYTES * len(entries)
        if self.full:
            rest = self.tail[kept:]
            size += self.heading.size * len(rest) // len(self.tail)
            sealed, base = self.sealed + 1, self.base + kept
            moved = self._next(by)._replace(sealed=sealed, base=base, size=size)
            return Head(moved, [*rest, *entries])
        head = Head(self._next(by, self.heading.size + size), [*self.tail, *entries])
        if self.value_at_hand is not None:  # most of it is made already
            tail = self.value_at_hand["entries"]
            assert isinstance(tail, list), "a register holds its entries as a list"
            head.value_at_hand = self.value_at_hand | {
                "version": head.version,
                "by": by,
                "size": head.heading.size,
                "entries": [*tail, *[entry.value for entry in entries]],
            }
        return head

    def with_state(self, state: str, by: str) -> "Head":
        """The head fenced or open, in a new epoch."""
        return Head(self._next(by)._replace(state=state, epoch=self.epoch + 1), self.tail)

    def _next(self, by: str, size: int | None = None) -> Heading:
        """The heading after a change by a node."""
        state, epoch, version, _, sealed, base, known, shape = self.heading
        size = known if size is None else size
        return Heading(state, epoch, version + 1, by, sealed, base, size, shape)


EMPTY = Head(Heading(), [])


def value_of_heading(heading: Heading) -> dict[str, Json]:
    """A head's fields without its tail, as registers and peers hold it."""
    values = [*_values_of(heading.shape)]
    return heading._asdict() | {"shape": values if values[-1] != "none" else values[:-1]}


_values_of = attrgetter(*NAMES)


def require_after(before: Head, after: Head) -> None:
    """What was `before` may be `after`, at once or later: a fenced log grows in a new epoch at the earliest.

    Raises `InvariantBroken`.
    """
    has_grown = before.fenced and after.end != before.end
    if (after.epoch, not has_grown) < (before.epoch, True):
        raise InvariantBroken(f"NoAppendWhileFenced: {before} became {after}")


class Segment(NamedTuple):
    """A full tail, from slot `base` on."""

    base: int
    entries: list[Entry]

    @property
    def end(self) -> int:
        """The slot after its last entry."""
        return self.base + len(self.entries)

    @property
    def value(self) -> dict[str, Json]:
        """As registers hold it."""
        return {"base": self.base, "entries": [entry.value for entry in self.entries]}


class Run(NamedTuple):
    """Slots `base` to `end` - 1, compacted: the messages of each key stand together.

    `writers` tells of each writer's newest batch in the run where it is: a node that slept until its batch
    was compacted still learns its offsets. `times`: of each key that has some, those that differ from the
    one before.
    """

    base: int
    end: int
    keys: dict[str, Block]
    commits: Offsets
    writers: Writers
    times: dict[str, Times] = {}  # noqa: RUF012

    @property
    def value(self) -> dict[str, Json]:
        """As registers hold it."""
        fields = self._asdict()
        if not self.times:
            del fields["times"]
        return fields

    def block(self, key: str) -> Held:
        """What it has of a key."""
        return *self.keys[key], self.times.get(key, [])

    def ranges(self) -> Iterator[tuple[str, int, int]]:
        """Of each key its first offset here, and the one after its last."""
        return ((key, first, first + len(msgs)) for key, (first, msgs) in self.keys.items())

    def holds(self, key: str, offset: int) -> bool:
        """Whether an offset of a key is in the run."""
        first, msgs = self.keys.get(key, (0, ()))
        return first <= offset < first + len(msgs)


def rest_of(head: Head, end: int) -> Segment:
    """The tail of a head without what an index has, which ends before slot `end` and may be newer."""
    base = max(head.base, end)
    return Segment(base, head.tail[base - head.base :])


def segment_name(sealed: int) -> str:
    """The register of a sealed segment."""
    return f"segment/{sealed}"


def merge(segments: Sequence[Segment]) -> Run:
    """The run of consecutive segments: a function of them alone, so that every node makes the same.

    Raises `InvariantBroken` for segments that are not consecutive.
    """
    for one, other in pairwise(segments):
        if one.end != other.base:
            raise InvariantBroken(
                f"IndexMatchesRuns: a segment of slot {other.base} after {one.base}"
            )
    keys: dict[str, Block] = {}
    commits: Offsets = {}
    writers: Writers = {}
    times: dict[str, Times] = {}
    for entry in (entry for segment in segments for entry in segment.entries):
        writers[entry.writer] = entry.seq, {key: at for key, (at, _) in entry.appends.items()}
        for key, (first, msgs) in entry.appends.items():
            keys.setdefault(key, (first, []))[1].extend(msgs)
            if entry.time is not None:
                known = times.setdefault(key, [])
                if not known or known[-1][1] != entry.time:
                    known.append((first, entry.time))
        for key, offset in entry.commits.items():
            commits[key] = max(offset, commits.get(key, offset))
    return Run(segments[0].base, segments[-1].end, keys, commits, writers, times)


# ---------------------------------------------------------------- decoders


def head_of(value: Any, known: Head = EMPTY) -> Head:
    """The head in a register's value. The entries that a `known` one begins with are not decoded again."""
    heading, entries = heading_of(value), value.get("entries")
    tail: list[Entry] = []
    if known.value_at_hand and known.base == heading.base and type(entries) is list:
        common: Any = known.value_at_hand["entries"]
        if entries[: len(common)] == common:
            tail, entries = known.tail, entries[len(common) :]
    return Head(heading, [*tail, *entries_of(entries)], value)


def shape_of(value: object) -> Shape:
    """The shape in a head."""
    if isinstance(value, list) and len(NAMES) - len(value) in (0, 1):
        try:
            return _shape(tuple(value))
        except (TypeError, ValueError) as error:
            raise Misfit(f"a shape that cannot be: {error}") from None
    raise Misfit(f"an unknown shape: {brief(value)}")


@lru_cache
def _shape(values: tuple[Any, ...]) -> Shape:
    return Shape(*values)


# Each process decodes every entry: a comparison of classes costs half of what a pattern or `isinstance` does,
# and a call as much as the rest.


def entry_of(value: Any) -> Entry:
    """One entry."""
    if type(value) is list and 4 <= len(value) <= 5:
        writer, seq, appends, commits = value[:4]
        if type(writer) is str and type(seq) is int and 0 <= seq < COUNT_END:
            time = count_of(value[4]) if len(value) == 5 else None
            offsets = commits if commits == {} else offsets_of(commits)
            return Entry(writer, seq, blocks_of(appends), offsets, time)
    raise Misfit(f"no entry: {brief(value)}")


def block_of(value: Any) -> Block:
    """Messages of one key, and the offset of the first."""
    if type(value) is list and len(value) == 2:
        first, msgs = value
        if type(first) is int and 0 <= first < COUNT_END and type(msgs) is list and msgs:
            return first, msgs
    raise Misfit(f"no block of messages: {brief(value)}")


def blocks_of(value: Any) -> dict[str, Block]:
    """Blocks by key."""
    if type(value) is not dict:
        raise Misfit(f"no blocks by key: {brief(value)}")
    blocks = {}
    for key, block in value.items():
        if len(key) > KEY_BYTES_MAX or not key.isascii():
            require_keys([key])
        blocks[key] = block_of(block)
    return blocks


_INTEGERS = {int}  # a bool is an int to isinstance


def offsets_of(value: Any) -> Offsets:
    """Offsets by key."""
    if value == {}:
        return {}
    if type(value) is dict and {*map(type, (offsets := value.values()))} == _INTEGERS:
        require_keys(value)
        if 0 <= min(offsets) <= max(offsets) < COUNT_END:
            return value
    raise Misfit(f"offsets are numbers from 0 to 2^63 - 1, by key: {brief(value)}")


def segment_of(value: Any) -> Segment | None:
    """What a segment's register holds; None: it was deleted."""
    return None if is_deleted(value) else _segment_of(value)


def slice_of(value: Json) -> Held | int:
    """A slice of a run: messages of one key; or the key's first offset, if the slice was deleted before it."""
    match value:
        case {"earliest": earliest}:
            return count_of(earliest)
        case [first, msgs, times]:
            return *block_of([first, msgs]), _times_of(times)
    return *block_of(value), []


KNOWN.update({Shape: shape_of, Entry: entry_of, Block: block_of, Offsets: offsets_of})
# Above a message: the list, an entry, its blocks, a block, messages; the run, its keys, a block, messages.
entries_of: Decoder[list[Entry]] = bounded(decoder(list[Entry]), above=5)
KNOWN.update({list[Entry]: entries_of, dict[str, Block]: blocks_of})
heading_of: Decoder[Heading] = record(Heading, lambda heading: heading.state in (OPEN, FENCED))
_times_of = decoder(Times)
run_of: Decoder[Run] = bounded(record(Run, absent={"times": {}}), above=4)  # of a register's value
_segment_of = record(Segment)
