"""Spreads work over processes: each takes one item at a time, and nothing is left behind.

Processes are spawned, not forked, so they start alike on every system. Ctrl-C reaches the parent alone,
which ends them; when the parent dies they find their pipe closed and end too.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from bench.failure import RunFailure

Task = Callable[[Any], Any]  # picklable, as are what it takes and returns


@dataclass(slots=True)
class _Hand:
    """A process, and the item it works on."""

    process: BaseProcess
    pipe: Connection
    item: Any = None
    busy: bool = False


def spread(task: Task, items: Iterable[Any], jobs: int) -> Iterator[Any]:
    """`task(item)` for each item, in the order in which they come to be done, in `jobs` processes.

    The processes end when the iterator is closed or used up. An exception in `task` is raised here. Raises
    `RunFailure` when a process dies.
    """
    todo = iter(items)
    with _hands(task, jobs) as hands:
        for hand in hands:
            _give(hand, todo)
        while busy := {hand.pipe: hand for hand in hands if hand.busy}:
            for ready in wait(list(busy)):
                hand = busy[ready]  # type: ignore[index]  # only pipes are waited for
                result = _taken(hand)
                _give(hand, todo)
                yield result


def _give(hand: _Hand, todo: Iterator[Any]) -> None:
    try:
        hand.item = next(todo)
    except StopIteration:
        hand.busy = False
        return
    hand.busy = True
    hand.pipe.send(hand.item)


def _taken(hand: _Hand) -> Any:
    try:
        result, error = hand.pipe.recv()
    except (EOFError, OSError):
        hand.process.join()
        status = hand.process.exitcode
        raise RunFailure(f"A process died (status {status}) working on {hand.item}.") from None
    if error is not None:
        raise error
    return result


@contextmanager
def _hands(task: Task, jobs: int) -> Iterator[list[_Hand]]:
    hands: list[_Hand] = []
    try:
        with _interrupts_ignored():  # which the processes inherit
            for _ in range(jobs):
                hands.append(_start(task))  # noqa: PERF401 - what was started must be known
        yield hands
    finally:
        for hand in hands:
            hand.process.terminate()
            hand.pipe.close()
        for hand in hands:
            hand.process.join()


def _start(task: Task) -> _Hand:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, task), daemon=True)
    process.start()
    theirs.close()
    return _Hand(process, ours)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(pipe: Connection, task: Task) -> None:
    """What a process does."""
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = (task(item), None)
        except Exception as error:
            answer = (None, error)
        try:
            pipe.send(answer)
        except (BrokenPipeError, OSError):
            return
