"""The figures of a run: what is kept, and files that are cut or large.

`tests/datadriven/files_of_a_run/figures.txt` has numbers of histories and journals.

What a run is called: its program, by its options, its cell in a sweep, or its folder.

How long it takes after a fault until operations are as fast as before.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.pages.facts import Shelf
from runs import figures
from runs.facts import Results, Settings, Told, program, strategy
from runs.faults import injections
from runs.figures import Figures, measure, of_run
from runs.history import MS, NEMESIS, Op
from runs.operations import Recovery, Timings, long_pause, quantile, recoveries
from runs.store import Folder, Store
from tests.datadriven.files_of_a_run import operations
from tests.stores import FIXTURES, RUNS, as_bench_run, write_lines

SPARSE_BYTES = 500 * 2**20
S = 1_000_000_000


def run_at(path: Path) -> Folder:
    return Folder(path, path.name)


def test_the_journal_in_either_form_gives_the_same(tmp_path: Path, store: Path) -> None:
    ours = of_run(run_at(as_bench_run(store, tmp_path / "run")))
    theirs = of_run(run_at(store))
    assert (ours.rows, ours.numbers) == (theirs.rows, theirs.numbers)
    reported = Results.of_run(store).net
    assert {row["scope"] for row in theirs.table("network")} == {"all", "clients", "servers"}
    for row in theirs.table("network"):
        told = reported[row["scope"]]
        here = [row[f"{each}_count"] for each in ("send", "recv", "message")]
        assert here == [told[f"{each}-count"] for each in ("send", "recv", "msg")]
        per_op = told.get("msgs-per-op", row["messages_per_operation"])  # in single precision
        assert row["messages_per_operation"] == pytest.approx(per_op, rel=1e-6)


# Of each stored run: its numbers, and a digest of each table.
BEFORE: dict[str, Any] = json.loads((FIXTURES / "figures.json").read_text())


def digest(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", BEFORE)
def test_figures_of_stored_runs_are_as_before(name: str) -> None:
    """They are those that sweep, page and Spark told when each measured for itself."""
    found, (numbers, tables) = of_run(Folder(RUNS / name, name)), BEFORE[name]
    assert found.numbers == numbers
    assert {table: digest(rows) for table, rows in found.rows.items()} == tables


def test_lines_that_cannot_be_used_are_counted_with_the_first(tmp_path: Path) -> None:
    whole = "".join(
        f'{{"index": 0, "time": {at}, "type": "invoke", "process": {at}, "f": "poll"}}\n'
        for at in range(20_000)
    )
    packed = gzip.compress(whole.encode())
    torn = 'nonsense\n[]\n{"index": 2, "time": 3, "ty'  # the last is being written
    for name, content, counts, bad in (
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
        assert found.operations in counts
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


# ---------------------------------------------------------------- what is kept


def finished_run(folder: Path) -> Path:
    write_lines(folder / "history.jsonl", operations(["1 invoke 0 read; 2 ok 0 read"]))
    (folder / "results.json").write_text('{"valid?": true, "workload": {"valid?": true}}')
    return folder


def test_figures_are_kept_until_the_files_or_the_format_change(tmp_path: Path) -> None:
    run = run_at(finished_run(tmp_path))
    file = tmp_path / "figures.json"
    found = of_run(run)
    kept = json.loads(file.read_text())
    assert Figures(kept["who"], kept["numbers"], kept["rows"], kept["notes"]) == found
    assert [*kept] == ["format", "fingerprint", "who", "numbers", "rows", "notes"]
    for content, count in (
        ({**kept, "numbers": {"operations": 7}}, 7),
        ({**kept, "format": 0}, 1),
        ({"fingerprint": "as before the format"}, 1),
    ):
        file.write_text(json.dumps(content))
        assert of_run(run).operations == count
    write_lines(
        tmp_path / "history.jsonl",
        operations(["1 invoke 0 read; 1 invoke 1 read; 1 invoke 2 read"]),
    )
    assert of_run(run).operations == 3


@pytest.mark.parametrize("why", ["it is not over", "its folder cannot be written"])
def test_else_pages_remember_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    run = run_at(finished_run(tmp_path))
    if why == "it is not over":
        (tmp_path / "results.json").unlink()
    else:
        (tmp_path / "figures.json").mkdir()
    shelf = Shelf(Store(tmp_path.parent))
    found = shelf.figures(run)
    monkeypatch.setattr(figures, "measure", lambda *_: pytest.fail("it is known"))
    assert shelf.figures(run) is found
    assert not (tmp_path / "figures.json").is_file()


# ---------------------------------------------------------------- numbers


def ops(*described: tuple[Any, ...]) -> list[Op]:
    """Operations told as (ms, type, process, f)."""
    return [
        Op(index, ms * 1_000_000, kind, process, f, [[f, "k", index]])
        for index, (ms, kind, process, f) in enumerate(described)
    ]


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
    history = ops(*lines)
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
