"""The sink: writers of Spark's data source API. What makes it exactly once stands in `epochs`."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import anyio
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from leaderless.errors import LogError, NotInitialised, Unfit
from leaderless.hosting.place import ensure_log, require_log
from leaderless.spark.encoding import rows_of
from leaderless.spark.epochs import abort, commit
from leaderless.spark.reading import with_store
from leaderless.spark.settings import Place
from leaderless.spark.staging import Epoch, stage
from leaderless.store.files import files_of
from leaderless.store.port import Store
from leaderless.table.pieces import rare_collections
from leaderless.upkeep.staged import attempt_name

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"  # properties of Spark's tasks
Messages = Sequence[WriterCommitMessage | None]


@dataclass
class Staged(WriterCommitMessage):
    """What one task has staged, and of which writer."""

    writer: str
    parts: list[str]


@dataclass(frozen=True)
class Target:
    """Where rows go. `plain_text`: whether strings are text, not JSON."""

    place: Place
    plain_text: bool

    def stage(self, epoch: Epoch, batches: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one attempt of a task."""
        rows = (rows_of(batch, plain_text=self.plain_text) for batch in batches)
        task = _task()
        folder = f"{epoch.folder}/{attempt_name(task.partitionId(), task.taskAttemptId())}"
        with rare_collections():
            parts = anyio.run(with_store, self.place, partial(stage, folder=folder, tables=rows))
        return Staged(epoch.writer, parts)

    def commit(self, epoch: Epoch, parts: list[str]) -> None:
        """Append what was staged for an epoch, or what an earlier commit of it has planned."""
        with rare_collections():
            anyio.run(with_store, self.place, partial(self._commit, epoch=epoch, parts=parts))

    async def _commit(self, store: Store, epoch: Epoch, parts: list[str]) -> None:
        try:
            await require_log(store)
        except NotInitialised:
            if not parts:
                return
            # Its runs are Parquet where that can be.
            await ensure_log(store, "parquet" if files_of(store) else None)
        async with self.place.log() as log:
            await commit(log, store, epoch, parts)

    def abort(self, epoch: Epoch, parts: list[str]) -> None:
        """Delete what was staged for an epoch that failed; tasks that were killed leave theirs."""
        anyio.run(with_store, self.place, partial(abort, epoch=epoch, parts=parts))


class StreamSink(DataSourceStreamArrowWriter):
    """Writes a stream; its writer is the query, by the id that its checkpoint keeps."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage what one task has."""
        task = _task()
        query, number = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        if query is None or number is None:
            raise LogError("Spark gave this task no id of its query: run it in micro-batches")
        return self._target.stage(Epoch(f"spark/{query}", int(number)), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append an epoch.

        Each task tells the query. Without a message it is not known, and nothing is done; what the epoch may
        have planned before is appended with the query's next epoch.
        """
        for epoch, parts in _epochs(batchId, messages):
            self._target.commit(epoch, parts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Give an epoch up."""
        for epoch, parts in _epochs(batchId, messages):
            self._target.abort(epoch, parts)


class BatchSink(DataSourceArrowWriter):
    """Writes a frame. `name`: the same name appends nothing twice; None: each write is one of its own."""

    def __init__(self, target: Target, name: str | None) -> None:
        self._target = target
        self._epoch = Epoch(f"spark/{name or secrets.token_hex(16)}", 0)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage what one task has."""
        return self._target.stage(self._epoch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append all of it, or what an earlier write of this name has planned, also when this one is empty."""
        self._target.commit(self._epoch, _parts(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give it up."""
        self._target.abort(self._epoch, _parts(messages))


def target_of(place: Place, values: str | None, *, overwrite: bool) -> Target:
    """Where a writer writes. `values`: the option of that name. Raises `Unfit`."""
    if overwrite:
        raise Unfit("a log is not overwritten: write with mode('append'), or outputMode('append')")
    if values not in (None, "json", "text"):
        raise Unfit(f"the option values is json or text, not {values!r}")
    return Target(place, values == "text")


def _epochs(number: int, messages: Messages) -> list[tuple[Epoch, list[str]]]:
    """The epoch that messages are of, with all its parts; none without messages."""
    writers = sorted({cast(Staged, each).writer for each in messages if each is not None})
    return [(Epoch(writer, number), _parts(messages, writer)) for writer in writers]


def _parts(messages: Messages, writer: str | None = None) -> list[str]:
    """What tasks have staged, of one writer, or of any."""
    found = [cast(Staged, message) for message in messages if message is not None]
    return [part for each in found if writer in (None, each.writer) for part in each.parts]


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "Spark calls `write` in a task"
    return task
