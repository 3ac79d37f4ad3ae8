"""One run into the lake.

Each file is read once. Only where bad lines were counted on the way is it read again, to number and
keep them: most runs have none.
"""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from analysis.errors import AnalysisError
from analysis.ingest import facts, history, journal
from analysis.ingest.lines import good, quarantined, read_lines
from analysis.lake import TABLES_VERSION, Lake, Write
from analysis.schemas.tables import MESSAGES, QUARANTINE, RUNS
from analysis.sources import Run


@dataclass(frozen=True)
class Ingested:
    """What became of one run: `fresh` is false when the lake already held it as it is now."""

    run: Run
    fresh: bool


def ingest_run(spark: SparkSession, lake: Lake, run: Run) -> Ingested:
    """Write all tables of `run` and then commit them in one step.

    Nothing is done when the lake holds this run, read from the same files, by the same version of
    the tables. A run that changed replaces its former self.

    Raises:
        AnalysisError: the lake holds another run of this name.
    """
    commit = lake.commit_of(run.run_id)
    if commit and commit.source != str(run.folder):
        raise AnalysisError(
            f"the lake {lake.folder} already has a run {run.run_id}, read from {commit.source}\n"
            "Rename this run's folder, or ingest it into a lake of its own (--lake)."
        )
    # Taken before reading: a file that grows meanwhile is read again the next time.
    fingerprint = f"{TABLES_VERSION}-{run.fingerprint()}"
    if commit and commit.fingerprint == fingerprint:
        return Ingested(run, fresh=False)
    _write(spark, lake, run, fingerprint)
    return Ingested(run, fresh=True)


def _write(spark: SparkSession, lake: Lake, run: Run, fingerprint: str) -> None:
    row, problems = facts.run_facts(run)
    with lake.writing(run.run_id, source=str(run.folder), fingerprint=fingerprint) as write:
        write("runs", spark.createDataFrame([row], RUNS))
        bad = [
            *_write_history(spark, run, write),
            *_write_messages(spark, run, write),
            spark.createDataFrame(problems, QUARANTINE),
        ]
        write("quarantine", reduce(DataFrame.unionByName, bad))


def _write_history(spark: SparkSession, run: Run, write: Write) -> list[DataFrame]:
    """Writes operations and faults; returns the lines for the quarantine, if there are any."""
    bad, orphans = Observation(), Observation()
    lines = read_lines(spark, [run.history])
    pairs = history.paired(good(history.parse_history(lines), bad))
    observed = pairs.observe(orphans, F.count(history.orphan_reason()).alias("count"))
    write("operations", history.operations(observed))
    write("faults", history.faults(good(history.parse_history(history.may_be_nemesis(lines)))))
    if not bad.get["count"] + orphans.get["count"]:
        return []
    rows = history.parse_history(read_lines(spark, [run.history], numbered=True))
    pairs = history.paired(good(rows)).withColumn("reason", history.orphan_reason())
    return [quarantined(rows), quarantined(pairs)]


def _write_messages(spark: SparkSession, run: Run, write: Write) -> list[DataFrame]:
    """Writes messages; returns the lines for the quarantine, if there are any."""
    if not run.journal:
        write("messages", spark.createDataFrame([], MESSAGES))
        return []
    bad = Observation()
    rows = journal.parse_journal(read_lines(spark, run.journal))
    write("messages", journal.messages(good(rows, bad)))
    if not bad.get["count"]:
        return []
    return [quarantined(journal.parse_journal(read_lines(spark, run.journal, numbered=True)))]
