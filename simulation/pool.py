"""Spreads work over processes: each takes one item at a time, and no process outlives the parent.

Processes are spawned, not forked, so they start alike on every system. Ctrl-C reaches the parent alone, which
ends them. When the parent dies they find their pipe closed and end too.

`concurrent.futures.ProcessPoolExecutor` does not serve here. Closing it waits for the items under way, and a
seed may take a minute. When a process dies, it says neither with which status nor on which item.
"""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from bench.failure import RunFailure
from bench.system import handled

Task = Callable[[Any], Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Worker:
    """A process, and its present item: None while it is idle."""

    process: BaseProcess
    pipe: Connection
    item: Any = None


def spread(
    task: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Generator[Result, None, None]:
    """`task(item)` for each item, in the order in which they finish, in `jobs` processes.

    `task`, its items and its results must be picklable; no item is None. The processes end when the generator
    is closed or used up. An exception in `task` is raised here. Raises `RunFailure` when a process dies.
    """
    todo = iter(items)
    with _workers(task, jobs) as workers:
        for worker in workers:
            _give(worker, todo)
        while busy := {worker.pipe: worker for worker in workers if worker.item is not None}:
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]  # only pipes are waited for
                result = _taken(worker)
                _give(worker, todo)
                yield result


def _give(worker: _Worker, todo: Iterator[Any]) -> None:
    worker.item = next(todo, None)
    if worker.item is not None:
        worker.pipe.send(worker.item)


def _taken(worker: _Worker) -> Any:
    try:
        result, error = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        status = worker.process.exitcode
        raise RunFailure(f"A process died (status {status}) working on {worker.item}.") from None
    if error is not None:
        raise error
    return result


@contextmanager
def _workers(task: Task, jobs: int) -> Iterator[list[_Worker]]:
    workers: list[_Worker] = []
    try:
        with handled(signal.SIGINT, signal.SIG_IGN):  # which the processes inherit
            for _ in range(jobs):
                workers.append(_start(task))  # noqa: PERF401 - each must be known before the next starts
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.pipe.close()
        for worker in workers:
            worker.process.join()


def _start(task: Task) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, task), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(pipe: Connection, task: Task) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that a task ends what it has started
    with suppress(EOFError, OSError):  # of the pipe: the parent is gone
        while True:
            item = pipe.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = (task(item), None)
            except Exception as error:
                answer = (None, error)
            pipe.send(answer)
