"""Whatever is known to be wrong is found within SEEDS_MAX seeds; a mutant of code that is gone is an error.

The seed that showed it last is tried first, so most cases need one run.
"""

import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from leaderless.core import coordination
from leaderless.core.headlog import commits, compaction, replica
from leaderless.core.headlog.commits import raised
from tests.mutants.cases import CASES, EQUIVALENT, MUTANTS, OF_PROGRAMS, SECTIONS
from tests.mutants.faulty import node_of, world_of
from tests.mutants.kill import FOUND, SEEDS_MAX, kill
from tests.mutants.mutant import Mutant, StaleMutant
from tests.regressions import known_first

RAISED = {"core.headlog.commits:raised": [("return offsets | {", "return {")]}
FAST = 5  # seeds; what takes more is looked for by the slow tests
pytestmark = pytest.mark.simulation


def seeds_needed() -> dict[str, int]:
    """What `python -m tests.mutants` has found, by name."""
    return {name: each["seeds"] for name, each in tomllib.loads(FOUND.read_text()).items()}


def cases() -> list[object]:
    return [
        pytest.param(name, marks=[pytest.mark.slow] if seeds > FAST else [])
        for name, seeds in seeds_needed().items()
    ]


@pytest.mark.parametrize("name", cases())
def test_it_is_found(name: str) -> None:
    # Any change of timing moves the seeds that show it. Then the others are tried, too.
    seeds = known_first(seeds_needed().get(name, 1) - 1, SEEDS_MAX)
    assert CASES[name].kill(seeds), f"{name} survives {SEEDS_MAX} seeds"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.test])
def test_a_test_finds_it(name: str) -> None:
    """One process for all of them, as what forks for each imports all of these tests."""
    assert CASES[name].kill([]), f"{name} survives its test"


def test_all_seeds_are_tried_the_known_one_first() -> None:
    seeds = known_first(7, SEEDS_MAX)
    assert (seeds[0], sorted(seeds)) == (7, [*range(SEEDS_MAX)])


def test_every_case_has_the_seeds_that_find_it() -> None:
    assert [*seeds_needed()] == [name for name, case in CASES.items() if not case.test]


def test_a_right_node_of_the_same_kind_survives() -> None:
    """The scripts are told apart by what is wrong with them, not by being scripts."""
    right = "kafka_node.py"
    assert kill(nullcontext(), world_of(right), range(5), node_of(right)) is None


def runs_of_programs() -> dict[str, str]:
    """The mutants of programs that have a world and a seed of their own: one of each."""
    needed = seeds_needed()
    return {f"{needed[each.name]} {each.world}": each.name for each in SECTIONS[OF_PROGRAMS]}


@pytest.mark.parametrize("name", runs_of_programs().values())
def test_the_right_code_is_sound_on_the_seed_that_finds_a_mutant_of_programs(name: str) -> None:
    assert kill(nullcontext(), CASES[name].world, [seeds_needed()[name] - 1]) is None


@pytest.mark.parametrize(
    ("place", "old"),
    [
        ("core.headlog.records:Head.with_state", "words that are not there"),
        ("core.headlog.records:Head.no_such_method", "epoch"),
        ("core.headlog.records:NoSuchClass.with_state", "epoch"),
    ],
)
def test_a_mutant_of_code_that_is_gone_says_so(place: str, old: str) -> None:
    with (
        pytest.raises(StaleMutant, match="stale"),
        Mutant("stale", "", {place: [(old, "")]}).alive(),
    ):
        pass


def test_a_function_is_changed_in_every_module_that_imported_it() -> None:
    mutant = Mutant("all", "", RAISED)
    whole = {"j": 1, "k": 2}
    with mutant.alive():
        assert commits.raised({"j": 1}, {"k": 2}) == raised({"j": 1}, {"k": 2}) == {"k": 2}
    assert commits.raised({"j": 1}, {"k": 2}) == raised({"j": 1}, {"k": 2}) == whole


def test_a_mutant_with_a_name_that_its_module_lacks_says_so() -> None:
    """It would die of the name, and prove nothing about its rule."""
    with (
        pytest.raises(StaleMutant, match="no read_value"),
        Mutant(
            "stale", "", {"core.headlog.commits:raised": [("offsets | {", "read_value | {")]}
        ).alive(),
    ):
        pass


@pytest.mark.parametrize(
    "keep",
    [
        lambda right: {"raised": right},
        lambda right: (right,),
        lambda right: type("Keeper", (), {"raised": right}),
        lambda right: partial(right, {}),
        lambda right: lambda raise_by=right: raise_by,
    ],
    ids=["table", "tuple", "class", "partial", "default"],
)
def test_a_function_that_is_kept_where_it_cannot_be_changed_says_so(
    keep: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "KEEPER", keep(raised), raising=False)
    mutant = Mutant("kept", "", RAISED)
    with pytest.raises(StaleMutant, match=r"commits\.KEEPER"), mutant.alive():
        pass


def test_no_module_keeps_a_mutant() -> None:
    place = "core.coordination:read_as"
    users = [replica, compaction, commits, coordination]
    right = [vars(module)["read_as"] for module in users]
    with Mutant("read", "", {place: [("patience.lasts", "patience is None")]}).alive():
        [wrong] = {vars(module)["read_as"] for module in users}
        assert wrong is not right[0]
    assert [vars(module)["read_as"] for module in users] == right


@pytest.mark.slow
@pytest.mark.parametrize("mutant", EQUIVALENT, ids=lambda mutant: mutant.name)
def test_what_cannot_matter_is_not_found(mutant: Mutant) -> None:
    world = {"strategy": "leaderless", **mutant.world}
    assert kill(mutant.alive(), world, range(5)) is None


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_it_changes_the_code_that_is_there_now(mutant: Mutant) -> None:
    with mutant.alive():
        pass
