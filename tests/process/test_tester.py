"""Test the tester: nodes that are wrong in one way each, and what the bench says of them.

Faults are strong and seeds fixed, so that two seconds of operations are enough to show each. `tests/mutants`
has more of them, in the simulator.
"""

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_bench import HANGS_S, ROOT

pytestmark = pytest.mark.process


@dataclass
class Run:
    status: int
    output: str
    directory: Path

    @property
    def results(self) -> Any:
        return json.loads((self.directory / "results.json").read_text())


# Started together, because most of a run is waiting: name -> workload, node, nodes, more flags.
RUNS: dict[str, tuple[Any, ...]] = {
    "never replicates": ("kafka", "kafka_never_replicates.py", 2, "--strict"),
    "kafka": ("kafka", "kafka_node.py", 1),
    "loses": ("kafka", "kafka_loses.py", 1),
    "lin-kv": ("lin-kv", "lin_kv_node.py", 2),
    "stale": ("lin-kv", "lin_kv_stale.py", 2),
    "echo": ("echo", "echo_node.py", 2),
    "echo wrong": ("echo", "echo_wrong.py", 1),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Run]]]:
    """Every run of the table, each two seconds of operations; a test waits for its own."""
    with ThreadPoolExecutor(max_workers=3) as pool:
        yield {
            name: pool.submit(run_bench, tmp_path_factory.mktemp("store"), *case)
            for name, case in RUNS.items()
        }


def run_bench(store: Path, workload: str, node: str, nodes: int, *flags: str) -> Run:
    command = [ROOT / "maelstrom", "test", "-w", workload, "--bin", ROOT / "tests/nodes" / node]
    command += ["--node-count", nodes, "--concurrency", 4, "--rate", 150, "--time-limit", 2]
    command += ["--recovery-time", 0, "--seed", 1, "--no-pictures", "--store", store, *flags]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    return Run(done.returncode, done.stdout + done.stderr, store / "latest")


@pytest.mark.parametrize("name", ["kafka", "lin-kv", "echo"])
def test_a_correct_node_passes(runs: dict[str, Future[Run]], name: str) -> None:
    run = runs[name].result()
    # On a machine that is so busy that no `cas` of a few succeeds, the run as a whole is none.
    assert run.results["workload"]["valid?"] is True, run.output
    assert (run.status == 0) == (run.results["valid?"] is True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loses", "lost-write"),
        ("stale", "nonlinearizable"),
        ("echo wrong", "wrong-echo"),
    ],
)
def test_a_faulty_node_is_caught_and_its_fault_named(
    runs: dict[str, Future[Run]], name: str, said: str
) -> None:
    run = runs[name].result()
    assert run.status == 1, run.output
    assert f"✘ {said} (" in run.output
    its = run.results["workload"]
    assert said in its.get("bad-error-types", [said])
    assert its.get("bad-error-types") or its.get("failures") or its["errors"]


def test_a_node_that_never_replicates_is_caught_by_strict_and_only_by_it(
    runs: dict[str, Future[Run]],
) -> None:
    run = runs["never replicates"].result()
    assert run.status == 1, run.output
    assert run.results["workload"]["bad-error-types"] == ["unreplicated"]
    assert "unreplicated" in run.output
    history = str(run.directory / "history.edn")
    check = [str(ROOT / "maelstrom"), "check", "--json", history]
    judged = subprocess.run(check, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert json.loads(judged.stdout)["valid"] is True
