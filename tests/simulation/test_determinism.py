"""The same seed is the same run to the byte: in another process, with another order of sets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.judge import simulate
from simulation.logs import LOGS
from simulation.scenario import Scenario

ROOT = Path(__file__).parents[2]
SEEDS = """
from simulation.judge import simulate
from simulation.logs import LOGS
from simulation.scenario import Scenario
for strategy in ("leaderless", "cas", "prefetch-sealed", "prefetch", "leader"):
    for faults in ((), ("partition", "kill", "pause", "loss", "duplicate", "slow", "store", "fence")):
        given = {"strategy": strategy, "nemesis": faults, "nodes": 5, "nemesis_interval_s": 0.3}
        report = simulate(Scenario.draw(7, given))
        print(strategy, len(faults), report.names, report.digest)
for log in LOGS:
    for seed in range(3):
        report = simulate(Scenario.draw(seed, {"store": "bucket", "strategy": log}))
        print(log, seed, report.names, report.digest)
"""


def output_of(hash_seed: str) -> str:
    command, environment = [sys.executable, "-c", SEEDS], {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_the_hash_seed_changes_nothing() -> None:
    first, second = map(output_of, "12")
    assert first == second
    assert len(first.splitlines()) == 10 + 3 * len(LOGS)


def test_another_seed_is_another_run() -> None:
    given = {"strategy": "leaderless", "nemesis": ()}
    assert len({simulate(Scenario.draw(seed, given)).digest for seed in range(2)}) == 2
