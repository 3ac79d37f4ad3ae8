"""From the index of a sweep to the pages of docs/performance, and whether their names agree."""

import json
from pathlib import Path

import click
import pytest

from bench.sweep import definition
from bench.sweep.folder import MACHINE_FILE, Index, write_machine
from performance import scaling, stores_under_faults
from performance import sweep_records as records
from performance.configurations import CONFIGURATIONS, SLOPES, SUBJECT
from performance.sweep_records import summarise
from runs.sweeps import Cell, Row

ROOT = Path(__file__).parents[2]


def cells(name):
    return [cell.axes for cell in definition.read(ROOT / "sweeps" / f"{name}.toml").cells]


def row(cell, **figures):
    return Row("night", cell, 1, "embedded", None, "valid", 0, 1.0, "2026-01-02", figures=figures)


def test_every_configuration_is_swept_with_every_strategy():
    swept = cells("comparison")
    assert [each.name for each in CONFIGURATIONS] == list(dict.fromkeys(c["name"] for c in swept))
    columns = {c["strategy"] for c in swept}
    assert SUBJECT in columns
    assert len(swept) == len(CONFIGURATIONS) * len(columns)


def test_every_cell_of_the_scaling_sweep_is_a_point_of_a_slope_and_only_one():
    points = [scaling.case(cell) for cell in cells("scaling")]
    assert len(set(points)) == len(points)
    assert {point.partition("=")[0] for point in points} == {slope.name for slope in SLOPES}
    assert "clients=20" in points


def test_records_come_from_the_index_also_of_what_crashed(tmp_path):
    index = Index(tmp_path)
    good = {"name": "2-nodes", "strategy": "cas"}
    index.add(row(good, send_p50_ms=2.0))
    index.add(Row("night", good, 2, "embedded", None, "crashed", 255, 1.0, "2026-01-02"))
    index.add(row({"strategy": "cas"}))
    found = records.records(tmp_path, lambda cell: cell.get("name"))
    assert [(each["case"], each["error"]) for each in found] == [
        ("2-nodes", None),
        ("2-nodes", "exit status 255"),
    ]
    assert records.strategies_of(found) == ["cas"]
    with pytest.raises(click.UsageError, match="is no folder of a sweep"):
        records.records(tmp_path / "nothing", lambda cell: "x")


def test_real_stores_have_a_table_each_with_the_worst_verdict_of_a_cell():
    cell = cells("stores")[-1]
    rows = [row(cell, valid=1.0, strict_valid=strict, send_p50_ms=2.0) for strict in (1.0, 0.0)]
    other = row({"store-server": "etcd", "faults": "none"}, store_requests_per_op=0.5)
    [sqlite, etcd] = stores_under_faults.sections([Cell(rows), Cell([other])])
    assert sqlite.splitlines()[0] == "## sqlite"
    assert "| all | valid | **invalid** |" in sqlite
    assert "0.50" in etcd
    assert "| none | **invalid** | **invalid** |" in etcd  # no verdict is none


def test_a_table_says_where_its_figures_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["maelstrom", "sweep", "sweeps/scaling.toml"])
    write_machine(tmp_path)
    before = (tmp_path / MACHINE_FILE).read_text()
    write_machine(tmp_path)  # a sweep that goes on began when it began
    assert (tmp_path / MACHINE_FILE).read_text() == before
    assert records.provenance(tmp_path).startswith("    ./maelstrom sweep sweeps/scaling.toml\n")


def test_a_long_command_is_shown_in_lines_that_can_be_copied(tmp_path):
    made = {
        "command": "./maelstrom sweep sweeps/comparison.toml " + "--only strategy=leaderless " * 9,
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
    assert " ".join(line.removesuffix("\\").strip() for line in command) == made["command"].strip()


def test_a_page_is_written_whole(tmp_path):
    page = tmp_path / "performance" / "strategies.md"
    records.write_page(page, "Strategies", "old\n")
    records.write_page(page, "Strategies", "\nnew\n\n")
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("# Strategies", "new")
    assert "old" not in lines


def test_a_slope_is_drawn_the_same_each_time(tmp_path):
    slope = SLOPES[-1]
    found = {"server_messages_per_op": 1.0, "node_cpu_us_per_op": 300.0}
    summaries = summarise(
        {"case": f"{slope.name}={value}", "strategy": "cas"}
        | {"figures": found | {"longest_key_messages": float(value)}}
        for value in (4096, 16, 256)
    )
    assert [x for x, _ in scaling.points(slope, "cas", summaries)] == [16, 256, 4096]
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        scaling.draw(slope, ["cas"], summaries, picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert "| 4096 | – | 1.00 |" in scaling.section(slope, ["cas"], summaries)
