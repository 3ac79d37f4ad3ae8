"""Positions of a stream: how many batches of the log it has read. A position is a number, whatever the keys.

A batch of the log is never divided, for its records have one slot. So a limit is met as far as that allows:
a step takes at least one batch.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.errors import Definite
from leaderless.store.calls import blocking
from leaderless.store.chain import read_head
from leaderless.store.port import Store
from leaderless.table.manifest import read_manifest
from leaderless.table.snapshot import FileRef, outline, reader_of, snapshot, table_in


async def end_of(store: Store) -> int:
    """How many batches the log has. Raises `LogError`."""
    return (await read_head(store)).end


async def span_of(store: Store) -> tuple[int, int]:
    """The first batch that the log has since a retention, and how many it has had."""
    end = await end_of(store)
    return (await read_manifest(store))[0].start.slot, end


def require_start(position: int, start: int) -> None:
    """Raises `Definite` for the position of a stream before the first batch that the log has, `start`."""
    if position < start:
        raise Definite(
            f"a retention has deleted batches {position} to {start - 1} before this stream has read them; the"
            f" log begins at {start}. To go on without them set the option failOnDataLoss=false; or begin with"
            f" a new checkpoint and the option start={start}, or start=earliest"
        )


async def advance(store: Store, start: int, rows_max: int) -> int:
    """The position after `start` with about `rows_max` records more, at least one batch if there is any.

    The end of the log is read, to count its records, only if there is room for some of them.
    """
    step = _Step(start, rows_max)
    if not await _through(store, step, (await outline(store)).files):
        return step.position
    found = await snapshot(store)  # what was at the end before may be in a file now
    if await _through(store, step, found.files):
        step.take_batches(_slots_in(found.tail), found.version)
    return step.position


async def _through(store: Store, step: "_Step", files: Sequence[FileRef]) -> bool:
    """Go forward through files; whether to the end of the last one."""
    for ref in files:
        if ref.end <= step.position:
            continue
        if ref.base >= step.position and (rows := await _rows_in(store, ref)) <= step.left:
            step.take(ref.end, rows)
        elif not step.take_batches(await _counted(store, ref), ref.end):
            return False
    return True


@dataclass
class _Step:
    """A step of a stream, from its first batch on: where it is, and how many records it may still take."""

    position: int
    left: int
    empty: bool = True

    def take(self, end: int, rows: int) -> None:
        self.position, self.left, self.empty = end, self.left - rows, False

    def take_batches(self, counted: Counter[int], end: int) -> bool:
        """Take batches up to `end` while there is room; returns whether all were taken."""
        for slot in range(self.position, end):
            if counted[slot] > self.left and not self.empty:
                return False
            self.take(slot + 1, counted[slot])
        return True


async def _rows_in(store: Store, ref: FileRef) -> int:
    if ref.rows is not None:
        return ref.rows
    if ref.kind == "json":
        return int((await table_in(store, ref)).num_rows)
    return await blocking(lambda: int(reader_of(store, ref).metadata.num_rows))


async def _counted(store: Store, ref: FileRef) -> Counter[int]:
    """How many records each slot of a file has."""
    if ref.kind == "json":
        raise Definite("a limit of records a batch needs a log with runs of Parquet")
    return _slots_in(await blocking(lambda: reader_of(store, ref).read(columns=["slot"])))


def _slots_in(table: pa.Table) -> Counter[int]:
    """How many records of a table each slot has."""
    counts = pc.value_counts(table["slot"])
    return Counter(dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)))
