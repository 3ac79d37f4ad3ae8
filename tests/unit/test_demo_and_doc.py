"""`./maelstrom demo` and `./maelstrom doc`, without any run."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import workloads
from bench.commands import demo as demo_command
from bench.commands.demo import DEMOS, EXAMPLES, demo
from bench.commands.doc import doc
from bench.options import TestOptions


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[TestOptions]:
    """What was run; each run is valid, but that of g-set is invalid."""
    chosen: list[TestOptions] = []

    def run_test(options: TestOptions, _console: object) -> int:
        chosen.append(options)
        return int(options.workload == "g-set")

    monkeypatch.setattr(demo_command, "run_test", run_test)
    return chosen


def test_demo_runs_each_example_and_tells_all_verdicts(ran: list[TestOptions]) -> None:
    result = CliRunner().invoke(demo, [])
    assert result.exit_code == 1
    assert [each.workload for each in ran] == list(DEMOS)
    programs = {Path(each.bin).name for each in ran}
    assert programs == {path.name for path in EXAMPLES.glob("*.py")} - {"maelstrom_node.py"}
    verdicts = result.stdout.splitlines()[-len(DEMOS) :]
    assert [line.split()[-1] for line in verdicts] == list(DEMOS)
    assert [line for line in verdicts if "INVALID" in line] == ["✘ INVALID      g-set"]


def test_demo_gives_options_of_test_to_each_run(ran: list[TestOptions]) -> None:
    CliRunner().invoke(demo, ["--time-limit", "2", "--node-count", "4", "--latency", "10"])
    assert {(each.time_limit_s, len(each.nodes), each.latency_ms) for each in ran} == {(2, 4, 10)}


def test_demo_ends_where_a_run_was_stopped(
    ran: list[TestOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_command, "run_test", lambda *_: 2)
    assert CliRunner().invoke(demo, []).exit_code == 2
    assert ran == []


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("kafka", ("send{key, msg}", "commit_offsets")),
        ("lin-kv", ('"cas"', "read_ok")),
        ("txn-rw-register", ('["r", 1, null]',)),
        *((name, ("_ok",)) for name in workloads.NAMES),
    ],
)
def test_doc_says_what_a_workload_asks_for(name: str, requests: tuple[str, ...]) -> None:
    result = CliRunner().invoke(doc, [name])
    assert result.exit_code == 0
    assert all(each in result.stdout for each in (f"# {name}", *requests))
    assert "11  temporarily-unavailable certain" in result.stdout


def test_doc_without_a_name_has_all_workloads_and_names_pages_that_exist() -> None:
    text = CliRunner().invoke(doc, []).stdout
    assert [line[2:] for line in text.splitlines() if line[2:] in workloads.NAMES] == [
        *workloads.NAMES
    ]
    pages = [Path(word) for word in text.splitlines()[-1].split() if word.endswith(".md")]
    assert len(pages) == 2
    assert all(page.exists() for page in pages)
