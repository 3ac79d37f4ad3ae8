"""The index of the compacted log: runs, and pages above them, so that no register grows with the log.

    compacted     {format, epoch, cursor, listed: [[level, first, last, base, end, parts, size], ...]}
    page/L/FIRST-LAST/P-of-N
                  {base, end, children: [...], keys: {key: [first, place, end, ...]}, commits, writers}

An `IndexEntry` of level 0 is a run. One of a higher level is a page, whose children are entries of the level
below. A page never changes. It may have several parts, each in a register of its own: a hash of the key, or of
the writer, says in which part it stands. The name of a part says of how many it is one, so what it holds
follows from its name. The idea is that of a log-structured merge tree (O'Neil et al., 1996), but only the
directory is merged: messages stay in their runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import lt
from typing import NamedTuple

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.decoding import KNOWN, Decoder, record, row
from leaderless.core.headlog.records import Run, Writers, run_of
from leaderless.core.messages import Offsets
from leaderless.core.shape import FORMATS, LOG_FORMAT

COMPACTED = "compacted"
PARTS = frozenset(1 << bits for bits in range(21))  # that a page may have
# About what a key takes in a page beside its name, and a child of it.
RECORD_BYTES, PAIR_BYTES = (
    16,
    12,
)


class IndexEntry(NamedTuple):
    """A run or page in the index: its segments `first` to `last`, its slots `base` to `end` - 1.

    `parts` is a power of two, 1 for a run. `size`: about the bytes of its directory, in all parts together.
    """

    level: int
    first: int
    last: int
    base: int
    end: int
    parts: int
    size: int

    @property
    def can_be(self) -> bool:
        """Whether an index may list it."""
        spans = self.first <= self.last and self.base < self.end
        return spans and self.parts in (PARTS if self.level else (1,))

    def register(self, part: int = 0) -> str:
        """The register of one of its parts."""
        if not self.level:
            return f"run/{self.first}-{self.last}"
        return f"page/{self.level}/{self.first}-{self.last}/{part}-of-{self.parts}"

    @property
    def registers(self) -> list[str]:
        """The registers of all parts."""
        return [self.register(part) for part in range(self.parts)]

    def slice_of(self, key: str, offset: int) -> str:
        """The register of a slice of a run, for stores that have them (`Shape.runs`)."""
        return f"{self.register()}/{offset}/{key}"

    def register_of(self, key: str) -> str:
        """The register in which a key stands, if it is there at all."""
        return self.register(part_of(key, self.parts))


class Index(NamedTuple):
    """What `compacted` holds.

    `epoch` is that of the newest worker; segments below `cursor` are deleted. The last of `listed` is
    always the newest run. Levels fall from one to the next, or stay. `rest`: see `record`.
    """

    epoch: int = 0
    cursor: int = 0
    listed: tuple[IndexEntry, ...] = ()
    rest: Mapping[str, Json] = {}

    @property
    def value(self) -> dict[str, Json] | None:
        """As the register holds it; None before the first claim, which has epoch 1: there is none."""
        listed: Json = [[*each] for each in self.listed]
        known = {"epoch": self.epoch, "cursor": self.cursor, "listed": listed}
        return {"format": LOG_FORMAT, **self.rest, **known} if self.epoch else None

    @property
    def end(self) -> int:
        """The slot after the newest run."""
        return self.listed[-1].end if self.listed else 0

    @property
    def sealed(self) -> int:
        """The first segment that is in no run."""
        return self.listed[-1].last + 1 if self.listed else 0

    @property
    def unfinished(self) -> bool:
        """Whether segments of the newest run may not be deleted yet."""
        return self.cursor < self.sealed

    def require_after(self, before: "Index") -> None:
        """What was `before` may be this, at once or later: nothing goes back, and no segment is passed over.

        Raises `InvariantBroken`.
        """
        if self.epoch < before.epoch:
            raise InvariantBroken(f"OneLiveClaim: {before} became {self}")
        if not before.cursor <= self.cursor <= self.sealed:
            raise InvariantBroken(f"CursorNeverPassesCompacted: {before} became {self}")
        if self.end < before.end:
            raise InvariantBroken(f"CommittedReadable: {before} became {self}")
        segment = slot = 0
        for each in self.listed:
            if (each.first, each.base) != (segment, slot):
                raise InvariantBroken(f"IndexMatchesRuns: {each} does not follow slot {slot - 1}")
            segment, slot = each.last + 1, each.end


class Holding(NamedTuple):
    """What a run or page has of a key: the offsets `first` to `end` - 1."""

    listed: IndexEntry
    first: int
    end: int


class Page(NamedTuple):
    """A part of a page: which of `children` holds which offsets of a key.

    `keys[key]` is `[first, place, end, place, end, ...]`: the first offset in this page, and for each child
    that has the key its place in `children` and the offset after its last one.
    """

    base: int
    end: int
    children: list[IndexEntry]
    keys: dict[str, list[int]]
    commits: Offsets
    writers: Writers

    @property
    def value(self) -> dict[str, Json]:
        """As registers hold it."""
        return self._asdict() | {"children": [[*child] for child in self.children]}

    def ranges(self) -> Iterator[tuple[str, int, int]]:
        """Of each key its first offset here, and the one after its last."""
        return ((key, record[0], record[-1]) for key, record in self.keys.items())

    def holds(self, key: str, offset: int) -> bool:
        """Whether an offset of a key is in one of its runs."""
        record = self.keys.get(key)
        return record is not None and record[0] <= offset < record[-1]

    def holding_of(self, key: str, offset: int) -> Holding:
        """The child that holds an offset of a key, which must be in this page."""
        record = self.keys[key]
        holdings = zip(record[1::2], record[::2], record[2::2], strict=False)
        return next(
            Holding(self.children[place], first, end)
            for place, first, end in holdings
            if offset < end
        )

    @property
    def size(self) -> int:
        """About its bytes as a register, without its children."""
        records = sum(
            len(key) + RECORD_BYTES + PAIR_BYTES * (len(record) // 2)
            for key, record in self.keys.items()
        )
        return records + _rest_bytes(self.commits, self.writers)


Part = Run | Page  # what the directory of the log is made of


def part_of(name: str, parts: int) -> int:
    """The part of a page in which a key, or a writer, stands."""
    if parts == 1:
        return 0
    from hashlib import blake2b  # takes part of a start, for which it is not needed

    digest = blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % parts


def parts_for(size: int, page_bytes: int) -> int:
    """How many parts a directory of `size` bytes needs: a power of two."""
    parts = 1
    while parts * page_bytes < size:
        parts *= 2
    return parts


def size_of_run(run: Run) -> int:
    """About the bytes that a run adds to the directory."""
    records = sum(len(key) + RECORD_BYTES + PAIR_BYTES for key in run.keys)
    return records + _rest_bytes(run.commits, run.writers)


def _rest_bytes(commits: Offsets, writers: Writers) -> int:
    placed = (len(writer) + sum(map(len, at)) for writer, (_, at) in writers.items())
    return (
        sum(len(key) + RECORD_BYTES for key in commits)
        + sum(placed)
        + 2 * RECORD_BYTES * len(writers)
    )


def new_page(children: Sequence[IndexEntry]) -> Page:
    """A part of the page of these children, still empty."""
    return Page(children[0].base, children[-1].end, [*children], {}, {}, {})


def distribute(source: Part, place: int, drafts: dict[int, Page], parts: int) -> None:
    """Add what stands in a child, the one at `place`, to the parts of its page; children in their order.

    Raises `InvariantBroken` when a key does not begin where it ended in the children before.
    """
    for key, first, end in source.ranges():
        record = drafts[part_of(key, parts)].keys.setdefault(key, [first])
        if record[-1] != first:
            raise InvariantBroken(f"OffsetsDense: key {key!r} at {first} after {record[-1]}")
        record.extend((place, end))
    for key, offset in source.commits.items():
        commits = drafts[part_of(key, parts)].commits
        commits[key] = max(offset, commits.get(key, offset))
    for writer, newest in source.writers.items():
        drafts[part_of(writer, parts)].writers[writer] = newest


# ---------------------------------------------------------------- decoders


def decode_part(value: Json) -> Part:
    """The run, or the part of a page, in a register's value."""
    is_page = isinstance(value, dict) and "children" in value
    return page_of(value) if is_page else run_of(value)


def _has_children(page: Page) -> bool:
    """Whether each record of a page rises, and names children that it has."""
    return all(
        len(record) >= 3
        and len(record) % 2
        and all(map(lt, record[::2], record[2::2]))
        and max(record[1::2]) < len(page.children)
        for record in page.keys.values()
    )


KNOWN[IndexEntry] = row(IndexEntry, lambda listed: listed.can_be)
index_of: Decoder[Index] = record(Index, form=FORMATS)
page_of: Decoder[Page] = record(Page, _has_children)
