"""Kills mutants: simulates the broken core until a seed shows it."""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from simulation.judge import simulate
from simulation.nodes import MakeNode
from simulation.scenario import Scenario

ROOT = Path(__file__).parents[2]
SEEDS_MAX = 500
CPU_S_MAX = 10.0


class Kill(NamedTuple):
    """How a wrong node was found out: after how many seeds, and by what."""

    seeds: int
    caught_by: str


def kill_by_test(name: str, test: str) -> Kill | None:
    """Whether a test fails while the mutant is alive. Raises `RuntimeError` when it cannot be run."""
    command = [sys.executable, "-m", "tests.mutants.under", name, test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return Kill(1, test.rpartition("::")[2]) if done.returncode else None


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
                return Kill(tried, report.names[0])
    return None
