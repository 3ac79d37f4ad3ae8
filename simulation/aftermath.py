"""Long after the faults: what came too late has come, compaction moves, and garbage is gone.

1. Every late request to the store has been carried out.
2. Messages as large as a tail are sent, so that there is something to compact, and again after the longest
   pause that compaction makes.
3. Every node shows the same log, and every committed offset.
4. All segments but the newest are in runs (`CompactionMoves`), and no register is left that nobody reads any
   more (`GarbageCollected`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.compaction import REVIVED_AFTER_LEASES
from leaderless.core.headlog.index import COMPACTED, Index, IndexEntry, Page, decode_part, index_of
from leaderless.core.headlog.records import HEAD
from leaderless.core.shape import Shape
from simulation.convergence import Epilogue
from simulation.oracle import require

KEY = "aftermath"
SEGMENTS_LEFT = 3  # runs' worth of segments that may wait for the next seal
LEASES_OF_WORKERS = 6  # that crash, or watch, beside the pause


def let_compact(epilogue: Epilogue, lease_s: float, shape: Shape) -> None:
    """Give compaction of a log of this shape work and time, twice."""
    sent = 2 * shape.segments_per_run
    for first in (1, 1 + sent):
        for number in range(first, first + sent):
            epilogue.send(KEY, f"{number} {'x' * shape.seal_bytes}", number)
        epilogue.rest((REVIVED_AFTER_LEASES + LEASES_OF_WORKERS) * lease_s)


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
