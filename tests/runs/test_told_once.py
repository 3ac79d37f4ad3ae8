"""What each reader tells of stored runs: a row of a sweep, a page, the report.

The runs are five of the real tool, one of each example node, and ours under each fault. The rows stand in
`tests/fixtures/told.json`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from runs import key_figures
from runs.facts import Settings, options_of
from runs.figures import measure
from runs.store import Folder
from tests.stores import FIXTURES, RUNS

TOLD: dict[str, Any] = json.loads((FIXTURES / "told.json").read_text())
REAL_LIMIT_S = 10.0  # of runs whose files do not say it


def of_sweep(run: Path) -> dict[str, Any]:
    """The row of a sweep."""
    asked = options_of(run) or {}
    limit_s = Settings.of(asked).time_limit_s or REAL_LIMIT_S
    return key_figures.of_run(run, time_limit_s=limit_s, strict=bool(asked.get("strict")))[0]


def of_page(run: Path) -> dict[str, Any]:
    """The figures of the page and the report; windows as their digest."""
    found = measure(Folder(run, run.name))
    rows = ("latency", "network", "by_type")
    faults = [[each[k] for k in ("kind", "started_ns", "ended_ns")] for each in found.faults]
    return {
        "operations": found.operation_count,
        "duration_ns": found.duration_ns,
        "windows": digest([found.latency_over_time, found.throughput]),
        "faults": faults,
        "quarantine": found.quarantine,
        **{name: by_text(getattr(found, name)) for name in rows},
    }


def by_text(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In an order that no definition leaves open."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def digest(tables: list[list[dict[str, Any]]]) -> str:
    text = json.dumps([by_text(rows) for rows in tables], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def near(expected: Any) -> Any:
    """Integers equal, other numbers to 1e-6."""
    if isinstance(expected, dict):
        return {name: near(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [near(value) for value in expected]
    return pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected


@pytest.mark.parametrize("name", TOLD)
def test_a_run_is_told_as_before(name: str) -> None:
    assert of_sweep(RUNS / name) == near(TOLD[name]["sweep"])
    assert of_page(RUNS / name) == near(TOLD[name]["page"])
