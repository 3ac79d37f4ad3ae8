"""Every mutant dies within SEEDS_MAX worlds; a mutant of code that is gone is an error."""

import re
from pathlib import Path

import pytest

from tests.mutants.kill import SEEDS_MAX, kill
from tests.mutants.mutant import Mutant, StaleMutant
from tests.mutants.mutants import MUTANTS

TABLE = Path(__file__).parents[2] / "docs" / "mutants.md"
ROW = re.compile(r"^\| `([a-z-]+)` \|.*\| (\d+) \|$", re.MULTILINE)
FAST = 5  # seeds; a mutant that takes more is killed by the slow tests
pytestmark = pytest.mark.usefixtures("garbage_collected")


def seeds_needed() -> dict[str, int]:
    """What the table says, by the mutant's name."""
    return {name: int(seeds) for name, seeds in ROW.findall(TABLE.read_text())}


def cases() -> list[object]:
    needed = seeds_needed()
    return [
        pytest.param(
            mutant,
            id=mutant.name,
            marks=[pytest.mark.slow] if needed.get(mutant.name, 0) > FAST else [],
        )
        for mutant in MUTANTS
    ]


@pytest.mark.parametrize("mutant", cases())
def test_it_is_killed(mutant: Mutant) -> None:
    # It needs about as many as the table says; any change of timing makes that a few more or less.
    assert kill(mutant, range(SEEDS_MAX)), f"{mutant.name} survives {SEEDS_MAX} seeds"


def test_the_table_names_every_mutant() -> None:
    assert [*seeds_needed()] == [mutant.name for mutant in MUTANTS]


@pytest.mark.parametrize(
    ("place", "old"),
    [
        ("core.headlog.head:Head.with_state", "words that are not there"),
        ("core.headlog.head:Head.no_such_method", "epoch"),
        ("core.headlog.head:NoSuchClass.with_state", "epoch"),
    ],
)
def test_a_mutant_of_code_that_is_gone_says_so(place: str, old: str) -> None:
    with (
        pytest.raises(StaleMutant, match="stale"),
        Mutant("stale", "", place, ((old, ""),)).alive(),
    ):
        pass


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_changes_the_code_that_is_there_now(mutant: Mutant) -> None:
    with mutant.alive():
        pass
