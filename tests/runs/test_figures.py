"""Figures of a run in plain Python, and its key figures; a file that is cut or large stops nothing."""

import dataclasses
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs import key_figures as figures
from runs.figures import Figures, measure
from runs.history import Op, write_jsonl
from runs.operations import long_pause, quantile
from runs.reading import PAGE_LIMITS
from runs.store import Folder
from tests.stores import STORES, as_bench_run, write_lines

SPARSE_BYTES = 500 * 2**20


def run_at(path: Path) -> Folder:
    return Folder(path, path.name)


def comparable(figures: Figures) -> dict[str, object]:
    """Without the order of rows that the definitions leave open."""
    fields = dataclasses.asdict(figures)
    rows = {name: value for name, value in fields.items() if isinstance(value, list)}
    return fields | {name: sorted(map(repr, value)) for name, value in rows.items()}


def test_the_journal_in_either_form_gives_the_same(tmp_path: Path, store: Path) -> None:
    ours = measure(run_at(as_bench_run(store, tmp_path / "run")))
    theirs = measure(run_at(store))
    assert comparable(ours) == comparable(theirs)


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
    kill, partition = measure(run_at(tmp_path)).faults
    assert (kill["kind"], kill["started_ns"], kill["ended_ns"]) == ("kill", 1, 6)
    assert (kill["target_json"], kill["effect_json"]) == ('"one"', '["n1"]')
    assert (partition["kind"], partition["ended_ns"]) == ("partition", None)


def test_a_history_that_is_being_written_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "history.jsonl", [line(1, "invoke", 0, "send"), line(2, "ok", 0, "send")]
    )
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"index": 2, "time": 3, "ty')
    figures = measure(run_at(tmp_path))
    assert (figures.operation_count, figures.quarantine) == (1, [])


def test_bad_lines_are_counted_with_the_first(tmp_path: Path) -> None:
    write_lines(tmp_path / "history.jsonl", [line(1, "invoke", 0, "send")])
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write("nonsense\n[]\n")
    (bad,) = measure(run_at(tmp_path)).quarantine
    assert (bad["file"], bad["lines"], bad["first_line"]) == ("history.jsonl", 2, 2)


def test_a_cut_archive_gives_what_is_in_it(tmp_path: Path) -> None:
    lines = "".join(json.dumps(line(at, "invoke", at, "poll")) + "\n" for at in range(20_000))
    packed = gzip.compress(lines.encode())
    (tmp_path / "history.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    figures = measure(run_at(tmp_path))
    assert 0 < figures.operation_count < 20_000
    assert figures.quarantine[0]["reason"] == "the compressed file ends too early"


@pytest.mark.parametrize("name", ["history.jsonl", "history.edn", "net-journal.jsonl"])
def test_a_huge_file_is_not_read(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(SPARSE_BYTES)
    notes = measure(run_at(tmp_path)).notes
    assert any(name in note and "python -m analysis summary" in note for note in notes)


def test_an_archive_that_unpacks_to_too_much_is_not_read_to_its_end(tmp_path: Path) -> None:
    limits = {**PAGE_LIMITS, ".jsonl": 10_000}
    (tmp_path / "history.jsonl.gz").write_bytes(gzip.compress(b"\n" * 20_000))
    assert "history.jsonl.gz is larger" in measure(run_at(tmp_path), limits).notes[0]


def test_a_store_without_history_has_figures_of_its_journal(tmp_path: Path) -> None:
    source = STORES / "lost-writes-1-node" / "net-journal.expected.jsonl.gz"
    (tmp_path / "net-journal.jsonl.gz").write_bytes(source.read_bytes())
    figures = measure(run_at(tmp_path))
    assert "There is no history" in figures.notes[0]
    assert figures.network[0]["message_count"] > 0
    assert figures.network[0]["messages_per_operation"] is None


# ---------------------------------------------------------------- key figures


RESULTS = {
    "stats": {
        "by-f": {
            "send": {"count": 3, "ok-count": 2},
            "poll": {"count": 1, "ok-count": 1},
            "crash": {"count": 4, "ok-count": 0},
        }
    },
    "availability": {"ok-fraction": 0.375},
    "net": {"all": {"msgs-per-op": 3.5}, "servers": {"msgs-per-op": 1.5}},
    "workload": {"valid?": True, "bad-error-types": [], "worst-realtime-lag": {"lag": 0.25}},
}


def of_run(folder: Path, *, strict: bool = False) -> dict[str, Any]:
    return figures.of_run(folder, time_limit_s=1, strict=strict)[0]


def ops(*described: tuple[Any, ...]) -> list[Op]:
    """Operations told as (ms, type, process, f)."""
    return [
        Op(index, ms * 1_000_000, kind, process, f, [[f, "k", index]])
        for index, (ms, kind, process, f) in enumerate(described)
    ]


HISTORY = ops(
    (0, "invoke", 0, "send"),
    (1, "invoke", 1, "send"),
    (5, "ok", 0, "send"),
    (6, "invoke", 0, "poll"),
    (7, "ok", 0, "poll"),
    (900, "invoke", 0, "send"),
    (1100, "ok", 0, "send"),  # a slow one, but of the main phase
    (1200, "invoke", 0, "poll"),  # a final poll
    (1900, "ok", 0, "poll"),
    (5001, "info", 1, "send"),
)


@pytest.fixture
def run_dir(tmp_path: Path) -> Callable[..., Any]:
    def make(results: dict[str, Any] = RESULTS, **test: dict[str, Any]) -> Path:
        recorded = {"node_cpu_s": {"n0": 0.001, "n1": 0.004}} | test
        (tmp_path / "test.json").write_text(json.dumps(recorded))
        (tmp_path / "results.json").write_text(json.dumps(results))
        with (tmp_path / "history.jsonl").open("wb") as file:
            write_jsonl(HISTORY, file)
        return tmp_path

    return make


def test_all_figures_of_a_run(run_dir: Callable[..., Any]) -> None:
    assert of_run(run_dir()) == {
        "throughput_ops_per_s": 2.0,
        "send_p50_ms": 5.0,
        "send_p99_ms": 200.0,
        "poll_p50_ms": 1.0,
        "poll_p99_ms": 1.0,
        "server_messages_per_op": 1.5,
        "all_messages_per_op": 3.5,
        "store_requests_per_op": None,
        "worst_lag_s": 0.25,
        "stable_median_ms": None,
        "stable_most_ms": None,
        "ok_fraction": 0.75,
        "ok_fraction_of_all": 0.375,
        "valid": 1.0,
        "strict_valid": None,
        "node_cpu_us_per_op": 1000.0,
        "longest_key_messages": 2.0,
        "mute_nodes": 0.0,
    }


S = 1_000_000_000


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


def test_the_rate_is_of_the_time_before_the_recovery(tmp_path: Path) -> None:
    """100 operations in 10 s, 5 of them failed, then a pause of 10 s and 40 final ones in a second."""
    asked = [(at / 10, "fail" if at % 20 == 0 else "ok") for at in range(100)]
    final = [(20 + at / 40, "ok") for at in range(40)]
    lines = [
        line(int(at * S) + later, kind, 0, "poll")
        for at, outcome in [*asked, *final]
        for later, kind in ((0, "invoke"), (1000, outcome))
    ]
    write_lines(tmp_path / "history.jsonl", lines)
    found = measure(run_at(tmp_path))
    assert found.pause() is not None
    start_ns, stop_ns = found.pause() or (0, 0)
    assert 10 * S <= start_ns <= 10.3 * S  # to a window
    assert stop_ns == 20 * S
    assert found.rate_hz(10) == 9.5
    assert found.rate_hz() == pytest.approx(9.5, rel=0.03)  # where no file says the time limit
    assert Figures().rate_hz() is None


@pytest.mark.parametrize(
    ("bad", "verdict", "valid", "strict_valid"),
    [
        ([], True, 1.0, 1.0),
        ([], "unknown", 1.0, 0.0),
        (["unreplicated"], False, 1.0, 0.0),
        (["lost-write"], False, 0.0, 0.0),
        (["lost-write", "unreplicated"], False, 0.0, 0.0),
    ],
)
def test_strict_asks_for_more(
    run_dir: Callable[..., Any],
    bad: list[Any],
    verdict: bool | str,
    valid: float,
    strict_valid: float,
) -> None:
    workload = {"valid?": verdict, "bad-error-types": bad}
    found = of_run(run_dir(RESULTS | {"workload": workload}), strict=True)
    assert (found["valid"], found["strict_valid"]) == (valid, strict_valid)


@pytest.mark.parametrize("shares", [["0", "0.5", "1"], [0, 0.5, 1]], ids=["ours", "real"])
def test_a_broadcast_has_its_stable_latencies(
    run_dir: Callable[..., Any], shares: list[Any]
) -> None:
    latencies = dict(zip(shares, (0, 374, 500), strict=True))
    workload = {"valid?": True, "stable-latencies": latencies}
    found = of_run(run_dir(RESULTS | {"workload": workload}))
    assert (found["stable_median_ms"], found["stable_most_ms"]) == (374, 500)


def test_a_run_that_ended_early_is_not_valid(run_dir: Callable[..., Any]) -> None:
    found = of_run(run_dir(RESULTS | {"error": "a node died"}), strict=True)
    assert (found["valid"], found["strict_valid"]) == (0.0, 0.0)


def test_without_cpu_clocks_there_is_no_figure(run_dir: Callable[..., Any]) -> None:
    assert of_run(run_dir(node_cpu_s={}))["node_cpu_us_per_op"] is None


@pytest.mark.parametrize(
    ("count", "q", "expected"),
    [(0, 0.5, None), (1, 0.99, 1), (2, 0.5, 1), (3, 0.5, 2), (100, 0.99, 99), (101, 0.99, 100)],
)
def test_quantiles_are_values_that_were_seen(count: int, q: float, expected: int | None) -> None:
    assert quantile(list(range(1, count + 1)), q) == expected


def test_figures_of_a_run_of_the_real_tool() -> None:
    store = STORES / "prefetch-skips-2-nodes"
    found, anomalies = figures.of_run(store, time_limit_s=10, strict=False)
    assert anomalies == ["int-poll-skip", "poll-skip"]
    assert found["valid"] == 0.0
    assert found["node_cpu_us_per_op"] is None


def test_a_run_of_another_workload_is_measured_by_all_its_operations(tmp_path: Path) -> None:
    history = ops(
        (0, "invoke", 0, "add"),
        (5, "ok", 0, "add"),
        (6, "invoke", 0, "read"),
        (7, "ok", 0, "read"),
        (8, "info", "nemesis", "start-partition"),
        (1200, "invoke", 0, "read"),
        (1201, "ok", 0, "read"),
    )
    by_f = {"add": {"count": 1, "ok-count": 1}, "read": {"count": 2, "ok-count": 2}}
    results = {**RESULTS, "stats": {"by-f": by_f}, "workload": {"valid?": False, "lost": [0]}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    with (tmp_path / "history.jsonl").open("wb") as file:
        write_jsonl(history, file)
    found = of_run(tmp_path)
    assert (found["throughput_ops_per_s"], found["ok_fraction"], found["valid"]) == (2.0, 1.0, 0.0)
    assert found["send_p50_ms"] is None
