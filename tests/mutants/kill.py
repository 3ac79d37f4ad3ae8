"""Kills mutants: runs worlds with the broken core until one of them shows it."""

from collections.abc import Iterable
from typing import NamedTuple

from leaderless.core.headlog.view import InvariantBroken
from simulation.oracle import Breach
from tests.mutants.mutant import Mutant, StaleMutant
from tests.sim.scenario import Scenario
from tests.sim.world import run

SEEDS_MAX = 500


class Kill(NamedTuple):
    """How a mutant died: after how many seeds, and which invariant named it."""

    seeds: int
    caught_by: str


def kill(mutant: Mutant, seeds: Iterable[int]) -> Kill | None:
    """The first seed that shows what is broken; None when the mutant survives them all."""
    with mutant.alive():
        for tried, seed in enumerate(seeds, 1):
            caught_by = _symptom(Scenario.draw(seed)._replace(**mutant.world))
            if caught_by:
                return Kill(tried, caught_by)
    return None


def _symptom(scenario: Scenario) -> str | None:
    try:
        anomalies = run(scenario).anomalies()
    except (Breach, InvariantBroken) as broken:
        return str(broken).partition(":")[0]
    except StaleMutant:
        raise
    except Exception as crash:
        return f"NeverCrashes ({type(crash).__name__})"
    return anomalies[0] if anomalies else None
