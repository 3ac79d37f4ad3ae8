"""The figures of a run in plain Python; a file that is cut or large stops nothing."""

import dataclasses
import gzip
import json
from pathlib import Path

import pytest

from runs.figures import Figures, measure
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
