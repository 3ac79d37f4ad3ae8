"""Rows that wait in the store for the commit of their epoch.

    sink/WRITER/EPOCH/PARTITION-ATTEMPT/N    rows, as an Arrow stream
    sink/WRITER/EPOCH/plan                   {format, parts, batch_bytes}: what the epoch is

Each attempt of a task writes objects of its own, so attempts never meet. The plan is created once: the first
driver that commits the epoch decides which attempts count, and every later one follows.
"""

import io
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import orjson
import pyarrow as pa

from leaderless.library.data import patiently
from leaderless.library.errors import Broken, Definite
from leaderless.spark.encoding import Row
from leaderless.store.names import segment_of
from leaderless.store.port import PAGE, Conflict, Store, all_of

FORMAT = 1
PART_BYTES = 4 << 20  # of the rows in one object, about
ROW_BYTES = 16  # about what a row takes beside its key and value
SCHEMA = pa.schema([("key", pa.string()), ("text", pa.large_binary()), ("is_json", pa.bool_())])


class Epoch(NamedTuple):
    """One commit of one writer: an epoch of a query, or a whole batch write."""

    writer: str
    number: int

    @property
    def folder(self) -> str:
        """Of its objects."""
        return f"{folder_of(self.writer)}/{self.number:020}"


class Plan(NamedTuple):
    """What an epoch appends: the rows of `parts`, in this order, in batches of `batch_bytes`."""

    parts: tuple[str, ...]
    batch_bytes: int


def folder_of(writer: str) -> str:
    """The folder of all epochs of a writer."""
    return f"sink/{segment_of(writer)}"


async def stage(store: Store, folder: str, rows: Iterable[Row]) -> list[str]:
    """Write rows into objects of `folder`; returns their keys in order."""
    limit = min(PART_BYTES, store.value_bytes_max // 2)
    parts: list[str] = []
    for some in groups(rows, limit):
        key = f"{folder}/{len(parts):06}"
        await patiently(partial(store.write, key, _packed(some)))
        parts.append(key)
    return parts


def groups(rows: Iterable[Row], bytes_max: int) -> Iterator[list[Row]]:
    """The rows in order, in groups of at most `bytes_max`, unless one row alone is larger."""
    group: list[Row] = []
    size = 0
    for row in rows:
        more = row.size + ROW_BYTES
        if group and size + more > bytes_max:
            yield group
            group, size = [], 0
        group.append(row)
        size += more
    if group:
        yield group


def _packed(rows: Sequence[Row]) -> bytes:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    target = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(target, SCHEMA, options=options) as stream:
        stream.write_batch(pa.record_batch(columns, schema=SCHEMA))
    return target.getvalue()


def _unpacked(content: bytes) -> Iterator[Row]:
    with pa.ipc.open_stream(content) as stream:
        table = stream.read_all()
    yield from map(Row._make, zip(*(column.to_pylist() for column in table.columns), strict=True))


async def decide(store: Store, epoch: Epoch, plan: Plan) -> Plan:
    """Make `plan` that of the epoch, unless it has one; returns the one that holds."""
    key = f"{epoch.folder}/plan"
    value = orjson.dumps({"format": FORMAT, "parts": plan.parts, "batch_bytes": plan.batch_bytes})

    async def create() -> bool:
        try:
            await store.create(key, value)
        except Conflict:
            return False
        return True

    if not await patiently(create):
        return await planned(store, epoch) or plan  # None: another driver has finished the epoch
    return plan


async def planned(store: Store, epoch: Epoch) -> Plan | None:
    """The plan of an epoch, if it has one. Raises `Broken`."""
    found = await patiently(lambda: store.read(f"{epoch.folder}/plan"))
    if found is None:
        return None
    match orjson.loads(found.value):
        case {"format": 1, "parts": [*parts], "batch_bytes": int(batch_bytes)}:
            return Plan(tuple(parts), batch_bytes)
        case {"format": version}:
            raise Definite(f"a plan of format {version}, this program reads {FORMAT}: update it")
    raise Broken(f"{epoch.folder}/plan is no plan of this program")


async def staged(store: Store, parts: Iterable[str]) -> AsyncIterator[list[Row]]:
    """The rows of parts, one after the other. Raises `Broken` when one is not there."""
    for part in parts:
        found = await patiently(partial(store.read, part))
        if found is None:
            raise Broken(f"rows that a task has staged are not there: {part}")
        yield [*_unpacked(found.value)]


async def clear(store: Store, keys: Sequence[str]) -> None:
    """Delete objects."""
    for start in range(0, len(keys), PAGE):
        await patiently(partial(store.delete, keys[start : start + PAGE]))


async def clear_until(store: Store, epoch: Epoch) -> None:
    """Delete all that tasks and drivers have left for this epoch and for those before it."""
    folder, last = folder_of(epoch.writer), f"{epoch.folder}/\U0010ffff"
    await clear(store, [each.key async for each in all_of(store, folder) if each.key < last])
