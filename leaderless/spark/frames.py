"""A log as a frame whose files Spark reads by itself: the fast way to a table.

Spark's reader of Parquet is several times faster than any data source in Python. A plan divides one version of
the log into three parts, which have each record once:

1. the records in files, with their values: for Spark's own reader. The end of the log, which was in no file, is
   in one that the plan has written, unless it is long or has large values;
2. the records in files whose values stand in objects of their own: for the data source, if there are any;
3. what is left, slots from `end` on: for the data source, which finds them wherever compaction has moved them
   meanwhile.

The files never change. Compaction keeps those that it replaces, for the retention of readers. Parts 2 and 3 are
named by their slots, so compaction does not change what they have.
"""

import re
import time
from collections.abc import Sequence
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.functions import col
from pyspark.sql.types import StringType, StructField, StructType

from leaderless.errors import Definite
from leaderless.spark.predicate import ALL, Predicate
from leaderless.spark.reading import look
from leaderless.spark.settings import READ, count_in, place_in, predicate_in, require_known
from leaderless.spark.source import COLUMNS, TYPES
from leaderless.store.calls import each_of, in_thread
from leaderless.store.files import Gone, files_of
from leaderless.store.port import Store
from leaderless.table.runs import FOLDER
from leaderless.table.snapshot import FileRef, reader_of, snapshot

SEGMENTS_MAX = (
    32  # of a tail that is written as a file; where compaction keeps up it has half of them
)
KEPT_S = 3600.0  # such files; compaction keeps those that it replaces as long
TAILS = TemporaryDirectory(prefix="leaderless-", ignore_cleanup_errors=True)  # of this process
_GLOB = re.compile(r"([][*?{}\\])")
OPTIONS = (*READ, "asOfVersion")
# A file that is missing must end the query, whatever the session says: half a table would be no answer.
STRICT = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


class ScanPlan(NamedTuple):
    """What is read: slots `start` to `version` - 1.

    `files`: paths as Spark takes them, without the scheme; they hold the slots below `end` of the wanted keys.
    `divided`: whether they may hold slots from `end` on, too. `has_large`: whether those below slot `sealed`
    have records whose values stand in objects of their own.
    """

    files: tuple[str, ...]
    start: int
    end: int
    version: int
    divided: bool = False
    has_large: bool = False
    sealed: int = 0


async def plan_of(store: Store, as_of: int | None, predicate: Predicate) -> ScanPlan:
    """The plan for the log in a store as it is now, or as it was when it had `as_of` batches.

    Without files on a local disk all of it is part 3. Raises `LogError`, such as `OtherFormat` for a file of a
    newer program.
    """
    files = files_of(store)
    is_local = files is not None and files.location(FOLDER).startswith("/")
    most = SEGMENTS_MAX if is_local else -1
    found = await snapshot(store, as_of, keys=predicate.keys, segments_max=most)
    start, version = found.start, found.version
    if files is None or not is_local or any(ref.kind != "parquet" for ref in found.files):
        return ScanPlan((), start, start, version)
    wanted = [ref for ref in found.files if predicate.may_hold(ref.keys)]
    large = await _any_large(store, wanted)
    paths = [files.location(ref.path) for ref in wanted]
    sealed = end = min(version, found.files[-1].end if found.files else start)
    if found.has_tail and found.tail["message"].null_count == found.tail.num_rows:
        end = version
        paths += _written(store, found.tail) if found.tail.num_rows else []
    names = tuple(_GLOB.sub(r"\\\1", path) for path in paths)
    divided = any(ref.end > version for ref in wanted)
    return ScanPlan(names, start, end, version, divided, large, sealed)


def _written(store: Store, tail: pa.Table) -> list[str]:
    """Write the end of a log as a file; deletes those of this log that no reader needs any more."""
    folder, log = Path(TAILS.name), sha256(store.url.encode()).hexdigest()[:16]
    for old in folder.glob(f"{log}-*"):
        if old.stat().st_mtime < time.time() - KEPT_S:
            old.unlink(missing_ok=True)
    path = folder / f"{log}-{token_hex(8)}.parquet"
    pq.write_table(tail, path)
    return [str(path)]


async def _any_large(store: Store, refs: Sequence[FileRef]) -> bool:
    """Whether one of the files has such records. Each file's footer is read, which checks its format, too."""
    looked = each_of(refs, lambda ref: in_thread(partial(_has_large, store, ref)))
    return any([is_large async for _, is_large in looked])


def _has_large(store: Store, ref: FileRef) -> bool:
    try:
        reader = reader_of(store, ref)
    except Gone as gone:
        raise Definite(f"{gone}: it was replaced meanwhile; read again") from gone
    return any(reader.has(place, "message") for place in range(reader.row_groups))


def read_log(spark: SparkSession, url: str, **options: str | int) -> DataFrame:
    """One version of a log as a frame, with the columns of the data source.

    The version is fixed by this call: each action on the frame sees the same records. Spark's own reader reads
    the log's Parquet files if they are on a local disk, as those of a `sqlite:` store are. This call writes the
    end of the log, which is in no file, into a temporary one. The data source reads what is left: files that
    are elsewhere, large values, an end that compaction has not reached. Then it must be registered
    (`spark.dataSource.register(LeaderlessDataSource)`).

    Args:
        spark: the session.
        url: the store.
        options: those of the data source for tables: topic, endpoint, region, accessKey, secretKey, keys,
            startOffset, endOffset, asOfVersion.
    Raises:
        Unfit: an option is wrong, or there is no such version.
        LogError: there is no log, or the store says no.
    """
    require_known(options, OPTIONS)
    asked = CaseInsensitiveDict({name: str(value) for name, value in options.items()}, url=url)
    predicate = predicate_in(asked)
    make = partial(plan_of, as_of=count_in(asked, "asOfVersion"), predicate=predicate)
    plan = look(place_in(asked), make)
    source = spark.read.format("leaderless").options(**asked)
    parts = [_in_files(spark, plan, predicate)] if plan.files else []
    if plan.end < plan.version or not parts:
        parts.append(_slots(source, plan.end, plan.version))
    if plan.has_large:
        parts.append(_slots(source.option("large", "true"), plan.start, plan.sealed))
    return reduce(DataFrame.unionAll, parts)


def _slots(source: DataFrameReader, first: int, end: int) -> DataFrame:
    """What the data source has of slots `first` to `end` - 1."""
    return source.option("sinceVersion", first).option("asOfVersion", end).load()


def _in_files(spark: SparkSession, plan: ScanPlan, predicate: Predicate) -> DataFrame:
    """The records of files that have their values."""
    schema = StructType([*COLUMNS, StructField("message", StringType())])
    paths = [f"file://{path}" for path in plan.files]
    frame = spark.read.schema(schema).options(**STRICT).parquet(*paths)
    if plan.has_large:
        frame = frame.where(col("message").isNull())
    if plan.divided:
        frame = frame.where(col("slot") < plan.end)
    if predicate.keys is not None:
        frame = frame.where(col("key").isin(sorted(predicate.keys)))
    if predicate.offset != ALL:
        frame = frame.where(col("offset").between(*predicate.offset))
    return frame.select(*TYPES)
