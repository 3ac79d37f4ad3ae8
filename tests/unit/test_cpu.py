"""The CPU of nodes is read between the phases, from the kernel's own clocks."""

import os
import sys
import time

import pytest

from bench.run import Watcher
from bench.watchers import CpuMeter

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="these clocks are Linux's"
)
NO_PROCESS = 2**22 + 1  # above the largest process id that Linux gives


class Notes(Watcher):
    """A watcher that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def phase(self, name: str) -> None:
        self.told.append(name)

    def trace(self, event: str, message: bytes) -> None:
        self.told.append(event)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_only_what_lies_between_the_phases_counts():
    notes = Notes()
    meter = CpuMeter(notes, lambda: {"n0": os.getpid(), "gone": NO_PROCESS})
    burn(0.05)
    meter.phase("main phase")
    before = time.process_time()
    burn(0.02)
    used = time.process_time() - before
    meter.phase("stopping the nodes")
    assert meter.used_s.keys() == {"n0"}
    assert used <= meter.used_s["n0"] < used + 0.03
    assert notes.told == ["main phase", "stopping the nodes"]


def test_a_node_that_was_started_again_has_no_sum():
    pids = {"n0": os.getpid(), "n1": os.getpid()}
    meter = CpuMeter(Notes(), lambda: pids)
    meter.phase("main phase")
    pids["n1"] = os.getppid()
    meter.phase("stopping the nodes")
    assert meter.used_s.keys() == {"n0"}


def test_a_run_that_never_began_used_nothing():
    meter = CpuMeter(Notes(), lambda: {"n0": os.getpid()})
    meter.phase("starting the nodes")
    meter.phase("stopping the nodes")
    assert meter.used_s == {}
