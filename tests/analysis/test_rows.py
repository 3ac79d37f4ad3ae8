"""Files of a run as rows of tables, without Spark: those of stored runs are what the lake had before."""

import gzip
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from analysis.errors import AnalysisError
from analysis.finding import find_run, find_runs
from analysis.rows import anomalies, read
from runs import edn
from runs.facts import Results
from tests.stores import FIXTURES, RUNS, STORES, as_bench_run, write_lines

Row = dict[str, Any]
Tables = dict[str, list[Row]]
RUN = "20260101T000000.000"
# Of each stored run and table: how many rows, and their digest, as Spark wrote them at commit 4e1eef1.
BEFORE: dict[str, Any] = json.loads((FIXTURES / "lake.json").read_text())


def rows_of(folder: Path, program: str | None = None) -> Tables:
    (run,) = find_runs(folder, program)
    keys, rows = read(run, Path(run.folder))
    tables: Tables = defaultdict(list, keys=[keys])
    for name, row in rows:
        tables[name].append(row)
    return tables


def canonical(value: Any) -> Any:
    """JSON in which 1.0 is 1."""
    if isinstance(value, dict):
        return {name: canonical(each) for name, each in value.items()}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(rows: list[Row], names: list[str]) -> list[Any]:
    lines = []
    for row in rows:
        cells: Row = {name: row.get(name) for name in names}
        of_json = [n for n in names if n.endswith("_json") and cells[n] is not None]
        cells |= {name: canonical(json.loads(cells[name])) for name in of_json}
        lines.append(json.dumps(list(cells.values()), sort_keys=True))
    return [len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]]


def digests(tables: Tables) -> dict[str, list[Any]]:
    columns = BEFORE["columns"]
    return {name: digest(tables[name], columns[name]) for name in columns if tables[name]}


@pytest.mark.parametrize("name", BEFORE["rows"])
def test_rows_of_stored_runs_are_as_before(name: str) -> None:
    assert digests(rows_of(RUNS / name)) == BEFORE["rows"][name]


def test_a_store_and_its_translation_give_the_same_rows(tmp_path: Path) -> None:
    name = "duplicates-partition-5-nodes"
    ours = digests(rows_of(as_bench_run(STORES / name, tmp_path / "kafka" / RUN)))
    theirs = BEFORE["rows"][name]
    # The options of our bench say where an operation went, and anomalies are JSON.
    assert {ours[table] == theirs[table] for table in ("messages", "faults")} == {True}
    assert [ours[table][0] for table in ours] == [theirs[table][0] for table in ours]


def line(index: int, kind: str, process: int | str, f: str, value: Any = None, **more: Any) -> Row:
    times = {"index": index, "time": index * 10}
    return {**times, "type": kind, "process": process, "f": f, "value": value, **more}


def nemesis(*deeds: str) -> list[Row]:
    """What it means to do, and what it has done."""
    halves = ((2 * n + half, f, half) for n, f in enumerate(deeds) for half in (0, 1))
    return [line(index, "info", "nemesis", f, [f, half]) for index, f, half in halves]


def event(kind: str, time: int, message: int, link: str, **body: Any) -> Row:
    src, dest = link.split(">")
    content = {"id": message, "src": src, "dest": dest, "body": {"type": "cas", **body}}
    return {"id": 0, "time": time, "type": kind, "message": content}


def of_files(
    root: Path, history: list[Row] | str, journal: list[Row] | str = "", **options: Any
) -> Tables:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in (("history.jsonl", history), ("net-journal.jsonl", journal)):
        if isinstance(content, str):
            (root / name).write_text(content)
        else:
            write_lines(root / name, content)
    (root / "test.json").write_text(json.dumps(options))
    return rows_of(root)


def column(rows: list[Row], *names: str) -> list[Any]:
    cells = [tuple(row.get(name) for name in names) for row in rows]
    return [each[0] for each in cells] if len(names) == 1 else cells


def test_an_operation_is_an_invocation_and_what_follows_it(tmp_path: Path) -> None:
    history = [
        line(0, "invoke", 0, "send", [["send", "5", 1]]),
        line(1, "invoke", 1, "poll", [["poll"]]),
        line(2, "invoke", 2, "poll", {"b": 1, "a": 12345678901234567890123}),
        line(3, "ok", 0, "send", [["send", "5", [0, 1]]]),
        line(4, "info", 1, "poll", [["poll"]], error="timeout"),
        line(5, "invoke", 0, "send", [["send", "5", 2]]),
        line(6, "invoke", 0, "send", None),
    ]
    found = sorted(of_files(tmp_path, history)["operations"], key=lambda row: row["invoked_index"])
    assert found[0] == {
        "process": 0,
        "f": "send",
        "outcome": "ok",
        "invoked_index": 0,
        "invoked_ns": 0,
        "phase": "main",
        "fault": "calm",
        "node": None,
        "completed_index": 3,
        "completed_ns": 30,
        "latency_ns": 30,
        "invoked_value_json": '[["send","5",1]]',
        "completed_value_json": '[["send","5",[0,1]]]',
        "error_json": None,
    }
    assert column(found, "outcome") == ["ok", "info", "open", "open", "open"]
    assert found[1]["error_json"] == '"timeout"'
    values = [row["invoked_value_json"] for row in found]
    assert values[2] == '{"a":12345678901234567890123,"b":1}'
    assert values[4] == "null"


def test_operations_name_their_node(tmp_path: Path) -> None:
    # Worker 2 works as process 2, 7, ..., 102 and speaks to the third node; workers 3 and 4 begin again.
    history = [line(n, "invoke", process, "poll") for n, process in enumerate([0, 3, 4, 7, 102])]
    history.append(
        line(5, "invoke", 107, "poll", node="d")
    )  # the first node of its worker has left
    known = of_files(tmp_path / "known", history, nodes=["a", "b", "c"], concurrency=5)
    assert column(known["operations"], "node") == ["a", "a", "b", "c", "c", "d"]
    unknown = of_files(tmp_path / "unknown", history[:5], nodes=["a"])
    assert set(column(unknown["operations"], "node")) == {None}


def test_operations_say_their_phase_and_the_faults_they_met(tmp_path: Path) -> None:
    deeds = [(10, "kill"), (19, "kill"), (20, "pause"), (20, "pause"), (28, "start"), (30, "start")]
    ends = [(40, "resume"), (42, "resume"), (55, "start-loss"), (56, "start-loss")]
    faults = [line(0, "info", "nemesis", f) | {"time": at} for at, f in (*deeds, *ends)]
    asked = [
        (0, 9),
        (9, 10),
        (25, 26),
        (31, 33),
        (43, 54),
        (45, None),
        (60, 61),
        (61, 62),
        (90, 91),
    ]
    history = faults
    for process, (start, end) in enumerate(asked):
        history.append(line(0, "invoke", process, "poll") | {"time": start})
        if end is not None:
            history.append(line(0, "ok", process, "poll") | {"time": end})
    history.sort(key=lambda each: each["time"])
    options: Any = {"time_limit_s": 60.5e-9, "recovery_time_s": 20e-9}
    (tmp_path / "results.json").write_text('{"valid?": true}')
    found = {row["process"]: row for row in of_files(tmp_path, history, **options)["operations"]}
    assert [found[process]["fault"] for process in range(len(asked))] == [
        "calm", "kill", "several", "pause", "calm", "loss", "loss", "loss", "loss"
    ]  # fmt: skip
    phases = [found[process]["phase"] for process in range(len(asked))]
    assert phases == ["main"] * 7 + ["recovery", "final"]


def test_faults_of_all_kinds_may_overlap(tmp_path: Path) -> None:
    deeds = ("kill", "start-loss", "kill", "start", "pause", "stop-loss", "start-new")
    found = of_files(tmp_path, nemesis(*deeds))["faults"]
    assert column(found, "kind", "started_ns", "ended_ns") == [
        ("kill", 0, 70),
        ("loss", 20, 110),
        ("kill", 40, 70),  # `start` starts every node
        ("pause", 80, None),
        ("new", 120, None),
    ]
    assert (found[0]["target_json"], found[0]["effect_json"]) == ('["kill",0]', '["kill",1]')


def test_a_message_is_its_sending_and_its_first_receipt(tmp_path: Path) -> None:
    far = 2**40
    journal = [
        event("send", 5, 0, "c1>n0"),
        event("recv", 8, 0, "c1>n0"),
        event("send", 9, 1, "n0>lin-kv", msg_id=7),
        event("send", 9, 2, "n0>n1"),
        event("recv", 12, 1, "n0>lin-kv", msg_id=7),
        event("recv", 11, 1, "n0>lin-kv", msg_id=7),
        event("recv", 13, 3, "n1>n0", in_reply_to=2**64),
        event("send", 14, far, "n1>n0"),
        event("recv", 15, far, "n1>n0"),
        *(event("send", 20 + n, 4 + n, "n0>n1") for n in range(9_000)),
        event("recv", 10_000, 9_003, "n0>n1"),
    ]
    found = {row["message_id"]: row for row in of_files(tmp_path, [], journal)["messages"]}
    assert len(found) == 9_005
    names = ("link", "send_count", "recv_count", "sent_ns", "received_ns", "latency_ns")
    assert column([found[n] for n in (0, 1, 2, 3, far, 9_002, 9_003)], *names) == [
        ("client", 1, 1, 5, 8, 3),
        ("node-store", 1, 2, 9, 11, 2),
        ("node-node", 1, 0, 9, None, None),
        ("node-node", 0, 1, None, 13, None),
        ("node-node", 1, 1, 14, 15, 1),
        ("node-node", 1, 0, 9_018, None, None),
        ("node-node", 1, 1, 9_019, 10_000, 981),
    ]
    assert (found[1]["type"], found[1]["rpc_id"], found[3]["in_reply_to"]) == ("cas", 7, None)
    assert (found[1]["body_json"], found[3]["body_json"]) == ('{"type":"cas","msg_id":7}', None)


def test_what_cannot_be_used_is_quarantined_with_file_line_and_reason(tmp_path: Path) -> None:
    good = [json.dumps(line(n, "invoke", n, "poll")) for n in range(2)]
    history = [
        good[0],
        '{"index": 99, "time": 1',  # cut
        json.dumps(line(9, "maybe", 0, "send")),
        json.dumps(line(9, "ok", "zero", "send")),
        "",
        good[1],
        json.dumps(line(9, "ok", 17, "send")),
        "the end",
    ]
    journal = json.dumps(event("send", 1, 1, "n0>n1")) + '\n{"id": 5, "time": 20, "type": "send"}\n'
    tmp_path.joinpath("results.json").write_text('{"valid?": tr')
    tables = of_files(tmp_path, "\n".join(history), journal)
    assert column(tables["quarantine"], "file", "line", "reason") == [
        (
            "results.json",
            None,
            "cannot be read: unexpected end of data: line 1 column 14 (char 13)",
        ),
        ("history.jsonl", 2, "not an operation"),
        ("history.jsonl", 3, "not an operation"),
        ("history.jsonl", 4, "process is neither a number nor nemesis"),
        ("history.jsonl", 7, "a completion without an invocation"),
        ("history.jsonl", 8, "the last line has no end"),
        ("net-journal.jsonl", 2, "not an event"),
    ]
    assert column(tables["quarantine"], "text")[1] == '{"index": 99, "time": 1'
    assert [len(tables[name]) for name in ("operations", "messages", "runs")] == [2, 1, 1]
    assert tables["runs"][0]["valid"] == "unknown"


def test_empty_files_and_broken_options_are_told(tmp_path: Path) -> None:
    of_files(tmp_path, "")
    (tmp_path / "results.edn").write_text("")
    (tmp_path / "test.json").write_text("[")
    tables = rows_of(tmp_path)
    assert sorted(column(tables["quarantine"], "file", "reason")) == [
        ("history.jsonl", "the file is empty"),
        ("net-journal.jsonl", "the file is empty"),
        ("results.edn", "the file is empty"),
        ("test.json", "cannot be read: unexpected end of data: line 1 column 2 (char 1)"),
    ]


def test_a_cut_stripe_is_told_and_the_rest_kept(tmp_path: Path) -> None:
    source, folder = STORES / "lost-writes-1-node", tmp_path / "cut"
    (folder / "net-journal").mkdir(parents=True)
    (folder / "history.edn").write_bytes(
        (source / "history.edn").read_bytes() + b"{:index 1, :time\n"
    )
    for stripe in (source / "net-journal").iterdir():
        cut = 10 if stripe.name == "2.fressian" else 0
        data = stripe.read_bytes()
        (folder / "net-journal" / stripe.name).write_bytes(data[: len(data) - cut])
    tables = rows_of(folder)
    assert sorted(column(tables["quarantine"], "file", "reason")) == [
        ("history.edn", "not an operation"),
        ("net-journal/2.fressian", "cut or unreadable"),
    ]
    with gzip.open(source / "net-journal.expected.jsonl.gz", "rt") as expected:
        events = sum(1 for _ in expected)
    messages = tables["messages"]
    assert 0 < sum(row["send_count"] + row["recv_count"] for row in messages) < events


@pytest.mark.parametrize(
    ("results", "valid"),
    [
        ({"valid?": True}, "true"),
        ({"valid?": "unknown"}, "unknown"),
        ({"valid?": "unknown", "error": "n1 ended with exit status 1"}, "crashed"),
        ({"valid?": "unknown", "error": "The run was stopped by SIGINT."}, "unknown"),
    ],
)
def test_crashed_is_not_unknown(tmp_path: Path, results: Row, valid: str) -> None:
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert of_files(tmp_path, [])["runs"][0]["valid"] == valid


def test_every_row_says_who_it_is_of(tmp_path: Path) -> None:
    sweep = tmp_path / "demo"
    cell = {"sweep": "demo", "cell": {"rate": 5, "bin": "x/node.rb"}, "repetition": 2}
    for name in ("one", "two"):
        folder = sweep / "cell" / "kafka" / name
        folder.mkdir(parents=True)
        write_lines(folder / "history.jsonl", [line(0, "invoke", 0, "poll")])
    (sweep / "index.jsonl").write_text(json.dumps(cell | {"run": "cell/kafka/one"}) + '\n{"sweep')
    one, two = (
        rows_of(sweep / "cell" / "kafka" / "one"),
        rows_of(sweep / "cell" / "kafka" / "two", "mine"),
    )
    assert column(one["runs"], "sweep", "cell_json", "repetition") == [
        ("demo", '{"bin": "x/node.rb", "rate": 5}', 2)
    ]
    assert [each["keys"][0]["program"] for each in (one, two)] == ["node.rb", "mine"]
    options: Any = {
        "bin": "/x/mine.py",
        "args": ["--fast"],
        "workload": "broadcast",
        "nemesis": ["kill"],
    }
    (keys,) = of_files(tmp_path / "named", [], **options)["keys"]
    told = {
        "workload": "broadcast",
        "program": "mine.py --fast",
        "strategy": None,
        "faults": "kill",
    }
    assert {name: keys[name] for name in told} == told


def test_anomalies_are_listed_by_instance() -> None:
    text = """{:valid? false, :workload {:error-types (:poll-skip :unseen :int-send-skip :G1c),
      :bad-error-types (:poll-skip :unseen),
      :poll-skip {:count 7, :errs ({:key "5", :delta 2} {:key "6", :op #x.Op{:f :poll}})},
      :unseen {:time 3, :unseen {"5" 2, "9" 1}, :messages {"5" (1 2), "9" (4)}},
      :int-send-skip {:count 1, :errs ({:delta 1})},
      :G1c true}}"""
    found = list(anomalies(Results.read("results.edn", text.encode()), edn.dumps))
    names = ("type", "invalidating", "count", "number", "key", "instance")
    assert column(found, *names) == [
        ("poll-skip", True, 7, 0, "5", '{:key "5", :delta 2}'),
        ("poll-skip", True, 7, 1, "6", '{:key "6", :op #x.Op{:f :poll}}'),
        ("unseen", True, 3, 0, "5", '{:time 3, :unseen {"5" 2}, :messages {"5" (1 2)}}'),
        ("unseen", True, 3, 1, "9", '{:time 3, :unseen {"9" 1}, :messages {"9" (4)}}'),
        ("int-send-skip", False, 1, 0, None, "{:delta 1}"),
        ("G1c", False, 1, 0, None, "true"),
    ]


def test_finding_runs(tmp_path: Path) -> None:
    folder = tmp_path / "kafka" / RUN
    folder.mkdir(parents=True)
    write_lines(folder / "history.jsonl", [])
    (tmp_path / "latest").symlink_to(folder)
    assert [run.run_id for run in find_runs(tmp_path)] == [f"kafka-{RUN}"]
    assert find_run(tmp_path / "latest").folder == str(folder)
    (tmp_path / "empty").mkdir()
    wrong = {
        tmp_path / "nowhere": "does not exist",
        tmp_path / "empty": "holds no run",
        STORES: "5 runs",
    }
    for path, told in wrong.items():
        with pytest.raises(AnalysisError, match=told):
            find_run(path)
