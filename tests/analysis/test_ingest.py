"""Runs into the lake: twice is once, a kill is nothing, URIs are paths; lean and compact copies."""

from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest
from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession

from analysis.errors import AnalysisError
from analysis.finding import find_runs
from analysis.lake import Lake, copy, ingest
from analysis.rows import version_of
from analysis.schemas import TABLES
from tests.datadriven.files_of_a_run import operations
from tests.runs.test_rows import RUN, Row
from tests.stores import write_lines

pytestmark = [pytest.mark.spark, pytest.mark.slow]
POLLS = [*operations(["; ".join(f"{10 * n} invoke {n} poll" for n in range(9))])]


def make_run(folder: Path, lines: list[Row]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "history.jsonl", lines)
    return folder


def read_in(spark: SparkSession, lake: Lake, *folders: Path | str) -> list[bool]:
    """Ingest the runs in these folders; which of them were fresh."""
    runs = [run for folder in folders for run in find_runs(folder)]
    return [done.fresh for done in ingest(spark, lake, runs)]


def versions(root: Path) -> int:
    return len(list(root.glob("lake/operations/run_id=*/version=*")))


def test_twice_is_once_and_a_changed_run_replaces_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, lake = make_run(tmp_path / "kafka" / RUN, POLLS[:2]), Lake(tmp_path / "lake")
    assert [read_in(spark, lake, folder) for _ in range(2)] == [[True], [False]]
    make_run(folder, POLLS)
    assert read_in(spark, lake, folder) == [True]
    assert lake.table(spark, "operations").count() == 9
    assert plain_counts(spark, tmp_path / "lake") == [9, 9, 9]
    assert versions(tmp_path) == 1
    # Versions are text: Spark would read the name of a folder such as `version=1e5` as a number.
    assert lake.held(spark) == {f"kafka-{RUN}": (version_of(find_runs(folder)[0]), str(folder))}
    make_run(folder, [])  # a table without rows has none of the former version either
    assert read_in(spark, lake, folder) == [True]
    assert lake.table(spark, "operations").isEmpty()
    assert lake.table(spark, "runs").count() == 1


def test_an_ingest_that_is_killed_before_any_table_shows_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each leaves half a file, and meets what the former ones left; so does the one that comes to its end."""
    folder, lake = make_run(tmp_path / "kafka" / RUN, POLLS[:2]), Lake(tmp_path / "lake")
    read_in(spark, lake, folder)
    make_run(folder, POLLS)
    write = Lake.write
    for last in ("operations", "runs"):  # the first and the last that is written

        def die(self: Lake, name: str, frame: DataFrame, last: str = last) -> None:
            if name == last:
                half = tmp_path / "lake" / name / "_temporary" / "part-0.parquet"
                half.parent.mkdir(parents=True)
                half.write_bytes(b"PAR1")
                raise InterruptedError
            write(self, name, frame)

        with pytest.raises(InterruptedError), patch.object(Lake, "write", die):
            read_in(spark, lake, folder)
        assert lake.table(spark, "operations").count() == 2
    assert read_in(spark, lake, folder) == [True]
    assert lake.table(spark, "operations").count() == 9
    assert plain_counts(spark, tmp_path / "lake") == [9, 9, 9]
    assert versions(tmp_path) == 1


def test_what_a_kill_left_is_removed_when_it_is_old(spark: SparkSession, tmp_path: Path) -> None:
    folder, lake = make_run(tmp_path / "kafka" / RUN, POLLS), Lake(tmp_path / "lake")
    read_in(spark, lake, folder)
    gone = tmp_path / "lake/operations/run_id=gone/version=1"
    gone.mkdir(parents=True)
    (gone / "part-0.parquet").write_bytes(b"PAR1")
    lake.delete_leftovers(spark, [])
    assert versions(tmp_path) == 2
    lake.delete_leftovers(spark, [], min_age_ms=0)
    assert versions(tmp_path) == 1


def plain_counts(spark: SparkSession, lake: Path) -> list[int]:
    """Operations as those count them who join no version: right, unless a kill left some."""
    folder = lake / "operations"
    files = f"{folder}/run_id=*/version=*/*.parquet"  # as docs/analysis/notebooks.md has it
    counts = duckdb.sql(f"select count(*) from read_parquet('{files}')")
    assert counts
    ((counted,),) = counts.fetchall()
    return [
        spark.read.parquet(str(folder)).count(),
        counted,
        dataset(folder, partitioning="hive").count_rows(),
    ]


def test_uris_are_read_and_written_as_paths_are(spark: SparkSession, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a b%20é" / "kafka" / RUN, [*POLLS[:1], {"index": 1}])
    (tmp_path / "a b%20é" / "latest").symlink_to(run)
    lake = Lake(f"file://{tmp_path}/lake é")
    uri = f"file://{tmp_path}/a b%20é"
    assert [read_in(spark, lake, uri) for _ in range(2)] == [[True], [False]]
    assert lake.table(spark, "operations").count() == 1
    (bad,) = lake.table(spark, "quarantine").collect()
    assert (bad.file, bad.line, bad.workload, bad.program) == (
        "history.jsonl",
        2,
        "kafka",
        "a b%20é",
    )


def test_what_is_no_lake_of_this_version_or_another_run_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(AnalysisError, match="there is no lake"):
        lake.table(spark, "runs")
    a, b = (make_run(tmp_path / store / "kafka" / RUN, POLLS) for store in "ab")
    read_in(spark, lake, a)
    with pytest.raises(AnalysisError, match="already has a run kafka-20260101"):
        read_in(spark, lake, b)
    with pytest.raises(AnalysisError, match="does not hold other"):
        lake.table(spark, "runs", ["other"])
    monkeypatch.setattr("analysis.lake.TABLES_VERSION", 6)
    with pytest.raises(AnalysisError, match="tables of another version; ingest again"):
        read_in(spark, lake, a)


def test_many_runs_are_told_and_copied_into_few_files(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        make_run(tmp_path / "results" / f"run{number}", POLLS[:1])
    lake, told = Lake(tmp_path / "lake"), list[int]()
    runs = find_runs(tmp_path / "results")
    assert [done.fresh for done in ingest(spark, lake, runs, told.append)] == [True] * 3
    assert told == sorted(told)
    assert set(told) <= {0, 1, 2, 3}
    former = tmp_path / "small" / "operations.parquet" / "part-0.parquet"
    former.parent.mkdir(parents=True)
    former.write_bytes(b"PAR1")  # a copy takes its place
    copy(spark, lake, tmp_path / "small", lean=False)
    assert len(list((tmp_path / "small" / "operations.parquet").glob("*.parquet"))) == 1
    for name in ("runs", "operations"):
        rows = sorted(lake.table(spark, name).collect())
        assert sorted(Lake(tmp_path / "small").table(spark, name).collect()) == rows
    assert {each.name for each in (tmp_path / "small").glob("*.parquet")} == {
        f"{n}.parquet" for n in TABLES
    }
