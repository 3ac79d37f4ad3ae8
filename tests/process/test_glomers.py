"""A small workload on real processes, and its grading; `tests/simulation/test_examples.py` has all of them."""

import subprocess
from pathlib import Path

from tests.process.test_bench import HANGS_S, ROOT


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
