"""Runs into the lake, many at a time.

Each large file is read once, and its few lines about faults a second time. Only where bad lines were seen
on the way is a file read again, to number and keep them: most runs have none.

Runs are taken in batches, each of which is one chain of Spark jobs and one commit. Small runs are kept
together, one task and one file of each table for a run; a large one is a batch of its own, spread by
process and by message.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.errors import AnalysisError
from analysis.finding import Run
from analysis.ingest import history, journal, small
from analysis.ingest.lines import Source, bad_files, good, observe_bad, quarantined, read_lines
from analysis.lake import TABLES_VERSION, Held, Lake, Write
from analysis.schemas import MESSAGES, RUN_ID
from runs.history import NEMESIS

LARGE_BYTES = 128 << 20  # a run from this size on is a batch of its own
BATCH_BYTES, BATCH_RUNS = 512 << 20, 250
PARTITION_BYTES = 32 << 20  # of text, for each task after a shuffle
_GZIP_RATIO = 8  # journals shrink to an eighth or so


@dataclass(frozen=True)
class Ingested:
    """What became of one run: `fresh` is false when the lake already held it as it is now."""

    run: Run
    fresh: bool


def ingest_run(spark: SparkSession, lake: Lake, run: Run) -> Ingested:
    """`ingest` of one run."""
    (done,) = ingest(spark, lake, [run])
    return done


def ingest(spark: SparkSession, lake: Lake, runs: Sequence[Run]) -> Iterator[Ingested]:
    """Write all tables of `runs`; those of a batch are told when they have been committed.

    Nothing is done about a run that the lake holds, read from the same files, by the same version of
    the tables. A run that changed replaces its former self.

    Raises:
        AnalysisError: the lake, or another of `runs`, has another run of the same name.
    """
    lake.finish(spark)
    held = {each.run_id: each for each in lake.runs(spark)}
    _require_distinct(lake, held, runs)
    fresh: dict[str, Held] = {}
    for run in runs:
        # Taken before reading: a file that grows meanwhile is read again the next time.
        now = Held(run.run_id, run.folder, f"{TABLES_VERSION}-{run.fingerprint()}")
        if held.get(run.run_id) == now:
            yield Ingested(run, fresh=False)
        else:
            fresh[run.run_id] = now
    for batch in batches([run for run in runs if run.run_id in fresh]):
        with lake.writing(spark, [fresh[run.run_id] for run in batch]) as write:
            _write(spark, batch, write)
        yield from (Ingested(run, fresh=True) for run in batch)
    lake.delete_leftovers(spark)


def _require_distinct(lake: Lake, held: dict[str, Held], runs: Sequence[Run]) -> None:
    sources = {each.run_id: each.source for each in held.values()}
    for run in runs:
        if sources.setdefault(run.run_id, run.folder) != run.folder:
            raise AnalysisError(
                f"the lake {lake.folder} already has a run {run.run_id}, read from"
                f" {sources[run.run_id]}\n"
                f"Rename {run.folder}, or ingest it into a lake of its own (--lake)."
            )


def batches(
    runs: Sequence[Run],
    *,
    large_bytes: int = LARGE_BYTES,
    batch_bytes: int = BATCH_BYTES,
    batch_runs: int = BATCH_RUNS,
) -> Iterator[list[Run]]:
    """The runs, in order, in groups of bounded number and size; each large one alone."""
    batch: list[Run] = []
    for run in runs:
        if _text_bytes(run) >= large_bytes:
            yield [run]
            continue
        if len(batch) == batch_runs or sum(map(_text_bytes, [*batch, run])) > batch_bytes:
            yield batch
            batch = []
        batch.append(run)
    if batch:
        yield batch


def _text_bytes(run: Run) -> int:
    """About how much text its history and journal are."""
    files = (run.history, *run.files.journal)
    return sum(
        file.size_bytes * (_GZIP_RATIO if file.name.endswith(".gz") else 1) for file in files
    )


def _spread(frame: DataFrame, runs: Sequence[Run], key: str) -> DataFrame:
    """Rows placed for a join or window by run and `key`: whole runs together unless there is one."""
    text_bytes = sum(map(_text_bytes, runs))
    parallel = frame.sparkSession.sparkContext.defaultParallelism
    partitions = max(parallel, -(-text_bytes // PARTITION_BYTES))
    if text_bytes < PARTITION_BYTES:
        partitions = 1
    elif len(runs) > 1:
        return frame.repartition(min(partitions, len(runs)), "run_id")
    return frame.repartition(partitions, "run_id", key)


def _write(spark: SparkSession, runs: Sequence[Run], write: Write) -> None:
    options, unread = small.options(spark, runs)
    results = small.results(spark, runs)
    write("runs", small.runs_table(options, results))
    write("anomalies", results.select("run_id", F.inline("anomalies")))
    quarantine = [
        unread,
        results.select("run_id", F.inline("problems")),
        *_write_history(spark, runs, options, write),
        *_write_messages(spark, runs, write),
    ]
    write("quarantine", reduce(_union, quarantine))
    results.unpersist()


def _union(some: DataFrame, others: DataFrame) -> DataFrame:
    return some.unionByName(others)


def _write_history(
    spark: SparkSession, runs: Sequence[Run], options: DataFrame, write: Write
) -> list[DataFrame]:
    """Writes operations and faults; returns the lines for the quarantine, if there are any."""
    bad, orphans = Observation(), Observation()
    sources = [Source(run, run.history) for run in runs]
    rows = good(history.parse_history(read_lines(spark, sources)), bad)
    pairs = history.paired(_spread(rows, runs, "process"))
    placement = options.select("run_id", "nodes", "concurrency")
    write(
        "operations",
        history.operations(observe_bad(pairs, history.orphan_reason(), orphans), placement),
    )
    about_faults = read_lines(spark, sources, containing=NEMESIS)
    write("faults", history.faults(good(history.parse_history(about_faults))))
    again = bad_files(sources, bad, orphans)
    if not again:
        return []
    rows = history.parse_history(read_lines(spark, again, numbered=True))
    orphaned = history.paired(good(rows)).withColumn("reason", history.orphan_reason())
    return [quarantined(rows), quarantined(orphaned)]


def _write_messages(spark: SparkSession, runs: Sequence[Run], write: Write) -> list[DataFrame]:
    """Writes messages; returns the lines for the quarantine, if there are any."""
    bad = Observation()
    sources = [Source(run, file) for run in runs for file in run.files.journal]
    if not sources:
        write("messages", spark.createDataFrame([], StructType([RUN_ID, *MESSAGES])))
        return []
    rows = good(journal.parse_journal(read_lines(spark, sources)), bad)
    write("messages", journal.messages(_spread(rows, runs, "message.id")))
    again = bad_files(sources, bad)
    return (
        [quarantined(journal.parse_journal(read_lines(spark, again, numbered=True)))]
        if again
        else []
    )
