"""Kills mutants: simulates the broken core until a seed shows it."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest

from simulation.hosts import MakeNode
from simulation.judge import simulate
from simulation.scenario import Scenario
from tests.mutants.under import ROOT, status_of

FOUND = ROOT / "tests/mutants/found.toml"
SEEDS_MAX = 500
STALE = "AttributeError", "NameError"  # it names what its code has no more
CPU_S_MAX = 5.0


class Kill(NamedTuple):
    """How a wrong node was found out: after how many seeds, and by what."""

    seeds: int
    caught_by: str


def kill_by_test(name: str, test: str) -> Kill | None:
    """Whether a test fails while the mutant is alive. Raises `RuntimeError` when it cannot be run."""
    status, said = status_of(name, test)
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"{test} with {name}: {said}")
    return Kill(1, test.rpartition("::")[2]) if status else None


def kill(
    alive: AbstractContextManager[None],
    world: Mapping[str, Any],
    seeds: Iterable[int] = range(SEEDS_MAX),
    node: MakeNode | None = None,
) -> Kill | None:
    """The first of these seeds that shows what is broken inside `alive`; None when it survives them all."""
    # A mutant that loops for ever is found as soon as no run of the real core takes as long.
    with alive:
        for tried, seed in enumerate(seeds, 1):
            report = simulate(Scenario.draw(seed, world), node=node, cpu_s_max=CPU_S_MAX)
            if report.failures:
                assert report.names[0] not in STALE, report.failures
                return Kill(tried, report.names[0])
    return None
