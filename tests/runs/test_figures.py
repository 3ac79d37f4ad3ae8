"""The figures of a run: numbers of histories and journals, what is kept, and files that are cut or large.

What a run is called: its program, by its options, its cell in a sweep, or its folder.

How long it takes after a fault until operations are as fast as before.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runs import figures
from runs.facts import Results, Settings, Told, program, strategy
from runs.faults import injections
from runs.figures import ALL, Figures, measure, of_run
from runs.history import NEMESIS, Op
from runs.operations import MS, Recovery, Timings, long_pause, quantile, recoveries
from runs.store import Folder
from runs.traffic import CAUSES
from tests.stores import STORES, as_bench_run, write_lines

SPARSE_BYTES = 500 * 2**20
S = 1_000_000_000


def run_at(path: Path) -> Folder:
    return Folder(path, path.name)


def test_the_journal_in_either_form_gives_the_same(tmp_path: Path, store: Path) -> None:
    ours = of_run(run_at(as_bench_run(store, tmp_path / "run")))
    theirs = of_run(run_at(store))
    assert ours.rows == theirs.rows
    assert ours.numbers == theirs.numbers


def line(time: int, type_: str, process: object, f: str, value: object = None) -> dict[str, object]:
    return {"index": 0, "time": time, "type": type_, "process": process, "f": f, "value": value}


def test_faults_last_from_their_first_line_to_their_last(tmp_path: Path) -> None:
    lines = [
        line(1, "info", "nemesis", "kill", "one"),
        line(2, "info", "nemesis", "kill", ["n1"]),
        line(3, "info", "nemesis", "start-partition", "majority"),
        line(4, "info", "nemesis", "start-partition"),
        line(5, "info", "nemesis", "start"),
        line(6, "info", "nemesis", "start"),
    ]
    write_lines(tmp_path / "history.jsonl", lines)
    found = of_run(run_at(tmp_path))
    assert [[*row.values()][:5] for row in found.table("faults")] == [
        ["kill", 1, 6, '"one"', '["n1"]'],
        ["partition", 3, None, '"majority"', None],
    ]
    assert found.who["faults"] == "kill, partition"  # where no file says what was asked for


def test_lines_that_cannot_be_used_are_counted_with_the_first(tmp_path: Path) -> None:
    whole = "".join(json.dumps(line(at, "invoke", at, "poll")) + "\n" for at in range(20_000))
    packed = gzip.compress(whole.encode())
    torn = 'nonsense\n[]\n{"index": 2, "time": 3, "ty'  # the last is being written
    for name, content, operations, bad in (
        (
            "history.jsonl",
            whole.encode() + torn.encode(),
            {20_000},
            ("not an operation", 2, 20_001),
        ),
        (
            "history.jsonl.gz",
            packed[: len(packed) // 2],
            range(1, 20_000),
            ("the compressed file ends too early", 1, 0),
        ),
    ):
        (tmp_path / name).write_bytes(content)
        found = of_run(run_at(tmp_path))
        (row,) = found.table("quarantine")
        assert (row["file"], row["reason"], row["lines"], row["first_line"]) == (name, *bad)
        assert found.operations in operations
        (tmp_path / name).unlink()


@pytest.mark.parametrize("name", ["history.jsonl", "history.edn", "net-journal.jsonl"])
def test_a_huge_file_is_not_read_and_a_packed_one_not_to_its_end(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(SPARSE_BYTES)
    (note,) = of_run(run_at(tmp_path), 2**20).notes
    assert "larger than the 1 MiB" in note
    assert f"analysis report {tmp_path}" in note
    (tmp_path / name).unlink()
    (tmp_path / "history.jsonl.gz").write_bytes(gzip.compress(b"\n" * 20_000))
    assert "larger" in of_run(run_at(tmp_path), 10_000).notes[0]
    assert of_run(run_at(tmp_path)).notes == []


def test_a_store_without_history_has_figures_of_its_journal(tmp_path: Path) -> None:
    source = STORES / "lost-writes-1-node" / "net-journal.expected.jsonl.gz"
    (tmp_path / "net-journal.jsonl.gz").write_bytes(source.read_bytes())
    found = of_run(run_at(tmp_path))
    assert "There is no history" in found.notes[0]
    assert found.table("network")[0]["message_count"] > 0
    assert found.table("network")[0]["messages_per_operation"] is None


# ---------------------------------------------------------------- what is kept


def finished_run(folder: Path) -> Path:
    write_lines(folder / "history.jsonl", [line(1, "invoke", 0, "read"), line(2, "ok", 0, "read")])
    (folder / "results.json").write_text('{"valid?": true, "workload": {"valid?": true}}')
    return folder


def test_figures_are_kept_until_the_files_or_the_format_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_at(finished_run(tmp_path))
    file = tmp_path / "figures.json"
    found = of_run(run)
    kept = json.loads(file.read_text())
    assert Figures(kept["who"], kept["numbers"], kept["rows"], kept["notes"]) == found
    assert [*kept] == ["format", "fingerprint", "who", "numbers", "rows", "notes"]
    file.write_text(json.dumps({**kept, "numbers": {"operations": 7}}))
    assert of_run(run).operations == 7
    file.write_text(json.dumps({**kept, "format": 0}))
    assert of_run(run).operations == 1
    file.write_text('{"fingerprint": "as before the format"}')
    assert of_run(run).operations == 1
    write_lines(tmp_path / "history.jsonl", [line(1, "invoke", at, "read") for at in range(3)])
    assert of_run(run).operations == 3


@pytest.mark.parametrize("why", ["it is not over", "its folder cannot be written"])
def test_else_memory_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    run = run_at(finished_run(tmp_path))
    if why == "it is not over":
        (tmp_path / "results.json").unlink()
    else:
        (tmp_path / "figures.json").mkdir()
    found = of_run(run)
    monkeypatch.setattr(figures, "measure", lambda *_: pytest.fail("it is known"))
    assert of_run(run) is found
    assert not (tmp_path / "figures.json").is_file()


# ---------------------------------------------------------------- numbers


RESULTS: dict[str, Any] = {
    "net": {"all": {"msgs-per-op": 3.5}, "servers": {"msgs-per-op": 1.5, "msg-count": 9}},
    "store": {"requests-per-op": 0.5},
    "workload": {"valid?": True, "bad-error-types": [], "worst-realtime-lag": {"lag": 0.25}},
}
CPU_S = {"n0": 0.001, "n1": 0.004}
ONE_S = Settings("embedded", time_limit_s=1)


def ops(*described: tuple[Any, ...]) -> list[Op]:
    """Operations told as (ms, type, process, f)."""
    return [
        Op(index, ms * 1_000_000, kind, process, f, [[f, "k", index]])
        for index, (ms, kind, process, f) in enumerate(described)
    ]


HISTORY = ops(
    (0, "invoke", 0, "send"),
    (1, "invoke", 1, "send"),
    (2, "invoke", 2, "crash"),
    (3, "info", 2, "crash"),
    (5, "ok", 0, "send"),
    (6, "invoke", 0, "poll"),
    (7, "ok", 0, "poll"),
    (900, "invoke", 0, "send"),
    (1100, "ok", 0, "send"),  # a slow one, but of the main phase
    (1200, "invoke", 0, "poll"),  # a final poll
    (1900, "ok", 0, "poll"),
    (5001, "info", 1, "send"),
)


def test_all_numbers_of_a_run() -> None:
    told = Told(ONE_S, Results(RESULTS), {"node_cpu_s": CPU_S})
    assert measure(HISTORY, (), told).numbers == {
        "operations": 6,
        "duration_s": 5.001,
        "main_s": 1.0,
        "invoked_ops_per_s": 5.0,
        "throughput_ops_per_s": 2.0,
        "send_p50_ms": 5.0,
        **dict.fromkeys(("send_p90_ms", "send_p99_ms", "send_max_ms"), 200.0),
        **dict.fromkeys(("poll_p50_ms", "poll_p90_ms", "poll_p99_ms", "poll_max_ms"), 1.0),
        "server_messages_per_op": 1.5,
        "all_messages_per_op": 3.5,
        "server_messages_per_ok": 3.0,
        "conflicts_per_op": None,
        "store_requests_per_op": 0.5,
        "worst_lag_s": 0.25,
        "stable_median_ms": None,
        "stable_most_ms": None,
        "ok_fraction": 0.8,
        "ok_fraction_main": 0.75,
        "ok_fraction_of_all": pytest.approx(4 / 6),
        "valid": 1.0,
        "strict_valid": None,
        "node_cpu_us_per_op": 1000.0,
        "longest_key_messages": 2.0,
        "mute_nodes": 0.0,
        "recovery_ms": None,
    }  # fmt: skip


def test_a_run_of_another_workload_is_measured_by_all_its_operations() -> None:
    history = ops(
        (0, "invoke", 0, "add"),
        (5, "ok", 0, "add"),
        (6, "invoke", 0, "read"),
        (7, "ok", 0, "read"),
        (8, "info", "nemesis", "start-partition"),
        (1200, "invoke", 0, "read"),
        (1201, "ok", 0, "read"),
    )
    found = measure(history, (), Told(ONE_S, Results()))
    expected = {"throughput_ops_per_s": 2.0, "ok_fraction": 1.0, "add_p99_ms": 5.0, "valid": None}
    assert expected.items() <= found.numbers.items()
    assert "send_p50_ms" not in found.numbers
    assert [*found.asked()] == ["add", "read"]
    assert [row["operation_count"] for row in found.latency(ALL)] == [1, 2]


def message(id_: int, src: str, dest: str, type_: str, **body: int) -> dict[str, Any]:
    return {"id": id_, "src": src, "dest": dest, "body": {"type": type_, **body}}


CALLS: tuple[tuple[dict[str, Any], bool], ...] = (  # and whether it arrived
    (message(0, "c1", "n0", "send", msg_id=1), True),
    (message(1, "n0", "lin-kv", "cas", msg_id=1), True),
    (message(2, "lin-kv", "n0", "error", in_reply_to=1, code=22), True),
    (message(3, "n0", "lin-kv", "read", msg_id=2), True),
    (message(4, "lin-kv", "n0", "read_ok", in_reply_to=2), True),
    (message(5, "n0", "lin-kv", "cas", msg_id=3), True),
    (message(6, "lin-kv", "n0", "cas_ok", in_reply_to=3), True),
    (message(7, "n1", "n0", "hand_over", msg_id=1), True),
    (message(8, "n0", "n1", "hand_over_ok", in_reply_to=1), True),
    (message(9, "n1", "n0", "hand_over", msg_id=2), False),  # lost
    (message(10, "n1", "n0", "hand_over", msg_id=3), True),
    (message(11, "n0", "n1", "hand_over_ok", in_reply_to=3), False),  # its answer was lost
    (message(12, "n1", "n0", "share"), True),
    (message(13, "n1", "lin-kv", "cas", msg_id=9), True),
    (message(14, "lin-kv", "n1", "error", in_reply_to=9, code=20), True),
    (message(15, "n1", "n0", "send", msg_id=10), True),
    (message(16, "n0", "n1", "send_ok", in_reply_to=10, msg_id=4), True),  # with an id of its own
    (message(10**15, "n0", "n1", "push"), True),  # an id that costs nothing
)


def journal() -> list[dict[str, Any]]:
    kinds = [(each, kind) for each, came in CALLS for kind in ("send", "recv")[: 1 + came]]
    return [{"time": at, "type": kind, "message": each} for at, (each, kind) in enumerate(kinds)]


def test_each_message_counts_once_and_has_one_cause() -> None:
    found = measure(
        ops((0, "invoke", 0, "send"), (1, "invoke", 1, "send")),
        journal(),
        Told(ONE_S, Results(RESULTS)),
    )
    causes = {row["cause"]: row["message_count"] for row in found.table("causes")}
    assert causes == dict(zip(CAUSES, (2, 2, 2, 4, 3, 4), strict=True))
    assert [[*row.values()] for row in found.table("network")] == [
        ["all", 18, 16, 18, 9.0],
        ["clients", 1, 1, 1, 0.5],
        ["servers", 17, 15, 17, 8.5],
    ]
    lost = {row["type"]: row["lost_count"] for row in found.table("by_type") if row["lost_count"]}
    assert lost == {"hand_over": 1, "hand_over_ok": 1}
    as_the_journal_has_it = {"conflicts_per_op": 1.0, "server_messages_per_op": 8.5}
    assert as_the_journal_has_it.items() <= found.numbers.items()


@pytest.mark.parametrize(
    ("spans_s", "pause_s"),
    [
        ([(0, 1), (1, 15), (25, 26)], (15, 25)),  # the recovery
        ([(25, 26), (1, 15), (0, 1)], (15, 25)),  # in any order
        ([(0, 20), (1, 2), (25, 26)], (20, 25)),  # one operation took long
        ([(5, 6), (7, 8)], (6, 7)),  # the time before the first is none
        ([(0, 50), (52, 100)], None),  # a pause, but not long
        ([(0, 0.1), (0.6, 1)], None),  # the same in a short run
        ([(0, 26)], None),
        ([], None),
    ],
)
def test_a_long_pause_is_a_time_without_operations(
    spans_s: list[tuple[float, float]], pause_s: tuple[int, int] | None
) -> None:
    found = long_pause((int(a * S), int(b * S)) for a, b in spans_s)
    assert found == (pause_s and (pause_s[0] * S, pause_s[1] * S))


def test_main_ends_at_the_limit_or_else_at_the_pause() -> None:
    """100 operations in 10 s, 5 of them failed, then a pause of 10 s and 40 final ones in a second."""
    asked = [(at * 100, "fail" if at % 20 == 0 else "ok") for at in range(100)]
    final = [(20_000 + at * 25, "ok") for at in range(40)]
    history = ops(
        *(
            (at + later, kind, 0, "poll")
            for at, outcome in [*asked, *final]
            for later, kind in ((0, "invoke"), (1, outcome))
        )
    )
    whole = Results({"valid?": True})
    for settings, results, main_s, rate in (
        (Settings("embedded", time_limit_s=10), whole, 10, 9.5),
        (Settings("embedded", time_limit_s=50), whole, 50, 135 / 50),
        (
            Settings("embedded", time_limit_s=50),
            Results({"error": "stopped"}),
            20.976,
            135 / 20.976,
        ),
        (Settings("jepsen"), whole, 9.901, 95 / 9.901),
    ):
        found = measure(history, (), Told(settings, results))
        assert found.numbers["main_s"] == pytest.approx(main_s)
        assert found.numbers["throughput_ops_per_s"] == pytest.approx(rate)
        assert found.pause() == (10_001_000_000, 20 * S)  # to a window


@pytest.mark.parametrize(
    ("results", "valid", "strict_valid"),
    [
        ({"valid?": True, "bad-error-types": []}, 1.0, 1.0),
        ({"valid?": "unknown", "bad-error-types": []}, 1.0, 0.0),
        ({"valid?": False, "bad-error-types": ["unreplicated"]}, 1.0, 0.0),
        ({"valid?": False, "bad-error-types": ["lost-write"]}, 0.0, 0.0),
        ({"valid?": False, "bad-error-types": ["lost-write", "unreplicated"]}, 0.0, 0.0),
        ({"valid?": False}, 0.0, 0.0),
    ],
)
def test_strict_asks_for_more(
    results: Mapping[str, Any], valid: float, strict_valid: float
) -> None:
    for error, expected in (({}, (valid, strict_valid)), ({"error": "a node died"}, (0.0, 0.0))):
        told = Told(ONE_S, Results({"workload": results, **error}), {"strict": True})
        found = measure(HISTORY, (), told).numbers
        assert (found["valid"], found["strict_valid"]) == expected


@pytest.mark.parametrize("shares", [["0", "0.5", "1"], [0, 0.5, 1]], ids=["ours", "real"])
def test_a_broadcast_has_its_stable_latencies(shares: list[Any]) -> None:
    workload = {"valid?": True, "stable-latencies": dict(zip(shares, (0, 374, 500), strict=True))}
    found = measure(HISTORY, (), Told(ONE_S, Results({"workload": workload}))).numbers
    assert (found["stable_median_ms"], found["stable_most_ms"]) == (374, 500)
    assert found["node_cpu_us_per_op"] is None


@pytest.mark.parametrize(
    ("count", "q", "expected"),
    [(0, 0.5, None), (1, 0.99, 1), (2, 0.5, 1), (3, 0.5, 2), (100, 0.99, 99), (101, 0.99, 100)],
)
def test_quantiles_are_values_that_were_seen(count: int, q: float, expected: int | None) -> None:
    assert quantile(list(range(1, count + 1)), q) == expected


# ---------------------------------------------------------------- facts

FILE, OURS = "/home/me/kafka.py", "/x/run.sh"


@pytest.mark.parametrize(
    ("options", "named", "ours"),
    [
        ({"bin": FILE}, "kafka.py", None),
        ({"bin": FILE, "args": ["--fast"]}, "kafka.py --fast", None),
        ({"bin": FILE, "args": ["--strategy", "mine"]}, "kafka.py --strategy mine", None),
        ({"bin": FILE, "args": ["a b"]}, "kafka.py 'a b'", None),
        ({"bin": FILE, "args": ["--fast"], "name": "second try"}, "second try", None),
        ({"bin": OURS}, "leaderless", "leaderless"),
        ({"bin": OURS, "args": ["--strategy", "cas"]}, "cas", "cas"),
        ({"bin": OURS, "args": ["--commits=deferred", "--strategy=cas"]},
         "cas --commits=deferred", "cas"),
        ({"bin": OURS, "args": ["--strategy"]}, "run.sh", None),
        ({"scenario": {"strategy": "leader"}}, "leader", "leader"),
        ({"bin": "run.sh", "args": "--strategy=cas"}, "cas", "cas"),
        ({"bin": None, "args": None}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_two_runs_have_one_program_only_if_started_alike(
    options: dict[str, Any], named: str | None, ours: str | None
) -> None:
    assert (program(options), strategy(options)) == (named, ours)


@pytest.mark.parametrize(
    ("folder", "cell", "workload", "named"),
    [
        ("mine/store/kafka/20261121T100709.972", None, "kafka", "mine"),
        ("mine/broadcast/20261121T100709.972", None, "broadcast", "mine"),
        ("stores/valid-3-nodes", None, None, "valid-3-nodes"),
        ("cell.1/store/kafka/20261121T100709.972", {"strategy": "cas"}, "kafka", "cas"),
        ("cell.1/store/kafka/20261121T100709.972", {"bin": "a/b.py", "args": "-x"}, "kafka", "b.py -x"),
        ("cell.1/store/kafka/20261121T100709.972", {"program": "old", "rate": 5}, "kafka", "old"),
    ],
)  # fmt: skip
def test_a_run_of_the_real_tool_is_called_by_its_cell_or_its_store(
    folder: str, cell: dict[str, Any] | None, workload: str | None, named: str
) -> None:
    found = Settings.of({}).placed(Path("/home/me") / folder, cell)
    assert (found.workload, found.program) == (workload, named)


# ---------------------------------------------------------------- recovery

Latency = Callable[[int], float]  # in ms, of an operation that is invoked at a ms
DEEDS = ((2_000, "pause"), (3_000, "resume"))


def found(
    latency_ms: Latency,
    until_ms: int,
    deeds: tuple[tuple[int, str], ...] = DEEDS,
    failing: tuple[int, int] = (0, 0),
    every_ms: int = 5,
) -> list[Recovery]:
    """Of a history with an operation every 5 ms, as long as `latency_ms` says at that time."""
    lines = [(at, "info", NEMESIS, f) for at, f in deeds for _ in range(2)]
    for number, at in enumerate(range(0, until_ms, every_ms)):
        kind = "fail" if failing[0] <= at < failing[1] else "ok"
        lines.append((at, "invoke", number, "send"))  # type: ignore[arg-type]
        lines.append((at + latency_ms(at), kind, number, "send"))  # type: ignore[arg-type]
    lines.sort(key=lambda line: line[0])
    history = [
        Op(index, int(at * MS), kind, process, f, {})  # type: ignore[arg-type]
        for index, (at, kind, process, f) in enumerate(lines)
    ]
    return recoveries(Timings(history), injections(history), until_ms * MS)


def between(start_ms: int, end_ms: int, latency_ms: int) -> Latency:
    return lambda at: latency_ms if start_ms <= at < end_ms else 10


PAUSES = (*DEEDS, (4_000, "pause"), (4_100, "resume"))
WITHIN = ((2_000, "pause"), (2_500, "start-loss"), (3_000, "resume"), (3_500, "stop-loss"))


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        # From the end of the fault to the first good window; twice as long is good enough, more is not.
        (found(between(2_000, 3_400, 50), 10_000), [(7_000, 400)]),
        (found(between(2_000, 3_400, 21), 10_000), [(7_000, 400)]),
        (found(between(2_000, 3_400, 20), 10_000), [(7_000, 0)]),
        # A failure is no recovery.
        (found(between(0, 0, 0), 10_000, failing=(3_000, 3_500)), [(7_000, 500)]),
        # Nothing within the time to the next fault.
        (found(between(2_000, 4_500, 500), 10_000, PAUSES), [(1_000, None), (5_900, 400)]),
        # One that ended while another was in force, and one at the end, are not watched.
        (found(between(2_000, 3_600, 50), 10_000, WITHIN), [(None, None), (6_500, 100)]),
        (found(between(0, 0, 0), 3_000), [(None, None)]),
        # Without calm there is nothing to compare with.
        (found(between(0, 0, 0), 4_000, ((0, "pause"), (3_000, "resume")), failing=(3_250, 4_000)),
         [(None, None)]),
        # A thin load can be measured, too.
        (found(between(2_000, 3_400, 50), 10_000, every_ms=200), [(7_000, 205)]),
        (found(between(0, 0, 0), 5_000, ()), []),
    ],
)  # fmt: skip
def test_recovery(story: list[Recovery], expected: list[tuple[float | None, float | None]]) -> None:
    assert story == expected
