"""A small workload on real processes, and its grading; `tests/simulation/test_examples.py` has all of them."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_bench import HANGS_S, ROOT, wait_until
from tests.process.test_sweep import processes_of

FAST_FAULTS = ["--nemesis", "partition", "--nemesis-interval", "0.3", "--latency", "5"]


def run(store: Path, node: str, *flags: object) -> tuple[int, str, Any]:
    """A second of operations: the exit status, the output and the results."""
    command = [ROOT / "maelstrom", "test", "-w", "broadcast", "--bin", ROOT / node]
    command += [
        "--node-count",
        3,
        "--rate",
        100,
        "--time-limit",
        1,
        "--recovery-time",
        1.5,
        "--seed",
        1,
    ]
    command += ["--store", store, *flags]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    results = json.loads((store / "latest/results.json").read_text())
    return done.returncode, done.stdout + done.stderr, results


def test_an_example_passes_and_its_history_is_judged_again(tmp_path: Path) -> None:
    status, output, _ = run(tmp_path, "workloads/examples/broadcast.py", *FAST_FAULTS)
    assert (status, "VALID" in output) == (0, True), output
    check = [str(ROOT / "maelstrom"), "check", "--edn", str(tmp_path / "latest/history.edn")]
    judged = subprocess.run(check, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert {"latency-raw.png", "rate.png"} <= {path.name for path in tmp_path.glob("latest/*")}


def test_a_wrong_node_is_caught_and_its_fault_named(tmp_path: Path) -> None:
    status, output, results = run(
        tmp_path, "tests/nodes/broadcast_forgets.py", *FAST_FAULTS, "--no-pictures"
    )
    assert (status, "✘ lost" in output) == (1, True), output
    assert results["workload"]["valid?"] is False


@pytest.fixture
def grading(tmp_path: Path) -> list[str]:
    """The command that grades an echo node, once for each check."""
    for name in ("echo.py", "maelstrom_node.py"):
        shutil.copy(ROOT / "workloads/examples" / name, tmp_path)
    words = [ROOT / "maelstrom", "glomers", "1", "--bin", tmp_path / "echo.py", "--seeds", 1]
    return [str(word) for word in (*words, "--store", tmp_path / "results")]


@pytest.mark.slow
def test_a_node_is_graded(grading: list[str]) -> None:
    done = subprocess.run(grading, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 passes; right at 1000 a second on 5 nodes."


@pytest.mark.slow
def test_a_grading_that_is_interrupted_leaves_no_process(
    grading: list[str], tmp_path: Path
) -> None:
    process = subprocess.Popen(grading, stdout=subprocess.PIPE, text=True)
    history = tmp_path / "results/glomers-1/as_asked.1/latest/history.jsonl"
    wait_until(lambda: history.exists() and history.stat().st_size > 1000)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 255, output
    assert "1 is unknown: not every run was made." in output
    assert processes_of(tmp_path) == []
