"""Long after the faults: what came too late has come, compaction moves, and garbage is gone.

1. Every late request to the store has been carried out.
2. Messages as large as a tail are sent, so that there is something to compact, and again after the longest
   pause that compaction makes.
3. Every node shows the same log, and every committed offset.
4. All segments but the newest are in runs (`CompactionMoves`), and no register is left that nobody reads any
   more (`GarbageCollected`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.compaction import REVIVED_AFTER_LEASES
from leaderless.core.headlog.index import COMPACTED, Index, IndexEntry, Page, decode_part, index_of
from leaderless.core.headlog.records import HEAD
from leaderless.core.shape import Shape
from leaderless.core.strategy import Options
from simulation.convergence import Epilogue
from simulation.oracle import require

KEY = "aftermath"
SEGMENTS_LEFT = 3  # runs' worth of segments that may wait for the next seal
LEASES_OF_WORKERS = 6  # that crash, or watch, beside the pause


class Aftermath:
    """`options`: of the nodes, with the shape of the log."""

    def __init__(self, epilogue: Epilogue, options: Options) -> None:
        self._epilogue = epilogue
        pace, self._shape = options.pace, options.shape or Shape()
        self._pause_s = (REVIVED_AFTER_LEASES + LEASES_OF_WORKERS) * pace.lease_s
        self._sent = 0

    def compact(self, registers: Callable[[], Mapping[str, Any]]) -> None:
        """Give compaction work and time; raises `Violation` if it does not move.

        `registers` are those of the store.
        """
        for _ in range(2):
            self._fill_segments()
            self._epilogue.rest(self._pause_s)
        require_compacted(registers(), self._shape.segments_per_run)

    def read(self, keys: list[str]) -> None:
        """Look at the log and at committed offsets once more, through every node."""
        self._epilogue.read([*keys, KEY])
        self._epilogue.list_committed(keys)

    def _fill_segments(self) -> None:
        for _ in range(2 * self._shape.segments_per_run):
            self._sent += 1
            self._epilogue.send(KEY, f"{self._sent} {'x' * self._shape.seal_bytes}", self._sent)


def require_compacted(registers: Mapping[str, Any], segments_per_run: int) -> None:
    """Raise `Violation` when too many segments wait, or registers are left that nobody reads."""
    index = index_of(registers[COMPACTED]) if COMPACTED in registers else Index()
    sealed, cursor = registers[HEAD]["sealed"], index.cursor
    text = f"{sealed} segments, of which {cursor} are in runs"
    require(sealed - cursor < SEGMENTS_LEFT * segments_per_run, "CompactionMoves", text)
    listed = set(_below(registers, index.listed)) | {*_pages_to_come(registers, index)}
    left = [
        name
        for name, value in registers.items()
        if value != TOMBSTONE and _is_garbage(name, cursor, listed)
    ]
    require(not left, "GarbageCollected", f"nobody reads {left[:5]} any more")


def _below(registers: Mapping[str, Any], listed: Iterable[IndexEntry]) -> Iterator[str]:
    """The registers of runs and pages, and of all that is below the pages."""
    for each in listed:
        yield from each.registers
        part = decode_part(registers[each.register()])
        if isinstance(part, Page):
            yield from _below(registers, part.children)


def _pages_to_come(registers: Mapping[str, Any], index: Index) -> Iterator[str]:
    """Parts of a page that was written and is not named yet: of the newest runs or pages of a level."""
    for first in index.listed:
        spans = f"page/{first.level + 1}/{first.first}-{index.sealed - 1}/"
        yield from (name for name in registers if name.startswith(spans))


def _is_garbage(name: str, cursor: int, listed: set[str]) -> bool:
    kind, _, rest = name.partition("/")
    if kind == "segment":
        return int(rest) < cursor
    return kind in ("run", "page") and name not in listed
