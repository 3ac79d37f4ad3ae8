"""The laws of the compacted log: what the index may name, and when segments may go."""

from collections.abc import Mapping
from contextlib import suppress

from leaderless.core.claims import Claim
from leaderless.core.coordination import Json, is_deleted
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import Index, IndexEntry, Part, decode_part, index_of
from leaderless.core.headlog.records import Segment, run_of, segment_name, segment_of
from leaderless.upkeep.laws.rules import (
    INDEXED,
    Broken,
    raising,
    require,
    require_claimed,
    require_index,
    require_run,
    walk,
)


class IndexLaw:
    """The index, of a log whose registers are `objects`.

    `of_files`: runs are Parquet files, which are no registers, so what they hold cannot be seen here.
    """

    def __init__(self, objects: Mapping[str, Json]) -> None:
        self._objects = objects
        # Runs and pages that were found to be there, and right.
        self._named: set[IndexEntry] = set()
        self.index: Index = Index()
        self.of_files = False

    @property
    def sealed(self) -> int:
        """The first segment that is in no run of the index."""
        return self.index.sealed

    def changed(self, new: Json, claim: Claim | None) -> None:
        """The index is another one, while `claim` stands in the register of its claim."""
        old, index = self.index, index_of(new)
        require_claimed(index.epoch, CLAIM, claim, raising)
        text = f"epoch {index.epoch} after {old.epoch}"
        require(index.epoch >= max(1, old.epoch), "OneLiveClaim", text)
        text = f"cursor {index.cursor} after {old.cursor}"
        require(index.cursor >= old.cursor, "CursorNeverMovesBack", text)
        passing = range(old.cursor, index.cursor)
        alive = [n for n in passing if not is_deleted(self._objects.get(segment_name(n)))]
        require_index(index, alive, raising)
        text = f"runs of segments below {index.sealed} after {old.sealed}"
        require(index.sealed >= old.sealed, "CommittedReadable", text)
        checking = walk([e for e in index.listed if e not in self._named], self._named, _raising_of)
        with suppress(StopIteration):
            wanted = next(checking)
            while True:
                wanted = checking.send([self._parts(listed) for listed in wanted])
        self.index = index

    def run_changed(self, listed: IndexEntry, new: Json) -> None:
        """A run is made, while its segments are there or when some are gone already."""
        count = listed.last + 1 - listed.first
        require_run(run_of(new), self._segments(listed), count, raising)

    def _segments(self, listed: IndexEntry) -> list[Segment]:
        """The segments of a run that still stand."""
        names = map(segment_name, range(listed.first, listed.last + 1))
        found = (segment_of(self._objects[name]) for name in names if name in self._objects)
        return [segment for segment in found if segment]

    def _parts(self, listed: IndexEntry) -> list[Part | None]:
        """What the registers of a run or page hold; a run has its segments until it is named."""
        if not listed.level and listed not in self._named:
            segments = self._segments(listed)
            text = f"segments of {listed.register()} are gone before it is named"
            require(len(segments) == listed.last + 1 - listed.first, "CommittedReadable", text)
            base, end = segments[0].base, segments[-1].end
            text = f"{listed}: its segments have slots {base} to {end - 1}"
            require((base, end) == (listed.base, listed.end), INDEXED, text)
        if self.of_files and not listed.level:
            return []
        values = map(self._objects.get, listed.registers)
        return [None if value is None else decode_part(value) for value in values]


def _raising_of(name: str) -> Broken:
    return lambda invariant, text: raising(invariant, f"{name}: {text}")
