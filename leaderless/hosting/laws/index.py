"""The laws of the compacted log: what the index may name, and when segments may go."""

from collections.abc import Mapping

from leaderless.core.coordination import TOMBSTONE, Json
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import Index, IndexEntry, Page, Part, decode_part, index_of
from leaderless.core.headlog.records import Run, Segment, run_of, segment_name, segment_of
from leaderless.core.lease import Lease
from leaderless.hosting.laws.rules import (
    INDEXED,
    merged,
    pages_of,
    raising,
    require,
    require_claimed,
    require_order,
    require_slots,
    slot_after,
)


class IndexLaw:
    """The index, of a log whose registers are `objects`.

    `of_files`: runs are Parquet files, which are no registers, so what they hold cannot be seen here.
    """

    def __init__(self, objects: Mapping[str, Json]) -> None:
        self._objects = objects
        self._named: set[IndexEntry] = (
            set()
        )  # runs and pages that were found to be there, and right
        self.index: Index = Index()
        self.of_files = False

    @property
    def sealed(self) -> int:
        """The first segment that is in no run of the index."""
        return self.index.sealed

    def begin(self, value: Json) -> None:
        """Take the index as it stands; what it names is believed."""
        self.index = index_of(value)
        self._named = set(self.index.listed)

    def changed(self, new: Json, claim: Lease | None) -> None:
        """The index is another one, while `claim` stands in the register of its claim."""
        old, index = self.index, index_of(new)
        require_claimed(index.epoch, CLAIM, claim, raising)
        text = f"epoch {index.epoch} after {old.epoch}"
        require(index.epoch >= max(1, old.epoch), "OneLiveClaim", text)
        text = f"cursor {index.cursor} after {old.cursor}"
        require(index.cursor >= old.cursor, "CursorNeverMovesBack", text)
        text = f"cursor {index.cursor}, compacted {index.sealed}"
        require(index.cursor <= index.sealed, "CursorNeverPassesCompacted", text)
        passed = map(segment_name, range(old.cursor, index.cursor))
        alive = [name for name in passed if self._objects.get(name) != TOMBSTONE]
        require(not alive, "CursorNeverPassesCompacted", f"alive: {alive}")
        text = f"runs of segments below {index.sealed} after {old.sealed}"
        require(index.sealed >= old.sealed, "CommittedReadable", text)
        require_order(index.listed, 0, 0, raising)
        for listed in index.listed:
            self._require_right(listed)
        self.index = index

    def run_changed(self, listed: IndexEntry, new: Json) -> None:
        """A run is made, while its segments are there or when they are gone already."""
        if segments := self._segments(listed):
            made, run = merged(segments), run_of(new)
            wrong = [n for n in Run._fields if getattr(run, n) != getattr(made, n)]
            text = f"{listed.register()} is not what its segments make: {wrong}"
            require(not wrong, "SegmentsImmutable", text)

    def _segments(self, listed: IndexEntry) -> list[Segment]:
        """The segments of a run; none if one of them is missing or deleted."""
        numbers = range(listed.first, listed.last + 1)
        values = [self._objects.get(segment_name(number)) for number in numbers]
        found = [segment_of(value) for value in values if value is not None]
        segments = [segment for segment in found if segment is not None]
        return segments if len(segments) == len(numbers) else []

    def _require_right(self, listed: IndexEntry) -> None:
        """What the index names is there, and is what it stands for."""
        if listed in self._named:
            return
        if listed.level:
            self._require_page(listed)
        else:
            text = f"segments of {listed.register()} are gone before it is named"
            segments = self._segments(listed)
            require(bool(segments), "CommittedReadable", text)
            base, end = segments[0].base, slot_after(segments[-1])
            slots = f"its segments have slots {base} to {end - 1}"
            same = (base, end) == (listed.base, listed.end)
            require(same, INDEXED, listed, slots)
            if not self.of_files:
                [run] = self._parts(listed)
                require_slots(listed, run, raising)
        self._named.add(listed)

    def _require_page(self, listed: IndexEntry) -> None:
        pages = self._parts(listed)
        for page in pages:
            require_slots(listed, page, raising)
        children = pages[0].children if isinstance(pages[0], Page) else []
        require(bool(children), INDEXED, f"{listed.register()} is a run, and not a page")
        require_order(children, listed.first, listed.base, raising)
        ends = (children[-1].last, children[-1].end) == (listed.last, listed.end)
        require(ends, INDEXED, f"{listed} ends with {children[-1]}")
        for child in children:
            self._require_right(child)
        if self.of_files and not all(child.level for child in children):
            return
        expected = pages_of([(child, self._parts(child)) for child in children], listed.parts)
        text = f"{listed.register()} in {listed.parts} parts is not what its children make"
        require(pages == expected, INDEXED, text)

    def _parts(self, listed: IndexEntry) -> list[Part]:
        missing = [name for name in listed.registers if name not in self._objects]
        require(not missing, "CommittedReadable", f"the index names {missing}, not there")
        return [decode_part(self._objects[name]) for name in listed.registers]
