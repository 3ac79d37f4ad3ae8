"""From the index of a sweep to the pages of docs/performance, and whether their names agree."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from bench.sweep import definition
from bench.sweep.folder import MACHINE_FILE, Index, write_machine
from performance import scaling, stores_under_faults, strategies
from performance import sweep_records as records
from performance.configurations import CONFIGURATIONS, SLOPES, SUBJECT
from runs.sweeps import Cell, Row

ROOT = Path(__file__).parents[2]


def cells(name: Any) -> Any:
    return [cell.axes for cell in definition.read(ROOT / "bench" / "sweep" / f"{name}.toml").cells]


def row(cell: Any, **figures: Any) -> Any:
    return Row("night", cell, 1, "embedded", None, "valid", 0, 1.0, "2026-01-02", figures=figures)


def test_every_configuration_is_swept_with_every_strategy() -> None:
    swept = cells("comparison")
    assert [each.name for each in CONFIGURATIONS] == list(dict.fromkeys(c["name"] for c in swept))
    columns = {c["strategy"] for c in swept}
    assert SUBJECT in columns
    assert len(swept) == len(CONFIGURATIONS) * len(columns)


def test_every_cell_of_the_scaling_sweep_is_a_point_of_a_slope_and_only_one() -> None:
    points = [scaling.case(cell) for cell in cells("scaling")]
    assert len(set(points)) == len(points)
    assert {str(point).partition("=")[0] for point in points} == {slope.name for slope in SLOPES}
    assert "clients=20" in points


def test_records_come_from_the_index_also_of_what_crashed(tmp_path: Path) -> None:
    index = Index(tmp_path)
    good = {"name": "2-nodes", "strategy": "cas"}
    index.add(row(good, send_p50_ms=2.0))
    index.add(Row("night", good, 2, "embedded", None, "crashed", 255, 1.0, "2026-01-02"))
    index.add(row({"strategy": "cas"}))
    found = records.found_in(records.rows_of(tmp_path), lambda cell: cell.get("name"))
    assert [row.verdict for row in found["2-nodes", "cas"].rows] == ["valid", "crashed"]
    assert [*strategies.troubles("2-nodes", found)] == ["`cas`, 1 of 2 runs: exit status 255."]
    assert records.strategies_of(found) == ["cas"]
    with pytest.raises(click.UsageError, match="is no folder of a sweep"):
        records.rows_of(tmp_path / "nothing")


def test_real_stores_have_a_table_each_with_the_worst_verdict_of_a_cell() -> None:
    cell = cells("stores")[-1]
    rows = [row(cell, valid=1.0, strict_valid=strict, send_p50_ms=2.0) for strict in (1.0, 0.0)]
    other = row({"store-server": "etcd", "faults": "none"}, store_requests_per_op=0.5)
    [sqlite, etcd] = stores_under_faults.sections([Cell(rows), Cell([other])])
    assert sqlite.splitlines()[0] == "## sqlite"
    assert "| all | valid | **invalid** |" in sqlite
    assert "0.50" in etcd
    assert "| none | **invalid** | **invalid** |" in etcd  # no verdict is none


def test_a_table_says_where_its_figures_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["maelstrom", "sweep", "bench/sweep/scaling.toml"])
    write_machine(tmp_path)
    before = (tmp_path / MACHINE_FILE).read_text()
    write_machine(tmp_path)  # a sweep that goes on began when it began
    assert (tmp_path / MACHINE_FILE).read_text() == before
    assert records.provenance(tmp_path).startswith(
        "    ./maelstrom sweep bench/sweep/scaling.toml\n"
    )


def test_a_long_command_is_shown_in_lines_that_can_be_copied(tmp_path: Path) -> None:
    made = {
        "command": "./maelstrom sweep bench/sweep/comparison.toml "
        + "--only strategy=leaderless " * 9,
        "started": "2026-01-02T03:04:05",
        "commit": "abc",
        "cores": 2,
        "cpu": "a processor",
        "kernel": "6",
        "python": "3.11",
        "load": 0.04,
    }
    (tmp_path / MACHINE_FILE).write_text(json.dumps(made))
    text = records.provenance(tmp_path)
    assert all(len(line) <= 100 for line in text.splitlines())
    command = [line for line in text.splitlines() if line.startswith("    ")]
    assert (
        " ".join(line.removesuffix("\\").strip() for line in command)
        == str(made["command"]).strip()
    )


def test_a_slope_is_drawn_the_same_each_time(tmp_path: Path) -> None:
    slope = SLOPES[-1]
    figures = {"server_messages_per_op": 1.0, "node_cpu_us_per_op": 300.0}
    runs = (
        row(
            {"name": slope.name, slope.axis: value, "strategy": "cas"},
            **figures,
            longest_key_messages=float(value),
        )
        for value in (4096, 16, 256)
    )
    found = records.found_in(runs, scaling.case)
    assert [x for x, _ in scaling.points(slope, "cas", found)] == [16, 256, 4096]
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        scaling.draw(slope, ["cas"], found, picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert "| 4096 | – | 1.00 |" in scaling.section(slope, ["cas"], found)
