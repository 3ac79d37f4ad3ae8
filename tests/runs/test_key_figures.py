"""Key figures of a run, from what the bench leaves of it."""

import json

import pytest

from runs import key_figures as figures
from runs.history import Op, write_jsonl
from runs.operations import quantile
from tests.stores import STORES

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


def of_run(folder, *, strict=False):
    return figures.of_run(folder, time_limit_s=1, strict=strict)[0]


def ops(*described):
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
def run_dir(tmp_path):
    def make(results=RESULTS, **test):
        recorded = {"node_cpu_s": {"n0": 0.001, "n1": 0.004}} | test
        (tmp_path / "test.json").write_text(json.dumps(recorded))
        (tmp_path / "results.json").write_text(json.dumps(results))
        with (tmp_path / "history.jsonl").open("wb") as file:
            write_jsonl(HISTORY, file)
        return tmp_path

    return make


def test_all_figures_of_a_run(run_dir):
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
        "ok_fraction": 0.75,
        "ok_fraction_of_all": 0.375,
        "valid": 1.0,
        "strict_valid": None,
        "node_cpu_us_per_op": 1000.0,
        "longest_key_messages": 2.0,
        "mute_nodes": 0.0,
    }


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
def test_strict_asks_for_more(run_dir, bad, verdict, valid, strict_valid):
    workload = {"valid?": verdict, "bad-error-types": bad}
    found = of_run(run_dir(RESULTS | {"workload": workload}), strict=True)
    assert (found["valid"], found["strict_valid"]) == (valid, strict_valid)


def test_a_run_that_ended_early_is_not_valid(run_dir):
    found = of_run(run_dir(RESULTS | {"error": "a node died"}), strict=True)
    assert (found["valid"], found["strict_valid"]) == (0.0, 0.0)


def test_without_cpu_clocks_there_is_no_figure(run_dir):
    assert of_run(run_dir(node_cpu_s={}))["node_cpu_us_per_op"] is None


@pytest.mark.parametrize(
    ("count", "q", "expected"),
    [(0, 0.5, None), (1, 0.99, 1), (2, 0.5, 1), (3, 0.5, 2), (100, 0.99, 99), (101, 0.99, 100)],
)
def test_quantiles_are_values_that_were_seen(count, q, expected):
    assert quantile(list(range(1, count + 1)), q) == expected


def test_figures_of_a_run_of_the_real_tool():
    store = STORES / "prefetch-skips-2-nodes"
    found, anomalies = figures.of_run(store, time_limit_s=10, strict=False)
    assert anomalies == ["int-poll-skip", "poll-skip"]
    assert found["valid"] == 0.0
    assert found["node_cpu_us_per_op"] is None


def test_a_run_of_another_workload_is_measured_by_all_its_operations(tmp_path):
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
