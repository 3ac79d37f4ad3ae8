"""The strategies as processes on the bench: one that breaks its word, one that keeps it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_bench import HANGS_S

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def run(tmp_path: Path, strategy: str, *flags: str, nodes: int) -> dict[str, Any]:
    """The results of a short run."""
    command = ["./maelstrom", "test", "-w", "kafka", "--bin", "./run.sh", "--concurrency", "2n"]
    command += ["--node-count", str(nodes), "--time-limit", "2", "--recovery-time", "1"]
    command += ["--seed", "1", "--no-pictures", "--store", str(tmp_path)]
    command += [*flags, "--", "--strategy", strategy]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    results = tmp_path / "latest" / "results.json"
    assert results.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def test_prefetch_is_caught_and_its_fault_named(tmp_path: Path) -> None:
    workload = run(tmp_path, "prefetch", "--rate", "500", nodes=2)["workload"]
    assert workload["valid?"] is False
    assert {"poll-skip", "int-poll-skip"} & set(workload["bad-error-types"])


def test_sealed_ranges_are_right_in_partitions(tmp_path: Path) -> None:
    faults = ["--nemesis", "partition", "--nemesis-interval", "1", "--latency", "5"]
    results = run(tmp_path, "prefetch-sealed", "--rate", "200", *faults, nodes=3)
    assert results["valid?"] is True
