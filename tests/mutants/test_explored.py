"""Mutants that die when all schedules are searched; docs/exploration.md has the whole table."""

import pytest

from performance.exploration import PAGE
from tests.mutants.explored import ALL, CPU_S_MAX, OUT_OF_REACH, SETTINGS, look_for

pytestmark = pytest.mark.simulation
QUICK = {
    "ack-before-commit": "AckedExactlyOnce",
    "answer-is-commit": "AckedExactlyOnce",
    "blind-put": "HeadNeverReturns",
    "acknowledged-before-written": "CommitsKept",
    "page-before-it-is-written": "CommittedReadable",
    "segments-never-deleted": "CursorNeverPassesCompacted",
}


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_dies(name: str) -> None:
    _, found = look_for((name, CPU_S_MAX))
    assert found is not None
    assert found.name == QUICK[name]


def test_every_mutant_has_a_setting_or_a_reason() -> None:
    assert SETTINGS.keys() | OUT_OF_REACH.keys() == ALL.keys()
    assert not SETTINGS.keys() & OUT_OF_REACH.keys()


def test_the_page_has_every_mutant() -> None:
    page = PAGE.read_text()
    assert [name for name in ALL if f"`{name}`" not in page] == []
