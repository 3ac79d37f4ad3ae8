"""The index of a sweep: what is in it after a crash, twice the same run, two sweeps at once."""

import json
from dataclasses import asdict, replace

import click
import pytest

from bench.failure import RunFailure
from bench.sweep.folder import Index
from runs.sweeps import Row

ROW = Row("night", {"nodes": 3}, 1, "embedded", "a/kafka/1", "valid", 0, 1.5, "2026-01-02T03:04:05")


@pytest.fixture
def index(tmp_path):
    return Index(tmp_path)


def test_rows_come_back_as_they_were(index):
    assert index.rows() == {}
    rows = [ROW, replace(ROW, repetition=2, figures={"send_p50_ms": None}, anomalies=["poll-skip"])]
    for row in rows:
        index.add(row)
    assert list(index.rows().values()) == rows


def test_a_line_has_the_fields_that_readers_of_the_index_need(index):
    index.add(ROW)
    (line,) = index.path.read_text().splitlines()
    assert json.loads(line) == asdict(ROW)
    assert list(json.loads(line))[:9] == [
        *("sweep", "cell", "repetition", "engine", "run", "verdict", "exit_status"),
        *("seconds", "started"),
    ]


def test_the_newest_row_of_a_run_counts(index):
    index.add(replace(ROW, verdict="crashed", cell={"a": 1, "b": 2}))
    index.add(replace(ROW, verdict="valid", cell={"b": 2, "a": 1}))
    assert [row.verdict for row in index.rows().values()] == ["valid"]


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_torn_last_line_is_passed_over_and_does_no_harm(index, cut):
    index.add(ROW)
    index.add(replace(ROW, repetition=2))
    index.path.write_bytes(index.path.read_bytes()[:-cut])
    left = index.rows()
    assert ROW in left.values()
    added = replace(ROW, repetition=3)
    index.add(added)
    assert list(index.rows().values()) == [*left.values(), added]


@pytest.mark.parametrize("line", ["3", "[]", "{}", '{"sweep": 1}', "\x00", "nonsense"])
def test_lines_that_are_no_rows_are_passed_over(index, line):
    index.path.write_text(line + "\n")
    index.add(ROW)
    assert list(index.rows().values()) == [ROW]


@pytest.mark.parametrize(
    ("verdict", "expect", "fine"),
    [
        ("valid", "valid", True),
        ("invalid", "valid", False),
        ("invalid", "invalid", True),
        ("valid", "invalid", False),
        ("invalid", "any", True),
        ("unknown", "any", False),
        ("crashed", "any", False),
    ],
)
def test_as_expected(verdict, expect, fine):
    assert replace(ROW, verdict=verdict, expect=expect).as_expected is fine


def test_two_sweeps_do_not_share_a_folder(index):
    with index.locked(), pytest.raises(click.UsageError, match="--name"), index.locked():
        pass
    with index.locked():  # it is free again
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunFailure, match="--store"), Index(tmp_path / "file" / "night").locked():
        pass


def test_a_disk_that_is_full_in_the_middle_of_a_line_is_told(index, monkeypatch):
    monkeypatch.setattr("os.write", lambda _, line: len(line) - 1)
    with pytest.raises(RunFailure, match="Make room"):
        index.add(ROW)


def test_a_full_disk_is_told(tmp_path):
    (tmp_path / "index.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunFailure, match="Make room"):
        Index(tmp_path).add(ROW)


def test_a_sweep_can_begin_anew_and_the_old_one_stays(tmp_path):
    index = Index(tmp_path / "night")
    index.set_aside()  # nothing is there yet
    with index.locked():
        index.add(ROW)
    index.set_aside()
    assert index.rows() == {}
    (old,) = tmp_path.iterdir()
    assert old.name.startswith("night-2")
    assert list(Index(old).rows().values()) == [ROW]
