"""What the registers of the log hold, as typed values, and what peers show of them.

    head          {state, epoch, version, by, sealed, base, size, tail}
    segment/S     {base, entries}                                the S-th sealed tail; never changes
    compacted     {epoch, cursor, runs: [{register, first, last, base, end}, ...]}
    run/FIRST-LAST  {base, end, keys: {key: block}, commits, writers: {writer: [seq, {key: first_offset}]}}
    entry         [writer, seq, {key: block}, {key: committed_offset}]
    block         [first_offset, [msg, ...]]

Each value is decoded and checked once, at the edge where it comes in; behind the edge its type says what it
is. A decoder raises `Misfit` for a value that no node can have written, and the caller takes that for no
answer. What a decoder cannot see, because it depends on the log before it, the view asserts when it folds.
"""

from collections.abc import Sequence
from reprlib import repr as brief
from typing import Any, NamedTuple

from leaderless.core.coordination import TOMBSTONE, Misfit
from leaderless.core.limits import Limits
from leaderless.core.messages import Block, Entry, Heading, Offsets

HEAD = "head"
COMPACTED = "compacted"
ENTRY_BYTES = 48  # about what an entry's names and brackets take
FENCED = "fenced"


class Head:
    """A value of the head register: its heading, and the entries of slots `base`, `base + 1`, ...

    A tail whose `size` reached `seal_bytes` (or that has `seal_entries`) is *full*: it never changes any
    more, so any node may write its segment, more than once. A batch larger than that still fits:
    it fills a tail alone.
    """

    __slots__ = ("_value", "heading", "tail")

    def __init__(self, heading: Heading, tail: list[Entry]) -> None:
        self.heading = heading
        self.tail = tail
        self._value: dict[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Head) and (self.heading, self.tail) == (other.heading, other.tail)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Head({self.heading}, {self.tail})"

    @property
    def value(self) -> dict[str, Any] | None:
        """What the register holds, made when it is first needed; None before the first change."""
        if self._value is None and self.heading.version:
            self._value = self.heading._asdict() | {"tail": [entry.value for entry in self.tail]}
        return self._value

    @property
    def epoch(self) -> int:
        """See `Heading`."""
        return self.heading.epoch

    @property
    def version(self) -> int:
        """See `Heading`."""
        return self.heading.version

    @property
    def sealed(self) -> int:
        """See `Heading`."""
        return self.heading.sealed

    @property
    def base(self) -> int:
        """See `Heading`."""
        return self.heading.base

    @property
    def end(self) -> int:
        """The slot after the newest entry."""
        return self.heading.base + len(self.tail)

    @property
    def fenced(self) -> bool:
        """Whether appends are refused."""
        return self.heading.state == FENCED

    def full(self, limits: Limits) -> bool:
        """Whether the tail must be sealed before anything is added."""
        return self.heading.size >= limits.seal_bytes or len(self.tail) >= limits.seal_entries

    def with_entries(self, entries: Sequence[Entry], size: int, by: str, limits: Limits) -> "Head":
        """The head after `entries`; a full tail, whose segment must be written, makes room for them."""
        size += ENTRY_BYTES * len(entries)
        if self.full(limits):
            moved = self._next(by, sealed=self.sealed + 1, base=self.end, size=size)
            return Head(moved, [*entries])
        return Head(self._next(by, size=self.heading.size + size), [*self.tail, *entries])

    def with_state(self, state: str, by: str) -> "Head":
        """The head fenced or open again, in a new epoch."""
        return Head(self._next(by, state=state, epoch=self.epoch + 1), self.tail)

    def _next(self, by: str, **changes: Any) -> Heading:
        return self.heading._replace(version=self.version + 1, by=by, **changes)


EMPTY = Head(Heading(), [])


class Segment(NamedTuple):
    """A full tail, from slot `base` on."""

    base: int
    entries: list[Entry]

    @property
    def value(self) -> dict[str, Any]:
        """As registers hold it."""
        return {"base": self.base, "entries": [entry.value for entry in self.entries]}


class Run(NamedTuple):
    """Slots `base` to `end` - 1, compacted: the messages of each key stand together.

    `writers` tells of each writer's newest batch in the run where it is: a node that slept until its batch
    was compacted still learns its offsets.
    """

    base: int
    end: int
    keys: dict[str, Block]
    commits: Offsets
    writers: dict[str, tuple[int, Offsets]]

    @property
    def value(self) -> dict[str, Any]:
        """As registers hold it."""
        return self._asdict()


class Listed(NamedTuple):
    """A run in the index: its register, its segments `first` to `last`, its slots `base` to `end` - 1."""

    register: str
    first: int
    last: int
    base: int
    end: int


class Index(NamedTuple):
    """The list of runs. `epoch` is that of the newest worker; segments below `cursor` are deleted."""

    epoch: int = 0
    cursor: int = 0
    runs: tuple[Listed, ...] = ()

    @property
    def value(self) -> dict[str, Any]:
        """As the register holds it."""
        return self._asdict() | {"runs": [listed._asdict() for listed in self.runs]}

    @property
    def end(self) -> int:
        """The slot after the newest run."""
        return self.runs[-1].end if self.runs else 0

    @property
    def unfinished(self) -> bool:
        """Whether segments of the newest run may not be deleted yet."""
        return bool(self.runs) and self.cursor <= self.runs[-1].last


def segment_name(sealed: int) -> str:
    """The register of a sealed segment."""
    return f"segment/{sealed}"


def merge(segments: Sequence[Segment]) -> Run:
    """The run of consecutive segments: a function of them alone, so that every node makes the same."""
    keys: dict[str, Block] = {}
    commits: Offsets = {}
    writers: dict[str, tuple[int, Offsets]] = {}
    for entry in (entry for segment in segments for entry in segment.entries):
        writers[entry.writer] = entry.seq, {key: at for key, (at, _) in entry.appends.items()}
        for key, (first, msgs) in entry.appends.items():
            keys.setdefault(key, (first, []))[1].extend(msgs)
        for key, offset in entry.commits.items():
            commits[key] = max(offset, commits.get(key, offset))
    end = segments[-1].base + len(segments[-1].entries)
    return Run(segments[0].base, end, keys, commits, writers)


# ---------------------------------------------------------------- decoders


def head_of(value: object) -> Head:
    """The head in a register's value."""
    match value:
        case {"tail": [*tail]}:
            return Head(heading_of(value), [entry_of(entry) for entry in tail])
    raise Misfit(f"no head: {brief(value)}")


def heading_of(value: object) -> Heading:
    """A head's fields without its tail."""
    match value:
        case {"state": "open" | "fenced" as state, "by": str(by), **rest}:
            numbers = (_count(rest.get(name)) for name in Heading._fields if name not in _WORDS)
            epoch, version, sealed, base, size = numbers
            return Heading(state, epoch, version, by, sealed, base, size)
    raise Misfit(f"no head: {brief(value)}")


_WORDS = ("state", "by")


def entry_of(value: object) -> Entry:
    """One entry."""
    match value:
        case [str(writer), seq, dict(appends), commits]:
            blocks = {key: _block(block) for key, block in appends.items()}
            return Entry(writer, _count(seq), blocks, offsets_of(commits))
    raise Misfit(f"no entry: {brief(value)}")


def sealed_of(value: object) -> Segment | Run | None:
    """What a segment's or a run's register holds; None: it was deleted."""
    match value:
        case {"entries": [*entries], "base": base}:
            return Segment(_count(base), [entry_of(entry) for entry in entries])
        case {"base": base, "end": end, "keys": dict(keys), "commits": commits, "writers": writers}:
            blocks = {key: _block(block) for key, block in keys.items()}
            return Run(_count(base), _count(end), blocks, offsets_of(commits), _writers(writers))
    if value == TOMBSTONE:
        return None
    raise Misfit(f"no segment and no run: {brief(value)}")


def index_of(value: object) -> Index:
    """The index in a register's value."""
    match value:
        case {"epoch": epoch, "cursor": cursor, "runs": [*runs]}:
            return Index(_count(epoch), _count(cursor), tuple(_listed(run) for run in runs))
    raise Misfit(f"no index: {brief(value)}")


def _listed(value: object) -> Listed:
    match value:
        case {"register": str(register), "first": first, "last": last, "base": base, "end": end}:
            return Listed(register, _count(first), _count(last), _count(base), _count(end))
    raise Misfit(f"no run in an index: {brief(value)}")


def _writers(value: object) -> dict[str, tuple[int, Offsets]]:
    if isinstance(value, dict) and all(
        isinstance(each, list) and len(each) == 2 for each in value.values()
    ):
        return {writer: (_count(seq), offsets_of(at)) for writer, (seq, at) in value.items()}
    raise Misfit(f"no writers: {brief(value)}")


def _block(value: object) -> Block:
    if isinstance(value, list) and len(value) == 2:
        first, msgs = value
        if isinstance(msgs, list) and msgs:
            return _count(first), msgs
    raise Misfit(f"no block of messages: {brief(value)}")


def offsets_of(value: object) -> Offsets:
    """Offsets by key."""
    if isinstance(value, dict) and all(type(offset) is int for offset in value.values()):
        return value
    raise Misfit(f"no offsets: {brief(value)}")


def _count(value: object) -> int:
    if type(value) is int and value >= 0:  # a bool is an int to isinstance
        return value
    raise Misfit(f"not a number from 0 up: {brief(value)}")
