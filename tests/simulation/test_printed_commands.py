"""The `./maelstrom test` of documents, with a wrong node in place of theirs: each must find that out."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from bench.commands.test import test as command_of_test
from bench.options import TestOptions, from_flags
from simulation.hosts import MakeNode
from simulation.nodes import new_session
from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun, judged

CHAPTERS = re.compile(r"\d|teaching")  # test_chapters.py runs their commands
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not CHAPTERS.match(page.name)]
DOCUMENTS = [ROOT / "README.md", *PAGES]
PRINTED = re.compile(r"\./maelstrom (test (?:[^\n\\]|\\\n)+)")
WRONG_STRATEGIES = ("leader", "prefetch")
WRONG_NODES = {
    "echo": "echo_wrong.py",
    "unique-ids": "unique_ids_repeats.py",
    "broadcast": "broadcast_forgets.py",
    "g-set": "g_set_loses.py",
    "g-counter": "counter_counts_twice.py",
    "txn-rw-register": "txn_dirty_reads.py",
    "txn-list-append": "txn_dirty_writes.py",
}
ONLY_UNDER_FAULTS = ("broadcast",)  # these nodes are right on a quiet network


def printed(document: Path) -> list[str]:
    """The whole commands of a document, without the name of the program."""
    found = PRINTED.findall(document.read_text())
    return [each.replace("\\\n", " ").removesuffix("&") for each in found if "..." not in each]


def commands() -> Iterator[object]:
    for document in DOCUMENTS:
        marks = () if document.stem == "README" else pytest.mark.slow
        for number, command in enumerate(printed(document), 1):
            yield pytest.param(command, id=f"{document.stem}-{number}", marks=marks)


def options_of(command: str) -> TestOptions:
    name, *words = shlex.split(command, comments=True)
    return from_flags(command_of_test.make_context(name, words).params)


def wrong(options: TestOptions) -> MakeNode:
    """Nodes that this run should find out: those of the command if they are known to be wrong."""
    if options.workload != "kafka":
        return node_of(ROOT / "tests/nodes" / WRONG_NODES[options.workload])
    named = [each for each in WRONG_STRATEGIES if each in options.args]
    strategy = (*named, "leader" if options.nemesis else "prefetch")[0]
    return lambda _name, start: new_session(strategy, start)


@pytest.mark.parametrize("command", list(commands()))
def test_a_printed_command_lets_a_wrong_design_fail(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    options = options_of(command)
    if options.workload in ONLY_UNDER_FAULTS and not options.nemesis:
        pytest.skip("the wrong node is right there")
    given = {each.name: getattr(options, each.name) for each in fields(options)}
    run = VirtualRun(make=wrong(options), **given | {"seed": "1"})
    assert judged(run).result["valid?"] is False


def test_the_documents_have_commands() -> None:
    assert len(printed(ROOT / "README.md")) >= 5
    assert sum(len(printed(document)) for document in DOCUMENTS) >= 13
