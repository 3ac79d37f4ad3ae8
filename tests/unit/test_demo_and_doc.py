"""What `./maelstrom doc` says; `tests/datadriven/benches/demo.txt` has `./maelstrom demo`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import workloads
from bench.commands.demo import DEMOS
from bench.commands.doc import doc
from runs.house import EXAMPLES

SECOND = {
    f"second_{name}.py" for name in ("log", "file", "program", "node")
}  # they share a log with ours

MORE = {"broadcast_hub.py", "lin_kv_raft.py"}  # a second example, and one with a chapter of its own


def test_the_demo_has_every_example() -> None:
    programs = {f"{name.replace('-', '_')}.py" for name in DEMOS}
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == scripts - {"maelstrom_node.py", *MORE} - SECOND


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
