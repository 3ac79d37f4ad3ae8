"""Work over processes: everything is done, and what goes wrong is told."""

import os
import signal

import pytest

from bench.failure import RunFailure
from simulation.pool import spread


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise ValueError(f"not {number}")


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_item_is_done_once() -> None:
    assert sorted(spread(square, range(7), 2)) == [0, 1, 4, 9, 16, 25, 36]


def test_what_a_task_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="not 3"):
        list(spread(refuse, [3], 1))


def test_a_process_that_dies_is_told() -> None:
    with pytest.raises(RunFailure, match=r"died \(status -9\) working on 3"):
        list(spread(die, [3], 1))


def test_nothing_is_left_when_the_rest_is_not_wanted() -> None:
    psutil = pytest.importorskip("psutil")
    before = set(psutil.Process().children())
    results = spread(square, range(100), 2)
    next(results)
    results.close()
    left = set(psutil.Process().children()) - before
    assert [each for each in left if "spawn_main" in " ".join(each.cmdline())] == []
