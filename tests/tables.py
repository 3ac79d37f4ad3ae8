"""Logs with runs of Parquet, whose segments, runs and pages a few appends fill; and what they hold.

In transcripts (`tests.datadriven.programs`) a program with such a log, which merges two files, has more words:

    > p numbers abc 40              append numbers to keys in turn, one a batch
    > p merges                      compact and merge all that there is
    > p overtakes                   change the list of files as one of a far newer claim
    > p retain bytes=0              by a policy; `keep=2`: so that the newest two files stay
    > p trim a 5                    delete the records of a key before an offset
    > p files                       the slots that each merged file has
    > p rows [5]                    a snapshot (of a version): of each key the first offset, and the values
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import ClassVar

# pyarrow imports them at the first read of a file. On a busy machine that takes longer than a read may here.
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.dataset

from leaderless.api.log import Log
from leaderless.core.shape import Runs
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.store.port import Store
from leaderless.store.values import Value, message_of
from leaderless.table.manifest import Levels, read_manifest, replace_manifest
from leaderless.table.pieces import BatchColumns, Piece, table_of_pieces
from leaderless.table.retention import Policy, Retained
from leaderless.table.runs import paged_runs
from leaderless.table.schema import Row, rows_in
from leaderless.table.snapshot import Snapshot, locations, snapshot, table_in
from leaderless.upkeep.fsck import check
from tests.datadriven.programs import Program
from tests.datadriven.runner import chosen_of, json_of
from tests.datadriven.words import value_of

Model = dict[str, list[Value]]
LATER_S = 7200.0  # after that, what nobody names any more may be deleted


@asynccontextmanager
async def small_log(
    store: Store, runs: Runs = "parquet", fan: int = 2, timeout_s: float = 0.5
) -> AsyncIterator[Log]:
    """A log in `store`, which is made when it is missing, with small limits; it merges `fan` files."""
    small = replace(new_shape(store), seal_entries=2, segments_per_run=2, page_children=2)
    made = await initialise(store, runs, small)
    bounds = bounds_of(store, 100 * timeout_s, timeout_s, made.shape)
    limits = replace(bounds.limits, memory_bytes=1)
    pace = replace(
        bounds.pace, error_pause_s=0.001, error_pause_max_s=0.001, error_patience_s=0.003
    )
    log = Log(store, bounds._replace(limits=limits, pace=pace, levels=Levels(fan)))
    async with running(log.host):
        yield log


async def compact(log: Log) -> None:
    """Compact and merge all that there is; the second time, what the first one's end let become due."""
    await log.compact()
    await log.compact()


async def append(log: Log, model: Model, key: str, *values: Value) -> None:
    """Append values to a log and to its model."""
    offsets = await log.append_many(key, values)
    kept = model.setdefault(key, [])
    assert offsets == [*range(len(kept), len(kept) + len(values))]
    kept += values


async def append_numbers(log: Log, model: Model, keys: Sequence[str], count: int) -> None:
    """Append numbers from 0 to the keys in turn, one a batch."""
    for number in range(count):
        await append(log, model, keys[number % len(keys)], number)


def table_of(rows: Iterable[Row], *, ordered: bool = False) -> pa.Table:
    """The rows as a table, in the order of key and offset; `ordered`: they come so."""
    found = [*rows] if ordered else sorted(rows, key=lambda row: (row.key, row.offset))
    batches = [BatchColumns(row.writer, row.seq, row.slot, row.appended_at) for row in found]
    pieces = [Piece(row.key, row.offset, [row.message], at) for at, row in enumerate(found)]
    return table_of_pieces(batches, pieces)


async def rows_of_snapshot(store: Store, found: Snapshot) -> list[Row]:
    """Every record of a snapshot, by key and offset; none of them twice."""
    rows = [*rows_in(found.tail)]
    for ref in found.files:
        rows += rows_in(await table_in(store, ref, found.version))
    rows.sort(key=lambda row: (row.key, row.offset))
    return rows


async def content_of(store: Store, as_of: int | None = None) -> dict[str, list[object]]:
    """The messages of each key in a snapshot; their offsets count from 0 without a gap."""
    content: dict[str, list[object]] = {}
    for row in await rows_of_snapshot(store, await snapshot(store, as_of)):
        messages = content.setdefault(row.key, [])
        assert row.offset == len(messages), row
        messages.append(row.message)
    return content


def messages(model: Model) -> dict[str, list[object]]:
    """The model as messages of the log; values above 16 KiB would be references."""
    return {key: [message_of(value) for value in values] for key, values in model.items()}


async def filled(
    store: Store, batches: int, model: Model | None = None, timeout_s: float = 0.5
) -> Model:
    """Append, with compaction going on beside it as far as it comes; nothing is merged yet.

    Returns what is in the log; `model` is what was there before.
    """
    model = {} if model is None else model
    async with small_log(store, timeout_s=timeout_s) as log:
        for number in range(batches):
            key = "abc"[number % 3]
            await append(log, model, key, f"{key}{number}", number)
    return model


async def merged(store: Store, timeout_s: float = 0.5) -> None:
    """Compact and merge all that there is, as another process would."""
    async with small_log(store, timeout_s=timeout_s) as log:
        await compact(log)


async def values_of_keys(log: Log) -> dict[str, list[object]]:
    """All values of each key, by reads."""
    found: dict[str, list[object]] = {}
    for key, end in (await log.keys()).items():
        values = found.setdefault(key, [])
        while len(values) < end:
            values += [record.value for record in await log.read(key, len(values))]
    return found


async def require_readable(log: Log, model: Model) -> None:
    """Every record is read back, from any offset."""
    for key, values in model.items():
        for offset in range(len(values)):
            [record, *_] = await log.read(key, offset, 3)
            assert (record.offset, record.value) == (offset, values[offset])


def _told(done: Retained) -> str:
    """The answer to a retention, without the sizes of files, which are Arrow's."""
    kept = re.sub(r"\d+ bytes, and \d+", "... bytes, and ...", done.kept or "nothing stays")
    return f"{done.files} files left, it begins at slot {done.start}\n{kept}"


class Table(Program):
    """One process with such a log."""

    runs: ClassVar[Runs] = "parquet"

    async def _numbers(self, keys: str, count: str) -> None:
        for number in range(int(count)):
            await self.log.append(keys[number % len(keys)], number)

    async def _merges(self) -> None:
        await compact(self.log)

    async def _overtakes(self) -> None:
        manifest, version = await read_manifest(self.fated)
        assert await replace_manifest(self.fated, manifest._replace(epoch=99), version)

    async def _fsck(self) -> list[str]:
        return [*map(str, (await check(self.store)).findings)]

    async def _files(self) -> list[str]:
        return [f"{each.base}..{each.end}" for each in (await read_manifest(self.fated))[0].files]

    async def _retain(self, *options: str) -> str:
        chosen = {name: value_of(value) for name, value in chosen_of([*options]).items()}
        if newest := chosen.pop("keep", 0):
            assert self.fated.files
            await self.log.retain(Policy(bytes=1 << 62))  # so all that is sealed is in files
            files = [*(manifest := (await read_manifest(self.fated))[0]).files]
            files += [
                run async for run in paged_runs(self.fated, self.fated.files, manifest.sealed)
            ]
            chosen["bytes"] = sum(each.bytes for each in files[-newest:])
        return _told(await self.log.retain(Policy(**chosen)))

    async def _trim(self, key: str, before: str) -> str:
        return _told(await self.log.trim(key, value_of(before)))

    async def _rows(self, *version: str) -> str:
        found = await snapshot(self.store, *map(int, version))
        assert (
            version or self.runs == "json" or len(await locations(self.fated)) == len(found.files)
        )
        keys: dict[str, list[Row]] = {}
        for row in await rows_of_snapshot(self.fated, found):
            keys.setdefault(row.key, []).append(row)
        assert all(
            row.offset == rows[0].offset + at
            for rows in keys.values()
            for at, row in enumerate(rows)
        )
        return "\n".join(
            f"{key} from {rows[0].offset}: {json_of([row.message for row in rows])}"
            for key, rows in keys.items()
        )
