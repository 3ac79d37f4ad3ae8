"""Sweeps on real processes: runs that fail, being interrupted, going on, the real tool's place.

`tests/datadriven/benches/sweep.txt` has what needs no process.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from tests.process.test_bench import HANGS_S, ROOT, wait_until
from tests.stores import STORES

pytestmark = [pytest.mark.process, pytest.mark.slow]

BASE = """
[base]
workload = "echo"
nodes = 1
rate = 50
time-limit = 1
recovery-time = 0
no-pictures = true
"""


class Sweeps:
    """Runs `./maelstrom sweep` of a file in a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results" / "night"
        self._file = folder / "night.toml"

    def write(self, matrix: str) -> None:
        self._file.write_text(BASE + matrix)

    def command(self, *flags: object) -> list[str]:
        words = (ROOT / "maelstrom", "sweep", self._file, "--store", self.folder.parent, *flags)
        return [str(word) for word in words]

    def run(self, *flags: object, **more: Any) -> tuple[int, str]:
        done = subprocess.run(
            self.command(*flags),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS_S,
            **more,
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "index.jsonl").read_text().splitlines()]


@pytest.fixture
def sweeps(tmp_path: Path) -> Iterator[Sweeps]:
    for name in ("echo_node.py", "echo_wrong.py", "maelstrom_node.py"):
        shutil.copy(ROOT / "tests/nodes" / name, tmp_path)
    yield Sweeps(tmp_path)
    assert processes_of(tmp_path) == []


def processes_of(folder: Path) -> list[psutil.Process]:
    """Nodes and benches that were started for this test and still run."""
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if any(str(folder) in word for word in p.info["cmdline"] or [])]


def test_a_failing_and_a_crashing_cell_do_not_stop_the_rest(sweeps: Sweeps, tmp_path: Path) -> None:
    (tmp_path / "crash").write_text("#!/bin/sh\necho out of cheese >&2; exit 3\n")
    (tmp_path / "crash").chmod(0o755)
    sweeps.write('[[matrix]]\nbin = ["crash", "echo_wrong.py", "echo_node.py"]')
    status, output = sweeps.run("--junit", tmp_path / "night.xml")
    assert status == 1, output
    verdicts = [(row["verdict"], row["exit_status"]) for row in sweeps.rows]
    assert verdicts == [("crashed", 255), ("invalid", 1), ("valid", 0)]
    (suite,) = ElementTree.parse(tmp_path / "night.xml").getroot()
    assert [[each.tag for each in case] for case in suite] == [["error"], ["failure"], []]
    assert "To repeat bin=echo_wrong.py: ./maelstrom test --bin" in output
    assert "out of cheese" in (sweeps.folder / "bin=crash.1/output.log").read_text()
    valid = sweeps.rows[2]
    assert valid["cell"]["bin"] == "echo_node.py"
    assert (sweeps.folder / valid["run"] / "history.jsonl").exists()
    assert not Path(valid["run"]).is_absolute()
    assert valid["figures"]["ok_fraction_of_all"] == 1.0

    sweeps.run("--again")  # what failed can be tried again, in its folder
    assert [row["verdict"] for row in sweeps.rows[3:]] == ["crashed", "invalid"]


def test_an_interrupted_sweep_leaves_no_process_and_goes_on(sweeps: Sweeps) -> None:
    sweeps.write('[[matrix]]\nbin = "echo_node.py"\ntime-limit = [1, 60]')
    interrupt_in_the_second(sweeps, signal.SIGINT)
    assert [row["cell"]["time-limit"] for row in sweeps.rows] == [1]
    output = interrupt_in_the_second(sweeps, signal.SIGTERM)
    assert "1 run to make" in output
    assert "1 is finished already" in output
    assert len(sweeps.rows) == 1


def interrupt_in_the_second(sweeps: Sweeps, number: int) -> str:
    shutil.rmtree(sweeps.folder / "time-limit=60.1", ignore_errors=True)
    process = subprocess.Popen(sweeps.command(), stdout=subprocess.PIPE, text=True)
    history = sweeps.folder / "time-limit=60.1" / "latest" / "history.jsonl"
    wait_until(lambda: history.exists() and history.stat().st_size > 1000)
    process.send_signal(number)
    output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 255, output
    assert "Give the same command again" in output
    return output


def test_a_killed_sweep_leaves_no_process(sweeps: Sweeps, tmp_path: Path) -> None:
    sweeps.write('[[matrix]]\nbin = "echo_node.py"\ntime-limit = 60')
    process = subprocess.Popen(sweeps.command(), stdout=subprocess.PIPE)
    history = sweeps.folder / "the_only_cell.1" / "latest" / "history.jsonl"
    wait_until(lambda: history.exists() and history.stat().st_size > 1000)
    process.kill()
    process.communicate()
    wait_until(lambda: processes_of(tmp_path) == [])


# Leaves a store where it is started, as the real tool does.
FAKE = """#!{python}
import pathlib, shutil, sys
assert not {{"--store", "--seed", "--engine"}} & set(sys.argv), sys.argv
run = pathlib.Path("store/kafka/20260102T030405.678Z")
shutil.copytree({store!r}, run)
(run / "arguments").write_text(" ".join(sys.argv[1:]))
pathlib.Path("store/latest").symlink_to(run.relative_to("store"))
print("Everything looks bad!")
sys.exit(1)
"""


def test_the_real_tool_runs_the_same_matrix(sweeps: Sweeps, tmp_path: Path) -> None:
    store = STORES / "prefetch-skips-2-nodes"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (
        ("maelstrom", FAKE.format(python=sys.executable, store=str(store))),
        ("java", "#!/bin/sh\n"),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    surroundings = os.environ | {
        "MAELSTROM": str(tools),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    sweeps.write('[[matrix]]\nbin = "echo_node.py"\nworkload = "kafka"\nexpect = "invalid"')
    status, output = sweeps.run("--engine", "jepsen", env=surroundings)
    assert status == 0, output
    (row,) = sweeps.rows
    assert (row["engine"], row["verdict"], row["exit_status"]) == ("jepsen", "invalid", 1)
    assert row["run"] == "the_only_cell.1/store/kafka/20260102T030405.678Z"
    assert (sweeps.folder / row["run"] / "history.edn").exists()
    assert row["anomalies"] == ["int-poll-skip", "poll-skip"]
    assert row["figures"]["send_p50_ms"] > 0
    arguments = (sweeps.folder / row["run"] / "arguments").read_text()
    assert arguments.startswith(f"test --bin {tmp_path / 'echo_node.py'}")
    assert "--workload kafka" in arguments
