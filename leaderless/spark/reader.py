"""The readers of Spark's data source API: batches and streams of a log."""

import logging
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from leaderless.errors import Unfit
from leaderless.spark.positions import advance, end_of, require_start, span_of
from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reading import SLICE_BYTES, look, slices, snapshot_of, wanted_rows
from leaderless.spark.settings import Place
from leaderless.table.snapshot import cut_snapshot

log: logging.Logger = logging.getLogger("leaderless")

EVERYTHING = (
    "this read takes the whole log at %s, %d MB in files: a filter on key or offset is applied after that. "
    "Set the option keys=..., startOffset or endOffset, or use read_log"
)


class Scan(NamedTuple):
    """What is read: columns of the records that `predicate` wants."""

    place: Place
    columns: pa.Schema
    predicate: Predicate

    def parts(self, as_of: int | None, since: int | None = None) -> list[InputPartition]:
        """The partitions of the log, or of its first `as_of` batches, without the first `since` of them.

        A log message says so if they are all of a large log. Raises `Unfit` when the log has lost batches from
        `since` on.
        """
        found = snapshot_of(self.place, as_of)
        if since is not None and since < found.start:
            text = f"batches below {found.start} have left the log by retention"
            raise Unfit(f"{text}, so there is no table since version {since}")
        wanted = self.predicate._replace(slot=Range(first=since or 0))
        size = sum(ref.size or 0 for ref in found.files)
        if self.columns.names and wanted == Predicate() and size > SLICE_BYTES:
            log.warning(EVERYTHING, self.place.url, size // 1_000_000)
        return [InputPartition(each) for each in slices(found, wanted)]

    def step(self, first: int, end: int, *, strict: bool) -> list[InputPartition]:
        """The partitions of batches `first` to `end` - 1, for a stream.

        Raises `Definite` when a retention has deleted some of them, or leaves those out, unless `strict`.
        """
        found = snapshot_of(self.place)
        if strict:
            require_start(first, found.start)
        if end <= found.start:
            return []
        wanted = self.predicate._replace(slot=Range(first, end - 1))
        return [InputPartition(each) for each in slices(cut_snapshot(found, end), wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; none for the empty one that Spark makes when there is nothing to read."""
        if partition.value is None:
            return iter(())
        return wanted_rows(self.place, partition.value, self.predicate, self.columns)


class TableReader(DataSourceReader):
    """Reads a prefix of the log: all of it, or its first `as_of` batches; or what follows the first `since`."""

    def __init__(self, scan: Scan, since: int | None, as_of: int | None) -> None:
        self._scan = scan
        self._since = since
        self._as_of = as_of

    def partitions(self) -> list[InputPartition]:
        """What the tasks read."""
        return self._scan.parts(self._as_of, self._since)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        return self._scan.read(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as it grows. An offset is `{"slot": n}`: the first `n` batches of the log are read.

    `start`: "earliest", "latest" or a position. `rows_max`: of one micro-batch, about. `strict`: batches that
    a retention has deleted before the stream read them are an error; else the stream goes on without them.
    """

    def __init__(self, scan: Scan, start: str, rows_max: int | None, *, strict: bool) -> None:
        self._scan = scan
        self._start = start
        self._rows_max = rows_max
        self._strict = strict
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where a new query begins."""
        first, end = look(self._scan.place, span_of)
        named = {"earliest": first, "latest": end}
        position = named[self._start] if self._start in named else int(self._start)
        if position > end:
            raise Unfit(f"start: the log has {end} batches, so there is no position {position}")
        if self._strict:
            require_start(position, first)
        return {"slot": position}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of a micro-batch."""
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Where the next micro-batch ends."""
        end = self._end()
        if isinstance(limit, ReadMaxRows) and end > start["slot"]:
            forward = partial(advance, start=start["slot"], rows_max=limit.max_rows)
            end = min(end, look(self._scan.place, forward))
        if self._until is not None:
            end = min(end, self._until)
        return {"slot": max(start["slot"], end)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """The end of the log, for the query's progress."""
        return {"slot": self._end()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no further than the log is now."""
        self._until = self._end()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """What the tasks of a micro-batch read."""
        return self._scan.step(start["slot"], end["slot"], strict=self._strict)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What one task reads."""
        return self._scan.read(partition)

    def _end(self) -> int:
        return look(self._scan.place, end_of)


def start_of(text: str | None) -> str:
    """The option `start`. Raises `Unfit`."""
    found = text or "earliest"
    if found not in ("earliest", "latest") and not found.isdecimal():
        raise Unfit(f"the option start is earliest, latest or a position, not {text!r}")
    return found
