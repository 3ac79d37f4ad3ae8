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


def output_of(command: list[str], hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_the_hash_seed_changes_nothing() -> None:
    command = [sys.executable, "-c", SEEDS]
    first, second = (output_of(command, hash_seed) for hash_seed in ("1", "2"))
    assert first == second
    assert len(first.splitlines()) == 10 + 3 * len(LOGS)


@pytest.mark.process
def test_the_last_line_of_the_command_is_the_digest() -> None:
    command = [str(ROOT / "maelstrom"), "simulate", "--seed", "7"]
    assert (
        output_of(command, "1").splitlines()[-1] == f"digest: {simulate(Scenario.draw(7)).digest}"
    )


def test_another_seed_is_another_run() -> None:
    given = {"strategy": "leaderless", "nemesis": ()}
    assert len({simulate(Scenario.draw(seed, given)).digest for seed in range(5)}) == 5
