"""A small workload on real processes, and its grading; `tests/simulation/test_examples.py` has all of them."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.process.test_bench import HANGS_S, ROOT, wait_until
from tests.process.test_sweep import processes_of


def run(*words: object) -> str:
    """What `./maelstrom` says when all is well."""
    command = [str(ROOT / "maelstrom"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_example_passes_and_its_history_is_judged_again(tmp_path: Path) -> None:
    """A second of operations. `test_bench.py` has nodes that are wrong."""
    node = ROOT / "workloads/examples/broadcast.py"
    words = ("-w", "broadcast", "--bin", node, "--node-count", 3, "--store", tmp_path, "--seed", 1)
    faults = ("--nemesis", "partition", "--nemesis-interval", 0.3, "--latency", 5)
    times = ("--rate", 100, "--time-limit", 1, "--recovery-time", 1.5)
    assert "VALID" in run("test", *words, *faults, *times)
    run("check", "--edn", tmp_path / "latest/history.edn")
    assert {"latency-raw.png", "rate.png"} <= {path.name for path in tmp_path.glob("latest/*")}


@pytest.mark.slow
def test_a_grading_that_is_interrupted_leaves_no_process(tmp_path: Path) -> None:
    """`tests/simulation/test_chapters.py` has some that come to their end."""
    for name in ("echo.py", "maelstrom_node.py"):
        shutil.copy(ROOT / "workloads/examples" / name, tmp_path)
    words = [ROOT / "maelstrom", "glomers", "1", "--bin", tmp_path / "echo.py", "--seeds", "1"]
    command = [*words, "--store", tmp_path / "results"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    history = tmp_path / "results/glomers-1/as_asked.1/latest/history.jsonl"
    wait_until(lambda: history.exists() and history.stat().st_size > 1000)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 255, output
    assert "1 is unknown: not every run was made." in output
    assert processes_of(tmp_path) == []
