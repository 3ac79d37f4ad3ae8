"""Files of a run as rows of tables, without Spark: those of stored runs are what the lake had before.

`tests/datadriven/files_of_a_run/rows.txt` has the rules, one by one.
"""

import gzip
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from analysis.errors import AnalysisError
from analysis.finding import find_runs
from analysis.rows import read
from tests.stores import FIXTURES, RUNS, STORES, as_bench_run, write_lines

Row = dict[str, Any]
Tables = dict[str, list[Row]]
RUN = "20260101T000000.000"
# Of each stored run and table: how many rows, and their digest, as Spark wrote them at commit 4e1eef1.
BEFORE: dict[str, Any] = json.loads((FIXTURES / "lake.json").read_text())


def rows_of(folder: Path) -> Tables:
    (run,) = find_runs(folder)
    keys, rows = read(run, Path(run.folder))
    tables: Tables = defaultdict(list, keys=[keys])
    for name, row in rows:
        tables[name].append(row)
    return tables


def canonical(value: Any) -> Any:
    """JSON in which 1.0 is 1."""
    if isinstance(value, dict):
        return {name: canonical(each) for name, each in value.items()}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(rows: list[Row], names: list[str]) -> list[Any]:
    lines = []
    for row in rows:
        cells: Row = {name: row.get(name) for name in names}
        of_json = [n for n in names if n.endswith("_json") and cells[n] is not None]
        cells |= {name: canonical(json.loads(cells[name])) for name in of_json}
        lines.append(json.dumps(list(cells.values()), sort_keys=True))
    return [len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]]


def digests(tables: Tables) -> dict[str, list[Any]]:
    columns = BEFORE["columns"]
    return {name: digest(tables[name], columns[name]) for name in columns if tables[name]}


@pytest.mark.parametrize("name", BEFORE["rows"])
def test_rows_of_stored_runs_are_as_before(name: str) -> None:
    assert digests(rows_of(RUNS / name)) == BEFORE["rows"][name]


def test_a_store_and_its_translation_give_the_same_rows(tmp_path: Path) -> None:
    name = "duplicates-partition-5-nodes"
    ours = digests(rows_of(as_bench_run(STORES / name, tmp_path / "kafka" / RUN)))
    theirs = BEFORE["rows"][name]
    # The options of our bench say where an operation went, and anomalies are JSON.
    assert {ours[table] == theirs[table] for table in ("messages", "faults")} == {True}
    assert [ours[table][0] for table in ours] == [theirs[table][0] for table in ours]


def test_a_cut_stripe_is_told_and_the_rest_kept(tmp_path: Path) -> None:
    source, folder = STORES / "lost-writes-1-node", tmp_path / "cut"
    (folder / "net-journal").mkdir(parents=True)
    (folder / "history.edn").write_bytes(
        (source / "history.edn").read_bytes() + b"{:index 1, :time\n"
    )
    for stripe in (source / "net-journal").iterdir():
        cut = 10 if stripe.name == "2.fressian" else 0
        data = stripe.read_bytes()
        (folder / "net-journal" / stripe.name).write_bytes(data[: len(data) - cut])
    tables = rows_of(folder)
    assert sorted((row["file"], row["reason"]) for row in tables["quarantine"]) == [
        ("history.edn", "not an operation"),
        ("net-journal/2.fressian", "cut or unreadable"),
    ]
    with gzip.open(source / "net-journal.expected.jsonl.gz", "rt") as expected:
        events = sum(1 for _ in expected)
    messages = tables["messages"]
    assert 0 < sum(row["send_count"] + row["recv_count"] for row in messages) < events


def test_finding_runs(tmp_path: Path) -> None:
    folder = tmp_path / "kafka" / RUN
    folder.mkdir(parents=True)
    write_lines(folder / "history.jsonl", [])
    (tmp_path / "latest").symlink_to(folder)
    assert [run.run_id for run in find_runs(tmp_path)] == [f"kafka-{RUN}"]
    assert find_runs(tmp_path / "latest")[0].folder == str(folder)
    (tmp_path / "empty").mkdir()
    wrong = {
        tmp_path / "nowhere": "does not exist",
        tmp_path / "empty": "holds no run",
    }
    for path, told in wrong.items():
        with pytest.raises(AnalysisError, match=told):
            find_runs(path)
