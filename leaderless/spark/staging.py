"""Rows that wait in the store for the commit of their epoch.

The objects and their names stand in `leaderless.upkeep.staged`; rows are Arrow streams.

Each attempt of a task writes objects of its own, so attempts never meet. The plan is made once: the first
driver that commits the epoch decides which attempts count, and every later one follows. It takes the place of a
condemnation of other parts; a condemnation of its own parts is a definite error.
"""

import io
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.shape import LOG_FORMAT
from leaderless.errors import Broken, Definite
from leaderless.spark.encoding import SCHEMA
from leaderless.store.calls import Damaged, own_objects, patiently, read_value
from leaderless.store.port import Store, replaced
from leaderless.upkeep.staged import (
    PLAN,
    Plan,
    decision_of,
    epoch_of,
    folder_of,
)

ORDERED_BYTES = 32 << 20  # of rows in the memory of a task
PART_BYTES = 4 << 20  # of the rows in one object, about
ROW_BYTES = 16  # about what a row takes beside its key and value


class Epoch(NamedTuple):
    """One commit of one writer: an epoch of a query, or a whole batch write."""

    writer: str
    number: int

    @property
    def folder(self) -> str:
        """Of its objects."""
        return folder_of(self.writer, self.number)

    @property
    def plan(self) -> str:
        """The key of its plan."""
        return f"{self.folder}/{PLAN}"


async def stage(store: Store, folder: str, tables: Iterable[pa.Table]) -> list[str]:
    """Write rows into objects of `folder`; returns their keys in order.

    Rows are put in the order of their keys, `ORDERED_BYTES` at a time, and stay in order within a key: so a
    batch of the log has few keys, and each a block of messages.
    """
    limit = min(PART_BYTES, store.value_bytes_max // 2)
    parts: list[str] = []
    for some in _gathered(tables):
        for part in groups(some.sort_by("key"), limit):
            key = f"{folder}/{len(parts):06}"
            await patiently(partial(store.write, key, _packed(part)))
            parts.append(key)
    return parts


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables, about `ORDERED_BYTES` of them in each."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.nbytes for each in waiting) >= ORDERED_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def groups(rows: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    """The rows in order, in groups of at most `bytes_max`, unless one row alone is larger."""
    sizes = pc.add(pc.binary_length(rows["key"]), pc.binary_length(rows["text"]))
    ends = pc.cumulative_sum(pc.add(sizes, ROW_BYTES))
    first = before = 0
    while first < rows.num_rows:
        room = before + bytes_max
        end = bisect_right(ends, room, first + 1, key=lambda each: each.as_py())
        yield rows.slice(first, end - first)
        first, before = end, ends[end - 1].as_py()


def _packed(rows: pa.Table) -> bytes:
    target = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(target, SCHEMA, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    return target.getvalue()


def _unpacked(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as stream:
        table = stream.read_all()
    # No part is empty: so one without rows was cut off.
    if not table.num_rows or table.schema != SCHEMA:
        raise ValueError(f"it has {table.num_rows} rows of {table.schema.names}")
    return table


async def decide(store: Store, epoch: Epoch, plan: Plan) -> Plan:
    """Make `plan` that of the epoch, unless it has one; returns the one that holds.

    Raises `Definite` when a vacuum has deleted its parts; then nothing of the plan was appended.
    """
    value = orjson.dumps(
        {"format": LOG_FORMAT, "parts": plan.parts, "batch_bytes": plan.batch_bytes}
    )
    version = None
    while not await patiently(partial(replaced, store, epoch.plan, value, version)):
        found = await read_value(store, epoch.plan, decision_of)
        if found is None:  # another driver has finished the epoch
            return plan
        if isinstance(found.value, Plan):
            return found.value
        if not found.value.isdisjoint(plan.parts):
            raise Definite(
                "what the tasks have staged was deleted: it was older than the retention of a vacuum. "
                "Nothing of this epoch was appended; start the query or the write again"
            )
        version = found.version
    return plan


async def planned(store: Store, epoch: Epoch) -> Plan | None:
    """The plan of an epoch, if it has one. Raises `Broken`."""
    found = await read_value(store, epoch.plan, decision_of)
    return found.value if found and isinstance(found.value, Plan) else None


async def staged(store: Store, parts: Iterable[str]) -> AsyncIterator[pa.Table]:
    """The rows of parts, one after the other. Raises `Broken` when one is not there, or makes no sense."""
    for part in parts:
        yield await patiently(partial(_rows_of, store, part))


async def _rows_of(store: Store, part: str) -> pa.Table:
    found = await store.read(part)
    if found is None:
        raise Broken(f"rows that a task has staged are not there: {part}")
    try:
        return _unpacked(found.value)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise Damaged(f"{part!r} makes no sense: {error}") from error


async def staged_until(store: Store, epoch: Epoch) -> dict[Epoch, list[str]]:
    """All that tasks and drivers have left for this epoch and for those before it."""
    left: dict[Epoch, list[str]] = {}
    async for each in own_objects(store, epoch.folder.rpartition("/")[0]):
        found = Epoch(*epoch_of(each.key))
        if found.number <= epoch.number:
            left.setdefault(found, []).append(each.key)
    return left
