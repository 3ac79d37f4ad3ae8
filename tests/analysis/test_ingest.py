"""Runs into the lake: both formats alike, twice is once, nothing bad unsaid."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.errors import AnalysisError
from analysis.finding import find_run, find_runs
from analysis.ingest import ingest_run
from analysis.lake import Lake
from tests.stores import STORES, as_bench_run, write_lines

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RUN = "20260101T000000.000"
HISTORY: list[dict[str, Any]] = [
    {
        "index": 0,
        "time": 10,
        "type": "invoke",
        "process": 0,
        "f": "send",
        "value": [["send", "5", 1]],
    },
    {"index": 1, "time": 11, "type": "invoke", "process": 1, "f": "poll", "value": [["poll"]]},
    {
        "index": 2,
        "time": 15,
        "type": "info",
        "process": "nemesis",
        "f": "start-partition",
        "value": "one",
    },
    {
        "index": 3,
        "time": 16,
        "type": "info",
        "process": "nemesis",
        "f": "start-partition",
        "value": ["cut"],
    },
    {
        "index": 4,
        "time": 30,
        "type": "ok",
        "process": 0,
        "f": "send",
        "value": [["send", "5", [0, 1]]],
    },
    {
        "index": 5,
        "time": 31,
        "type": "info",
        "process": 1,
        "f": "poll",
        "value": [["poll"]],
        "error": "timeout",
    },
    {
        "index": 6,
        "time": 40,
        "type": "info",
        "process": "nemesis",
        "f": "stop-partition",
        "value": None,
    },
    {
        "index": 7,
        "time": 41,
        "type": "info",
        "process": "nemesis",
        "f": "stop-partition",
        "value": "healed",
    },
    {
        "index": 8,
        "time": 50,
        "type": "invoke",
        "process": 0,
        "f": "send",
        "value": [["send", "5", 2]],
    },
    {"index": 9, "time": 60, "type": "info", "process": "nemesis", "f": "kill", "value": ["n1"]},
    {
        "index": 10,
        "time": 61,
        "type": "info",
        "process": "nemesis",
        "f": "kill",
        "value": {"n1": "killed"},
    },
]


def event(number: int, kind: str, time: int, message: int, link: str) -> dict[str, Any]:
    body = {"type": "cas", "msg_id": 7}
    src, dest = link.split(">")
    content = {"id": message, "src": src, "dest": dest, "body": body}
    return {"id": number, "time": time, "type": kind, "message": content}


JOURNAL = [
    event(0, "send", 5, 0, "c1>n0"),
    event(1, "recv", 8, 0, "c1>n0"),
    event(2, "send", 9, 1, "n0>lin-kv"),
    event(3, "send", 9, 2, "n0>n1"),
    event(4, "recv", 12, 1, "n0>lin-kv"),
]

Tables = dict[str, list[dict[str, Any]]]
Ingest = Callable[..., Tables]


def ingest_lines(
    spark: SparkSession, root: Path, history: str, journal: str, results: str = '{"valid?": true}'
) -> Tables:
    """Ingests a run with these files, made in `root`, and returns the tables of its lake."""
    folder = root / "kafka" / RUN
    folder.mkdir(parents=True)
    (folder / "history.jsonl").write_text(history)
    (folder / "net-journal.jsonl").write_text(journal)
    (folder / "results.json").write_text(results)
    lake = Lake(root / "lake")
    ingest_run(spark, lake, find_run(folder))
    names = ("operations", "messages", "faults", "quarantine")
    return {name: rows(lake.table(spark, name)) for name in names}


@pytest.fixture
def ingest(spark: SparkSession, tmp_path: Path) -> Ingest:
    """`ingest_lines` in a folder of its own."""
    return partial(ingest_lines, spark, tmp_path)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What becomes of HISTORY and JOURNAL."""
    return ingest_lines(spark, tmp_path_factory.mktemp("run"), lines(HISTORY), lines(JOURNAL))


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.drop("run_id").collect()]


def lines(entries: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_operations_join_invocation_and_completion(tables: Tables) -> None:
    found = {row["invoked_index"]: row for row in tables["operations"]}
    assert sorted(found) == [0, 1, 8]
    assert found[0] == {
        "process": 0,
        "f": "send",
        "outcome": "ok",
        "invoked_index": 0,
        "invoked_ns": 10,
        "node": None,
        "completed_index": 4,
        "completed_ns": 30,
        "latency_ns": 20,
        "invoked_value_json": '[["send","5",1]]',
        "completed_value_json": '[["send","5",[0,1]]]',
        "error_json": None,
    }
    assert (found[1]["outcome"], found[1]["error_json"]) == ("info", '"timeout"')
    assert (found[8]["outcome"], found[8]["latency_ns"]) == ("open", None)


def test_faults_last_from_the_first_line_of_their_start_to_the_last_of_their_end(
    tables: Tables,
) -> None:
    assert sorted(tables["faults"], key=lambda fault: fault["started_ns"]) == [
        {
            "kind": "partition",
            "started_ns": 15,
            "ended_ns": 41,
            "target_json": '"one"',
            "effect_json": '["cut"]',
        },
        {
            "kind": "kill",
            "started_ns": 60,
            "ended_ns": None,
            "target_json": '["n1"]',
            "effect_json": '{"n1":"killed"}',
        },
    ]


def test_messages_join_sending_and_receipt(tables: Tables) -> None:
    found = {row["message_id"]: row for row in tables["messages"]}
    assert {number: row["link"] for number, row in found.items()} == {
        0: "client",
        1: "node-store",
        2: "node-node",
    }
    assert (found[1]["sent_ns"], found[1]["received_ns"], found[1]["latency_ns"]) == (9, 12, 3)
    assert (found[1]["type"], found[1]["rpc_id"], found[1]["in_reply_to"]) == ("cas", 7, None)
    assert json.loads(found[1]["body_json"]) == {"type": "cas", "msg_id": 7}
    lost = found[2]
    assert (lost["send_count"], lost["recv_count"], lost["received_ns"]) == (1, 0, None)


def test_bad_lines_are_quarantined_with_file_line_and_reason(ingest: Ingest) -> None:
    good = lines(HISTORY).splitlines()
    history = [
        *good[:2],
        '{"index": 99, "time": 1',  # cut
        '{"index": "x", "time": 1, "type": "ok", "process": 0, "f": "send"}',
        '{"index": 99, "type": "ok", "process": 0, "f": "send"}',
        '{"index": 99, "time": 1, "type": "maybe", "process": 0, "f": "send"}',
        '{"index": 99, "time": 1, "type": "ok", "process": "zero", "f": "send"}',
        "",
        *good[2:],
        '{"index": 99, "time": 70, "type": "ok", "process": 17, "f": "send"}',
    ]
    journal = lines(JOURNAL) + '{"id": 5, "time": 20, "type": "send"}\nrubbish'
    tables = ingest("\n".join(history), journal, results='{"valid?": tr')
    bad = {(row["file"], row["line"]): row["reason"] for row in tables["quarantine"]}
    misfit = "not a JSON object with fields of the right kind"
    assert {place: reason.split(" (")[0] for place, reason in bad.items()} == {
        ("history.jsonl", 3): misfit,
        ("history.jsonl", 4): misfit,
        ("history.jsonl", 5): "no time",
        ("history.jsonl", 6): "type maybe is not one of invoke, ok, fail, info",
        ("history.jsonl", 7): "process is neither a number nor nemesis",
        ("history.jsonl", 18): "a completion without an invocation",
        ("net-journal.jsonl", 6): "no message.id",
        ("net-journal.jsonl", 7): misfit,
        ("results.json", None): "cannot be read: unexpected end of data: line 1 column 14",
    }
    assert len(tables["operations"]) == 3
    assert len(tables["messages"]) == 3


def test_line_numbers_hold_in_a_file_read_in_parts(
    spark: SparkSession, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = [event(n, "send", n, n, "n0>n1") for n in range(3000)]
    text = lines(journal).splitlines()
    text[2500] = "rubbish"
    setting = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "20000")
    try:
        (bad,) = ingest(lines(HISTORY), "\n".join(text))["quarantine"]
    finally:
        spark.conf.set(setting, str(before))
    assert (bad["line"], bad["text"]) == (2501, "rubbish")


def test_a_store_and_its_translation_give_the_same_tables(
    spark: SparkSession, stores_lake: Lake, tmp_path: Path
) -> None:
    name = "duplicates-partition-5-nodes"
    run = find_run(as_bench_run(STORES / name, tmp_path / "kafka" / RUN))
    lake = Lake(tmp_path / "lake")
    ingest_run(spark, lake, run)
    for table in ("operations", "messages", "faults"):
        ours = comparable(lake.table(spark, table))
        theirs = comparable(stores_lake.table(spark, table, [name]))
        assert ours.count() == theirs.count() > 0
        assert ours.exceptAll(theirs).isEmpty()


def comparable(table: DataFrame) -> DataFrame:
    """Without the run's name, and with the keys of JSON objects in one order."""
    columns = [
        F.to_json(F.parse_json(name)).alias(name) if name.endswith("_json") else F.col(name)
        for name in table.columns
    ]
    return table.select(columns).drop("run_id")


def test_twice_is_once_and_a_changed_run_replaces_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "kafka" / RUN
    folder.mkdir(parents=True)
    lake = Lake(tmp_path / "lake")
    write_lines(folder / "history.jsonl", HISTORY[:2])
    assert ingest_run(spark, lake, find_run(folder)).fresh
    assert not ingest_run(spark, lake, find_run(folder)).fresh
    write_lines(folder / "history.jsonl", HISTORY)
    assert ingest_run(spark, lake, find_run(folder)).fresh
    assert lake.table(spark, "operations").count() == 3
    assert len(list((tmp_path / "lake").glob("operations/version=*/run_id=*"))) == 1


def test_a_killed_ingest_leaves_the_lake_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kafka" / RUN
    folder.mkdir(parents=True)
    lake = Lake(tmp_path / "lake")
    write_lines(folder / "history.jsonl", HISTORY[:2])
    ingest_run(spark, lake, find_run(folder))
    write_lines(folder / "history.jsonl", HISTORY)
    with monkeypatch.context() as patch:
        patch.setattr("analysis.ingest.journal.parse_journal", None)
        write_lines(folder / "net-journal.jsonl", JOURNAL)
        with pytest.raises(TypeError):  # after operations were written, before messages
            ingest_run(spark, lake, find_run(folder))
    assert lake.table(spark, "operations").count() == 2
    ingest_run(spark, lake, find_run(folder))
    assert lake.table(spark, "operations").count() == 3
    lake.delete_leftovers(spark, min_age_ms=0)
    assert len(list((tmp_path / "lake").glob("operations/version=*/run_id=*"))) == 1


def test_another_run_of_the_same_name_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for store in ("a", "b"):
        (tmp_path / store / "kafka" / RUN).mkdir(parents=True)
        write_lines(tmp_path / store / "kafka" / RUN / "history.jsonl", HISTORY)
    ingest_run(spark, lake, find_run(tmp_path / "a"))
    with pytest.raises(AnalysisError, match="already has a run kafka-20260101"):
        ingest_run(spark, lake, find_run(tmp_path / "b"))


def test_a_cut_stripe_is_reported_and_the_rest_kept(spark: SparkSession, tmp_path: Path) -> None:
    source, folder = STORES / "lost-writes-1-node", tmp_path / "cut"
    (folder / "net-journal").mkdir(parents=True)
    (folder / "history.edn").write_bytes((source / "history.edn").read_bytes()[:-20])
    for stripe in (source / "net-journal").iterdir():
        data = stripe.read_bytes()
        whole = data[:-3] if stripe.name == "2.fressian" else data
        (folder / "net-journal" / stripe.name).write_bytes(whole)
    lake = Lake(tmp_path / "lake")
    ingest_run(spark, lake, find_run(folder))
    bad = {row["file"]: row for row in rows(lake.table(spark, "quarantine"))}
    assert set(bad) == {"history.edn", "net-journal/2.fressian"}
    assert "ends inside a record" in bad["net-journal/2.fressian"]["reason"]
    assert (bad["history.edn"]["line"], bad["history.edn"]["reason"]) == (
        1278,
        "not EDN: line 1: ':' is neither a number nor a name",
    )
    with gzip.open(source / "net-journal.expected.jsonl.gz", "rt") as expected:
        events = sum(1 for _ in expected)
    kept = lake.table(spark, "messages").selectExpr("sum(send_count + recv_count) as events")
    assert kept.collect()[0].events == events - 1


def test_finding_runs(tmp_path: Path) -> None:
    folder = tmp_path / "kafka" / RUN
    folder.mkdir(parents=True)
    write_lines(folder / "history.jsonl", HISTORY)
    (tmp_path / "latest").symlink_to(folder)
    assert [run.run_id for run in find_runs(tmp_path)] == [f"kafka-{RUN}"]
    assert find_run(tmp_path / "latest").folder == str(folder)
    with pytest.raises(AnalysisError, match="does not exist"):
        find_runs(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnalysisError, match="holds no run"):
        find_runs(tmp_path / "empty")
    with pytest.raises(AnalysisError, match="5 runs"):
        find_run(STORES)
