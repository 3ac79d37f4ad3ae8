"""Kills mutants: simulates the broken core until a seed shows it."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from simulation.judge import simulate
from simulation.nodes import MakeNode
from simulation.scenario import Scenario

SEEDS_MAX = 500
CPU_S_MAX = 10.0


class Kill(NamedTuple):
    """How a wrong node was found out: after how many seeds, and by what."""

    seeds: int
    caught_by: str


def kill(
    alive: AbstractContextManager[None],
    world: Mapping[str, Any],
    seeds: Iterable[int] = range(SEEDS_MAX),
    node: MakeNode | None = None,
) -> Kill | None:
    """The first seed that shows what is broken inside `alive`; None when it survives them all."""
    # A mutant that loops for ever is found as soon as no run of the real core takes as long.
    with alive:
        for tried, seed in enumerate(seeds, 1):
            report = simulate(Scenario.draw(seed, world), node=node, cpu_s_max=CPU_S_MAX)
            if report.failures:
                return Kill(tried, report.names[0])
    return None
