"""Kill and pause on real processes, and that they leave nothing behind."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from bench.loop import RealLoop
from bench.processes import ProcessHosts
from simulation.trace import judged
from tests.passing import pass_until
from tests.process.test_bench import HANGS_S, ROOT, wait_until

pytestmark = pytest.mark.process

LIMIT_NS = 20_000_000_000

# Echoes each line and how many it has had before, and tells of a child that it started.
NODE = """#!{python}
import subprocess, sys
child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print("hello", file=sys.stderr, flush=True)
print("born", child.pid, flush=True)
for number, line in enumerate(sys.stdin):
    if line == "die\\n":
        sys.exit(3)
    print(number, len(line), flush=True)
"""


class Rig:
    """One node on a real loop, and what it printed."""

    def __init__(self, folder: Path) -> None:
        program = folder / "node.py"
        program.write_text(NODE.format(python=sys.executable))
        program.chmod(0o755)
        self.loop = RealLoop()
        self.printed: list[bytes] = []
        self.failures: list[str] = []
        self.hosts = ProcessHosts(
            self.loop,
            ["n0"],
            command=[str(program)],
            log_dir=folder,
            on_line=lambda _name, line: self.printed.append(line),
            on_failure=lambda failure: self.failures.append(str(failure)),
        )
        (self.host,) = self.hosts.prepare()
        self.host.start()
        self.born: list[psutil.Process] = []  # all processes there ever were
        self.wait(1)
        self.family()

    def wait(self, lines: int) -> None:
        """Until so many lines were printed, or something failed."""
        self.until(lambda: len(self.printed) >= lines or bool(self.failures))

    def until(self, done: Callable[[], bool]) -> None:
        over: list[bool] = []
        self.loop.call_at(self.loop.now_ns() + LIMIT_NS, over.append, True)
        self.loop.run_until(lambda: done() or bool(over))
        assert not over, "it did not happen in time"

    def settle(self) -> None:
        """Let the loop see what it would see in a moment."""
        pass_until(self.loop, self.loop.now_ns() + 600_000_000)

    def family(self) -> list[psutil.Process]:
        """The node and its child, in its latest life."""
        child = int([line for line in self.printed if line.startswith(b"born")][-1].split()[1])
        family = [psutil.Process(pid) for pid in (self.host.process.pid, child)]
        self.born += family
        return family


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.hosts.stop()
    made.loop.close()
    assert dead(made.born)


def dead(processes: list[psutil.Process]) -> bool:
    """Wait for the end of these; one that nobody has buried yet counts as dead."""
    wait_until(lambda: all(map(is_dead, processes)))
    return True


def is_dead(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_killed_node_dies_with_its_children_and_is_no_crash(rig: Rig) -> None:
    family = rig.family()
    rig.host.kill()
    rig.settle()
    assert dead(family)
    assert rig.failures == []
    rig.host.deliver(b"lost")
    rig.host.kill()
    rig.host.pause()
    rig.host.resume()
    assert rig.hosts.pids() == {}


def test_a_restarted_node_begins_anew_under_the_same_log(rig: Rig, tmp_path: Path) -> None:
    rig.host.deliver(b"a")
    rig.host.deliver(b"b")
    rig.wait(3)
    first = rig.family()
    rig.host.kill()
    rig.host.restart()
    rig.host.deliver(b"c")
    rig.wait(5)
    rig.family()
    assert (rig.printed[1:3], rig.printed[4]) == ([b"0 2", b"1 2"], b"0 2")
    assert dead(first)
    assert (tmp_path / "n0.log").read_text() == "hello\nhello\n"


def test_a_node_that_dies_by_itself_after_a_restart_is_a_crash(rig: Rig) -> None:
    rig.host.kill()
    rig.host.restart()
    rig.wait(2)
    rig.family()
    rig.host.deliver(b"die")
    rig.until(lambda: bool(rig.failures))
    assert "Node n0 ended before the run did: exit status 3" in rig.failures[0]


def test_a_node_that_had_died_by_itself_is_a_crash_although_it_is_killed(rig: Rig) -> None:
    rig.host.deliver(b"die")
    rig.host._flush()
    rig.host.process.wait(timeout=HANGS_S)
    rig.host.kill()
    assert "exit status 3" in rig.failures[0]


def test_a_paused_node_holds_nobody_up_and_reads_everything_later(rig: Rig) -> None:
    rig.host.pause()
    for _ in range(40):
        rig.host.deliver(b"x" * 500_000)  # far more than a pipe holds
    rig.settle()
    assert (len(rig.printed), rig.failures) == (1, [])
    rig.host.resume()
    rig.wait(41)
    assert rig.printed[1:] == [b"%d 500001" % number for number in range(40)]


def test_a_paused_node_can_be_killed_and_comes_back_running(rig: Rig) -> None:
    family = rig.family()
    rig.host.pause()
    rig.host.kill()
    assert dead(family)
    rig.host.restart()
    rig.host.deliver(b"a")
    rig.wait(3)
    rig.family()
    assert rig.printed[-1] == b"0 2"


def test_paused_nodes_are_stopped_with_the_others(rig: Rig) -> None:
    rig.host.pause()
    family = rig.family()
    rig.hosts.stop()
    assert dead(family)


def test_killing_every_node_at_once_loses_nothing_and_every_step_is_one_of_the_model(
    tmp_path: Path,
) -> None:
    words = [ROOT / "maelstrom", "test", "-w", "kafka", "--bin", ROOT / "run.sh", "--no-pictures"]
    words += ["--node-count", 3, "--concurrency", "2n", "--rate", 100, "--strict", "--seed", 3]
    words += ["--time-limit", 5, "--recovery-time", 1, "--store", tmp_path, "--nemesis", "kill"]
    words += ["--nemesis-targets", "all", "--nemesis-interval", 1, "--", "--trace", tmp_path / "it"]
    command = [*map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "latest/history.jsonl").read_text().splitlines()
    deeds = [op["value"] for op in map(orjson.loads, lines) if op["f"] == "kill"]
    assert dict.fromkeys(("n0", "n1", "n2"), "killed") in deeds
    assert judged((tmp_path / "it").read_bytes().splitlines()) == ""


def test_a_node_that_joins_is_a_process_of_its_own(rig: Rig, tmp_path: Path) -> None:
    rig.host.kill()
    added = rig.hosts.add("n1")
    added.start()
    rig.wait(2)
    assert rig.hosts.pids() == {"n1": added.process.pid}
    assert (tmp_path / "n1.log").read_text() == "hello\n"
    rig.host = added
    rig.family()
