"""Every transcript here says what happens; `REWRITE=1 pytest tests/datadriven` writes what happens now."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.datadriven.commands import Benches, Commands, Shell
from tests.datadriven.conversations import Conversation
from tests.datadriven.estimates import Estimates
from tests.datadriven.files_of_a_run import FilesOfARun
from tests.datadriven.judgements import Judgements
from tests.datadriven.networks import Networks
from tests.datadriven.nodes_of_a_run import NodesOfARun
from tests.datadriven.pages import Pages
from tests.datadriven.processes import Processes
from tests.datadriven.programs import Programs
from tests.datadriven.runner import Player, Transcript

FOLDER = Path(__file__).parent


def sinks() -> Player:
    """It takes longer to import than all others together."""
    from tests.epochs import Sink

    return Programs(Sink)


def tables() -> Player:
    """So does this."""
    from tests.tables import Table

    return Programs(Table)


PLAYERS: dict[str, Callable[[], Player]] = {
    FOLDER.name: Transcript,
    "benches": Benches,
    "commands": Commands,
    "conversations": Conversation,
    "estimates": Estimates,
    "files_of_a_run": FilesOfARun,
    "judgements": Judgements,
    "logs": Programs,
    "networks": Networks,
    "nodes_of_a_run": NodesOfARun,
    "pages": Pages,
    "processes": Processes,
    "programs": Shell,
    "sinks": sinks,
    "tables": tables,
}
PATHS = [
    pytest.param(
        path, id=path.stem, marks=[pytest.mark.process] if path.parent.name == "programs" else []
    )
    for path in sorted(FOLDER.rglob("*.txt"))
]


@pytest.mark.parametrize("path", PATHS)
def test_transcript(path: Path) -> None:
    written = path.read_text()
    played = PLAYERS[path.parent.name]().play(written)
    if os.environ.get("REWRITE") == "1":
        path.write_text(played)
    else:
        assert played == written, f"REWRITE=1 rewrites {path.name}; then read the difference"


def test_a_transcript_that_lies_is_caught() -> None:
    true = Transcript().play("> nodes n0\n> c1 n0 poll {}\n")
    assert Transcript().play(true.replace('"code":12', '"code":11')) == true
    assert "code" in true
