"""The figures of stored runs are those that sweep, page and Spark told when each measured for itself.

The runs are five of the real tool, one of each example node, and ours under each fault. The rows stand in
`tests/fixtures/told.json`. What a definition has moved since is not compared: Spark's quantiles, which were not
exact, its recovery and its operations a second, which counted what ended after the limit, and main in the runs
of the real tool, which ends at the pause.
"""

import hashlib
import json
from typing import Any

import pytest

from runs.figures import ALL, Figures, of_run
from runs.store import Folder
from tests.stores import FIXTURES, RUNS

TOLD: dict[str, Any] = json.loads((FIXTURES / "told.json").read_text())
# Of main: not compared where no file says how long that was.
OF_MAIN = {"throughput_ops_per_s", "send_p50_ms", "send_p99_ms", "poll_p50_ms", "poll_p99_ms"}
OF_SPARK = {
    "availability": "ok_fraction_main",
    "server messages per operation": "server_messages_per_op",
    "conflicts per operation": "conflicts_per_op",
}


@pytest.fixture(params=TOLD)
def run(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Figures]:
    return TOLD[request.param], of_run(Folder(RUNS / request.param, request.param))


def near(expected: Any) -> Any:
    """Integers equal, other numbers to 1e-6."""
    if isinstance(expected, dict):
        return {name: near(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [near(value) for value in expected]
    return pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected


def by_text(rows: Any) -> list[dict[str, Any]]:
    """In an order that no definition leaves open."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def digest(*tables: Any) -> str:
    text = json.dumps([by_text(rows) for rows in tables], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_row_of_a_sweep(run: tuple[dict[str, Any], Figures]) -> None:
    told, found = run
    expected = {
        name: value
        for name, value in told["sweep"].items()
        if "time_limit" in told or name not in OF_MAIN
    }
    assert {name: found.numbers.get(name) for name in expected} == near(expected)


def test_a_page(run: tuple[dict[str, Any], Figures]) -> None:
    expected, found = run[0]["page"], run[1]
    latency = [{k: v for k, v in row.items() if k != "phase"} for row in found.latency(ALL)]
    windows = found.table("latency_over_time"), found.table("throughput")
    faults = [[f[k] for k in ("kind", "started_ns", "ended_ns")] for f in found.table("faults")]
    assert expected == near(
        {
            "operations": found.operations,
            "duration_ns": found.duration_ns,
            "windows": digest(*windows),
            "faults": faults,
            "quarantine": found.table("quarantine"),
            "latency": by_text(latency),
            "network": by_text(found.table("network")),
            "by_type": by_text(found.table("by_type")),
        }
    )


def test_spark(run: tuple[dict[str, Any], Figures]) -> None:
    told, found = run
    causes = {row["cause"]: row["message_count"] for row in found.table("causes")}
    assert {cause: count for cause, count in causes.items() if count} == told.get("causes", {})
    if "time_limit" in told:
        names = OF_SPARK.keys() & told["spark"].keys()
        spark = {OF_SPARK[name]: told["spark"][name] for name in names}
        assert {name: found.numbers[name] for name in spark} == near(spark)
