"""The small workloads on real processes: the nodes of `examples` pass, and nodes that are wrong do not."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_bench import HANGS_S, wait_until
from tests.process.test_sweep import processes_of

ROOT = Path(__file__).parents[2]
SLOW = pytest.mark.slow  # the same nodes run in the simulator, where it takes no time
DRAWN = "broadcast"  # pictures are the same for all workloads, and take most of a second
FLAGS = {
    DRAWN: [],
    "txn-rw-register": ["--no-pictures", "--consistency-models", "read-committed"],
}
FAST_FAULTS = ["--nemesis", "partition", "--nemesis-interval", "0.3", "--latency", "5"]


def run(store: Path, workload: str, node: str, *flags: object) -> tuple[int, str, Any]:
    """A second of operations: the exit status, the output and the results."""
    command = [ROOT / "maelstrom", "test", "-w", workload, "--bin", ROOT / node, "--node-count", 3]
    command += ["--rate", 100, "--time-limit", 1, "--recovery-time", 1.5, "--seed", 1]
    command += ["--store", store, *flags]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    results = json.loads((store / "latest/results.json").read_text())
    return done.returncode, done.stdout + done.stderr, results


@pytest.mark.parametrize(
    ("workload", "node"),
    [
        ("broadcast", "broadcast.py"),
        pytest.param("unique-ids", "unique_ids.py", marks=SLOW),
        pytest.param("g-set", "g_set.py", marks=SLOW),
        pytest.param("g-counter", "g_counter.py", marks=SLOW),
        pytest.param("pn-counter", "pn_counter.py", marks=SLOW),
        pytest.param("txn-list-append", "txn_list_append.py", marks=SLOW),
        pytest.param("txn-rw-register", "txn_rw_register.py", marks=SLOW),
    ],
)
def test_an_example_passes_and_its_history_is_judged_again(
    tmp_path: Path, workload: str, node: str
) -> None:
    flags = [*FAST_FAULTS, *FLAGS.get(workload, ["--no-pictures"])]
    status, output, _ = run(tmp_path, workload, f"workloads/examples/{node}", *flags)
    assert status == 0, output
    assert "VALID" in output
    check = [str(ROOT / "maelstrom"), "check", "--edn", str(tmp_path / "latest/history.edn")]
    judged = subprocess.run(check, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    drawn = {"latency-raw.png", "rate.png"} <= {path.name for path in tmp_path.glob("latest/*")}
    assert drawn == (workload == DRAWN)


@pytest.mark.parametrize(
    ("workload", "node", "anomaly"),
    [
        ("broadcast", "broadcast_forgets.py", "lost"),
        pytest.param("unique-ids", "unique_ids_repeats.py", "duplicated", marks=SLOW),
        pytest.param("g-set", "g_set_loses.py", "lost", marks=SLOW),
        pytest.param("g-counter", "counter_counts_twice.py", "wrong-sum", marks=SLOW),
        pytest.param("pn-counter", "counter_counts_twice.py", "wrong-sum", marks=SLOW),
        pytest.param("txn-list-append", "txn_dirty_writes.py", "incompatible-order", marks=SLOW),
        pytest.param("txn-rw-register", "txn_dirty_reads.py", "G1a", marks=SLOW),
    ],
)
def test_a_wrong_node_is_caught_and_its_fault_named(
    tmp_path: Path, workload: str, node: str, anomaly: str
) -> None:
    flags = [*FAST_FAULTS, "--no-pictures"]
    status, output, results = run(tmp_path, workload, f"tests/nodes/{node}", *flags)
    assert status == 1, output
    assert f"✘ {anomaly}" in output
    assert results["workload"]["valid?"] is False


@pytest.fixture
def grading(tmp_path: Path) -> list[str]:
    """The command that grades an echo node, once for each check."""
    for name in ("echo.py", "maelstrom_node.py"):
        shutil.copy(ROOT / "workloads/examples" / name, tmp_path)
    words = [ROOT / "maelstrom", "glomers", "1", "--bin", tmp_path / "echo.py", "--seeds", 1]
    return [str(word) for word in (*words, "--store", tmp_path / "results")]


@SLOW
def test_a_node_is_graded(grading: list[str]) -> None:
    done = subprocess.run(grading, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 passes; right at 1000 a second on 5 nodes."


@SLOW
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
