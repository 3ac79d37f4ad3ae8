"""What the bench reads of nodes: their memory, who is ended for it, and their CPU between phases."""

import io
import os
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bench.node_memory import MIB, MemoryLimit, free_bytes, limit_of, resident_bytes
from bench.watchers import CpuMeter, Progress

USED = {"n0": 50 * MIB, "n1": 120 * MIB, "n2": 90 * MIB}


WHY = "Node n1 used 120 MiB of memory and was killed. "
EACH, TOGETHER = "A node may use 100 MiB (--node-memory-max).", "All nodes together used 260 MiB, "


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (MemoryLimit(), None),
        (MemoryLimit(each_bytes=120 * MIB), None),
        (MemoryLimit(together_bytes=260 * MIB), None),
        (MemoryLimit(each_bytes=100 * MIB), f"{WHY}{EACH}"),
        # The largest is ended when all together use too much.
        (MemoryLimit(together_bytes=259 * MIB), f"{WHY}{TOGETHER}and they may use 259 MiB"),
    ],
)
def test_a_node_beyond_the_limit_is_ended_with_a_sentence(
    limit: MemoryLimit, why: str | None
) -> None:
    node, said = limit.broken_by(USED) or ("n1", "")
    assert (node, said.startswith(why or ""), bool(said)) == ("n1", True, bool(why))
    assert limit.broken_by({}) is None


def test_the_limit_is_the_given_one_or_a_share_of_what_is_free() -> None:
    assert limit_of(100) == MemoryLimit(each_bytes=100 * MIB)
    share, free = limit_of(None).together_bytes, free_bytes()
    assert share
    assert free
    assert 0 < share < free * 2


def test_the_memory_of_a_process_group_is_that_of_its_processes() -> None:
    group = {"ours": os.getpgrp()}
    me = resident_bytes({"me": os.getpid()}, whole_groups=False)
    assert resident_bytes(group, whole_groups=True)["ours"] > 0
    assert (me["me"] > 0) == (os.getpid() == os.getpgrp())  # only a leader has the group's number
    assert resident_bytes({"gone": 2**30}, whole_groups=False) == {"gone": 0}


# ---------------------------------------------------------------- CPU


on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="these clocks are Linux's"
)
NO_PROCESS = 2**22 + 1  # above the largest process id that Linux gives


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@on_linux
def test_only_what_lies_between_the_phases_counts() -> None:
    meter = CpuMeter(lambda: {"n0": os.getpid(), "gone": NO_PROCESS})
    burn(0.05)
    meter.phase("main phase")
    before = time.process_time()
    burn(0.02)
    used = time.process_time() - before
    meter.phase("stopping the nodes")
    assert meter.used_s.keys() == {"n0"}
    assert used <= meter.used_s["n0"] < used + 0.03


@on_linux
def test_a_node_that_was_started_again_has_no_sum() -> None:
    pids = {"n0": os.getpid(), "n1": os.getpid()}
    meter = CpuMeter(lambda: pids)
    meter.phase("main phase")
    pids["n1"] = os.getppid()
    meter.phase("stopping the nodes")
    assert meter.used_s.keys() == {"n0"}


@on_linux
def test_a_run_that_never_began_used_nothing() -> None:
    meter = CpuMeter(lambda: {"n0": os.getpid()})
    meter.phase("starting the nodes")
    meter.phase("stopping the nodes")
    assert meter.used_s == {}


# ---------------------------------------------------------------- how a run goes


class Looks:
    """A loop that looks when it is told to, and a run that made so many operations."""

    def __init__(self, progress: Progress) -> None:
        self.now, self.look, self.recorder = 0, list[Any](), SimpleNamespace(operation_count=0)
        run: Any = SimpleNamespace(recorder=self.recorder, fault=lambda: "")
        progress.attach(self, run)  # type: ignore[arg-type]

    def now_ns(self) -> int:
        return self.now

    def call_at(self, _time_ns: int, *call: Any) -> None:
        self.look = [*call]

    def later(self, seconds: int, operations: int) -> None:
        self.now += seconds * 10**9
        self.recorder.operation_count += operations
        look, *arguments = self.look
        look(*arguments)


def test_a_rate_is_told_only_while_clients_ask() -> None:
    told = io.StringIO()
    progress = Progress(Console(file=told, width=100))
    looks = Looks(progress)
    for phase, operations in (("main phase", 50), ("recovery", 0), ("final phase", 5)):
        progress.phase(phase)
        looks.later(5, operations)
    assert told.getvalue().splitlines() == [
        "main phase",
        "main phase: 50 operations, 10/s",
        "recovery",
        "final phase",
        "final phase: 55 operations, 1/s",
    ]
