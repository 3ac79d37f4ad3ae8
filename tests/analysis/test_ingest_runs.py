"""What a run is told to be: its strategy, sweep, faults, nodes and anomalies; many at a time; kills."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow.dataset import dataset
from pyspark.sql import SparkSession

from analysis.finding import Run, find_run, find_runs
from analysis.hadoop import Files
from analysis.ingest import batched, ingest
from analysis.ingest.small import of_results
from analysis.lake import Lake
from analysis.packed import Packed, compact
from analysis.schemas import TABLES
from leaderless.core.strategies import DEFAULT
from runs.facts import DEFAULT_STRATEGY, Settings
from runs.faults import injections
from runs.files import LAKE_STAGED, File, RunFiles
from runs.history import read_history
from tests.stores import write_lines

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def line(index: int, kind: str, process: int | str, f: str, value: Any = None) -> dict[str, Any]:
    time_ns = index * 10
    return {
        "index": index,
        "time": time_ns,
        "type": kind,
        "process": process,
        "f": f,
        "value": value,
    }


def make_run(folder: Path, lines: list[dict[str, Any]], **options: Any) -> Path:
    folder.mkdir(parents=True)
    write_lines(folder / "history.jsonl", lines)
    (folder / "test.json").write_text(json.dumps(options))
    return folder


def read(spark: SparkSession, root: Path, *tables: str) -> list[list[dict[str, Any]]]:
    lake = Lake(root / "lake")
    assert list(ingest(spark, lake, find_runs(root / "results")))
    return [[row.asDict() for row in lake.table(spark, name).collect()] for name in tables]


def test_operations_name_their_node(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line(n, "invoke", process, "poll") for n, process in enumerate([0, 3, 4, 7, 102])]
    lines.append(line(5, "invoke", 107, "poll") | {"node": "d"})  # its worker's first node has left
    make_run(tmp_path / "results" / "known", lines, nodes=["a", "b", "c"], concurrency=5)
    make_run(tmp_path / "results" / "unknown", lines, nodes=["a"])
    (operations,) = read(spark, tmp_path, "operations")
    nodes = {(row["run_id"], row["process"]): row["node"] for row in operations}
    # Worker 2 works as process 2, 7, ..., 102 and speaks to the third node; workers 3 and 4 begin again.
    assert [nodes["known", process] for process in (0, 3, 4, 7, 102)] == ["a", "a", "b", "c", "c"]
    assert nodes["known", 107] == "d"
    assert {nodes["unknown", process] for process in (0, 3, 4, 7, 102)} == {None}


def test_faults_of_all_kinds_may_overlap(spark: SparkSession, tmp_path: Path) -> None:
    deeds = ["kill", "start-loss", "kill", "start", "pause", "stop-loss", "start-new"]
    lines = [
        line(2 * n + half, "info", "nemesis", f, [f, half])
        for n, f in enumerate(deeds)
        for half in (0, 1)
    ]
    make_run(tmp_path / "results" / "run", lines)
    (faults,) = read(spark, tmp_path, "faults")
    found = [(row["kind"], row["started_ns"], row["ended_ns"]) for row in faults]
    assert sorted(found, key=lambda fault: fault[1]) == [
        ("kill", 0, 70),
        ("loss", 20, 110),
        ("kill", 40, 70),  # `start` starts every node
        ("pause", 80, None),
        ("new", 120, None),
    ]


def test_mute_nodes_are_faults_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    deeds = [("mute", "n1"), ("mute", "n2"), ("heard", "n1"), ("mute", "n1"), ("kill", "n1")]
    lines = [line(n, "info", "nemesis", f, {"node": node}) for n, (f, node) in enumerate(deeds)]
    folder = make_run(tmp_path / "results" / "run", lines)
    (faults,) = read(spark, tmp_path, "faults")
    found = [{name: row[name] for name in row if name != "run_id"} for row in faults]
    defined = [each.row() for each in injections(read_history(folder / "history.jsonl"))]
    assert sorted(found, key=lambda row: row["started_ns"]) == defined
    assert [(row["kind"], row["ended_ns"]) for row in defined][:2] == [("mute", 20), ("mute", None)]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"bin": "/x/run.sh", "args": ["--freshness", "0", "--strategy", "cas"]}, "cas"),
        ({"bin": "other", "args": ["--strategy=cas"]}, None),
        ({"bin": "./run.sh", "args": []}, DEFAULT_STRATEGY),
        ({"bin": "other", "args": ["--strategy"]}, None),
        ({"bin": "simulated", "args": [], "scenario": {"strategy": "cas"}}, "cas"),
        ({"bin": "run.sh", "args": "--strategy=cas"}, "cas"),
        ({"bin": None, "args": None}, None),
        ({}, None),
    ],
)
def test_the_strategy_is_read_from_the_arguments(options: dict[str, Any], name: str | None) -> None:
    assert Settings.of(options).strategy == name


def test_the_default_strategy_is_that_of_the_node() -> None:
    assert DEFAULT_STRATEGY == DEFAULT


def test_a_sweep_tells_its_cells(spark: SparkSession, tmp_path: Path) -> None:
    sweep = tmp_path / "results" / "demo"
    for name in ("one", "two"):
        make_run(sweep / "cell" / "kafka" / name, [line(0, "invoke", 0, "poll")], nemesis=["kill"])
    entry = {"sweep": "demo", "cell": {"rate": 5}, "repetition": 2, "run": "cell/kafka/one"}
    (sweep / "index.jsonl").write_text(json.dumps(entry) + '\n{"sweep": "de')
    (rows,) = read(spark, tmp_path, "runs")
    found = {row["run_id"]: row for row in rows}
    names = ("sweep", "cell_json", "repetition", "faults")
    assert [found["one"][name] for name in names] == ["demo", '{"rate": 5}', 2, ["kill"]]
    assert found["two"]["sweep"] is None
    # Found above the path given.
    assert find_run(sweep / "cell" / "kafka" / "one").sweep is not None


def test_anomalies_are_listed_by_instance() -> None:
    text = """{:valid? false, :workload {:error-types (:poll-skip :unseen :int-send-skip :G1c),
      :bad-error-types (:poll-skip :unseen),
      :poll-skip {:count 7, :errs ({:key "5", :delta 2} {:key "6", :op #x.Op{:f :poll}})},
      :unseen {:time 3, :unseen {"5" 2, "9" 1}, :messages {"5" (1 2), "9" (4)}},
      :int-send-skip {:count 1, :errs ({:delta 1})},
      :G1c true}}"""
    found = of_results("r", "results.edn", text.encode())
    assert found["run"]["valid"] == "false"
    names = ("type", "invalidating", "count", "number", "key", "instance")
    assert [tuple(row[name] for name in names) for row in found["anomalies"]] == [
        ("poll-skip", True, 7, 0, "5", '{:key "5", :delta 2}'),
        ("poll-skip", True, 7, 1, "6", '{:key "6", :op #x.Op{:f :poll}}'),
        ("unseen", True, 3, 0, "5", '{:time 3, :unseen {"5" 2}, :messages {"5" (1 2)}}'),
        ("unseen", True, 3, 1, "9", '{:time 3, :unseen {"9" 1}, :messages {"9" (4)}}'),
        ("int-send-skip", False, 1, 0, None, "{:delta 1}"),
        ("G1c", False, 1, 0, None, "true"),
    ]


def test_anomalies_of_stores(spark: SparkSession, stores_lake: Lake) -> None:
    anomalies = stores_lake.table(spark, "anomalies").groupBy("run_id", "type").count().collect()
    found = {(row.run_id, row.type): row["count"] for row in anomalies}
    assert found["lost-writes-1-node", "lost-write"] == 2
    assert found["duplicates-partition-5-nodes", "duplicate"] == 24
    assert "valid-3-nodes" not in {run_id for run_id, _ in found}


def test_empty_files_are_told(spark: SparkSession, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "results" / "run", [])
    for name in ("results.edn", "net-journal.jsonl"):
        (folder / name).write_text("")
    operations, messages, quarantine = read(spark, tmp_path, "operations", "messages", "quarantine")
    assert (operations, messages) == ([], [])
    empty = {row["file"] for row in quarantine if row["reason"] == "the file is empty"}
    assert empty == {"history.jsonl", "results.edn", "net-journal.jsonl"}


def test_uris_are_read_and_written_as_paths_are(spark: SparkSession, tmp_path: Path) -> None:
    make_run(tmp_path / "a b%20é" / "kafka" / "run", [line(0, "invoke", 0, "poll"), {"index": 1}])
    (tmp_path / "a b%20é" / "latest").symlink_to(tmp_path / "a b%20é" / "kafka" / "run")
    lake = Lake(f"file://{tmp_path}/lake é")
    runs = find_runs(f"file://{tmp_path}/a b%20é")
    assert [done.fresh for done in ingest(spark, lake, runs)] == [True]
    assert [done.fresh for done in ingest(spark, lake, runs)] == [False]
    assert lake.table(spark, "operations").count() == 1
    (bad,) = lake.table(spark, "quarantine").collect()
    assert (bad.file, bad.line, bad.reason) == ("history.jsonl", 2, "no time")


def sized(name: str, size_bytes: int) -> Run:
    history = File("history.jsonl", size_bytes, "")
    return Run(name, f"/{name}", RunFiles(history))


def test_batches_are_bounded_and_large_runs_stand_alone() -> None:
    limits = {"large_bytes": 100, "batch_bytes": 120, "batch_runs": 3}
    sizes = {"a": 50, "b": 60, "huge": 100, "c": 20, "d": 1, "e": 1, "f": 99, "g": 30}
    found = batched.batches([sized(name, size) for name, size in sizes.items()], **limits)
    assert [[each.run_id for each in batch] for batch in found] == [
        ["huge"],  # told first: what waits for company comes later
        ["a", "b"],
        ["c", "d", "e"],
        ["f"],
        ["g"],
    ]


@pytest.mark.process
@pytest.mark.timeout(900)
def test_sigkill_in_the_middle_leaves_the_lake_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = make_run(tmp_path / "results" / "run", [line(0, "invoke", 0, "poll")])
    read(spark, tmp_path, "operations")
    write_lines(folder / "history.jsonl", [line(n, "invoke", n, "poll") for n in range(9)])
    message = {"id": 0, "src": "n0", "dest": "n1", "body": {"type": "x" * 1000}}
    journal = ({"id": n, "time": n, "type": "send", "message": message} for n in range(100_000))
    write_lines(folder / "net-journal.jsonl", journal)  # long to read, after operations are there
    command = [
        sys.executable,
        "-m",
        "analysis",
        "ingest",
        str(folder),
        "--lake",
        str(tmp_path / "lake"),
    ]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    written = (tmp_path / "lake" / LAKE_STAGED).glob
    while process.poll() is None and not list(written("*/operations/_SUCCESS")):
        time.sleep(0.01)  # until the second version is there, or the process has ended
    os.killpg(process.pid, signal.SIGKILL)  # Java too
    process.wait()
    lake = Lake(tmp_path / "lake")
    assert list(written("*/operations/_SUCCESS")), "it had written the operations"
    assert lake.table(spark, "operations").count() == 1
    assert plain_counts(spark, tmp_path / "lake") == [1, 1, 1]
    assert lake.table(spark, "messages").count() == 0
    assert [done.fresh for done in ingest(spark, lake, [find_run(folder)])] == [True]
    assert lake.table(spark, "operations").count() == 9
    assert plain_counts(spark, tmp_path / "lake") == [9, 9, 9]
    lake.delete_leftovers(spark, min_age_ms=0)
    assert not list(written("*"))


def plain_counts(spark: SparkSession, lake: Path) -> list[int]:
    """Operations as those count them who know nothing of commits."""
    folder = lake / "operations"
    files = f"{folder}/version=*/run_id=*/*.parquet"  # as docs/query-the-lake.md has it
    counts = duckdb.sql(f"select count(*) from read_parquet('{files}')")
    assert counts
    ((counted,),) = counts.fetchall()
    return [
        spark.read.parquet(str(folder)).count(),
        counted,
        dataset(folder, partitioning="hive").count_rows(),
    ]


class Killed(Exception):
    pass


@pytest.mark.parametrize("moved", [0, 1, 4])
def test_an_ingest_killed_after_its_commit_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    folder = make_run(tmp_path / "results" / "run", [line(0, "invoke", 0, "poll")])
    read(spark, tmp_path, "operations")
    write_lines(folder / "history.jsonl", [line(n, "invoke", n, "poll") for n in range(9)])
    move, moves = Files.move, iter(range(moved))

    def die(self: Files, source: str, target: str) -> None:
        if next(moves, None) is None:
            raise Killed
        move(self, source, target)

    lake = Lake(tmp_path / "lake")
    with monkeypatch.context() as patched:
        patched.setattr(Files, "move", die)
        with pytest.raises(Killed):
            list(ingest(spark, lake, [find_run(folder)]))
    assert lake.table(spark, "operations").count() == 9  # it was committed
    assert lake.table(spark, "runs").count() == 1
    assert [done.fresh for done in ingest(spark, lake, [find_run(folder)])] == [False]
    assert plain_counts(spark, tmp_path / "lake") == [9, 9, 9]
    assert not list((tmp_path / "lake" / LAKE_STAGED).iterdir())


def test_a_compacted_lake_has_all_rows_in_one_file_a_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(3):
        make_run(tmp_path / "results" / f"run{number}", [line(0, "invoke", 0, "poll")])
    lake = Lake(tmp_path / "lake")
    list(ingest(spark, lake, find_runs(str(tmp_path / "results"))))
    assert len(list((tmp_path / "lake" / "operations").glob("*/*/*.parquet"))) == 3
    for _ in range(2):  # the second takes the place of the first
        compact(spark, lake, tmp_path / "small")
        assert len(list((tmp_path / "small" / "operations.parquet").glob("*.parquet"))) == 1
        for name in ("runs", "operations"):
            rows = lake.table(spark, name).collect()
            assert sorted(Packed(tmp_path / "small").table(spark, name).collect()) == sorted(rows)
    assert {each.name for each in (tmp_path / "small").iterdir()} == {
        f"{n}.parquet" for n in TABLES
    }
