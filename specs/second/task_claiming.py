"""A worker claims a task by a lock of its session (specs/TaskClaiming), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specs.second.explorer import with_item


class Worker(NamedTuple):
    """A worker: whether it lives, what it does, and at which task (None: at none)."""

    alive: bool
    doing: str
    task: int | None


class Task(NamedTuple):
    """A task: its status, failures so far, the worker whose lock it has, how often its effect took place."""

    status: str
    failures: int
    owner: int | None
    effects: int


IDLE = Worker(True, "idle", None)
OPEN = Task("init", 0, None, 0)


class State(NamedTuple):
    workers: tuple[Worker, ...]
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class TaskClaiming:
    """The published protocol; each flag is a broken variant of the manifest.

    `symmetric`: states that differ only in the names of workers are one.
    """

    workers: int
    tasks: int
    max_failures: int
    lock_ignored: bool = False
    status_not_read: bool = False
    one_failure_suffices: bool = False
    no_failure_suffices: bool = False
    expires_early: bool = False
    nothing_released: bool = False
    recovers_at_once: bool = False
    symmetric: bool = False

    def initial(self) -> list[State]:
        """All workers idle, all tasks open."""
        return [State((IDLE,) * self.workers, (OPEN,) * self.tasks)]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Workers scan, lock, execute, unlock, die and come back; sessions end."""
        for number, worker in enumerate(state.workers):
            if worker.alive:
                yield from self._work(state, number)
                yield "WorkerCrash", _with_worker(state, number, worker._replace(alive=False))
            elif self.recovers_at_once or not _locked_by(state, number):
                yield "WorkerRecover", _with_worker(state, number, IDLE)
            if _locked_by(state, number) and (not worker.alive or self.expires_early):
                yield "SessionExpiry", self._expired(state, number)

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/TaskClaiming."""
        return {
            "TypeOK": lambda s: all(task.failures <= self.max_failures for task in s.tasks),
            "MutualExclusion": lambda s: all(len(_executing(s, t)) <= 1 for t in _numbers(s)),
            "NoDoubleExecution": lambda s: (
                not any(_executing(s, t) for t in _numbers(s) if s.tasks[t].status == "committed")
            ),
            "CommittedOnce": lambda s: all(task.effects <= 1 for task in s.tasks),
            "DLQOnlyAfterMaxFailures": lambda s: all(
                task.failures >= self.max_failures for task in s.tasks if task.status == "dlq"
            ),
            "LockConsistency": _locks_are_consistent,
            "NoOrphanExecution": _no_orphan,
        }

    def representative(self, state: State) -> State:
        """With symmetry, workers stand in a fixed order."""
        if not self.symmetric:
            return state
        held = [tuple(t.owner == w for t in state.tasks) for w in range(self.workers)]
        order = sorted(range(self.workers), key=lambda w: (_key(state.workers[w]), held[w]))
        place = {worker: at for at, worker in enumerate(order)}
        tasks = (t._replace(owner=None if t.owner is None else place[t.owner]) for t in state.tasks)
        return State(tuple(state.workers[w] for w in order), tuple(tasks))

    def _work(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        worker = state.workers[number]
        if worker.doing == "idle":
            for place, task in enumerate(state.tasks):
                if task.status == "init":
                    scanning = Worker(True, "scanning", place)
                    yield "ScanTasks", _with_worker(state, number, scanning)
            return
        assert worker.task is not None
        task = state.tasks[worker.task]
        if worker.doing == "scanning":
            yield self._lock(state, number, task)
        elif worker.doing == "executing":
            unlocking = _with_worker(state, number, worker._replace(doing="unlocking"))
            done = task._replace(status="committed", effects=min(2, task.effects + 1))
            yield "ExecuteSuccess", _with_task(unlocking, worker.task, done)
            yield "ExecuteFailure", _with_task(unlocking, worker.task, self._failed(task))
        else:
            freed = task.owner == number and not self.nothing_released
            after = _with_task(state, worker.task, task._replace(owner=None)) if freed else state
            yield "UnlockTask", _with_worker(after, number, IDLE)

    def _lock(self, state: State, number: int, task: Task) -> tuple[str, State]:
        worker = state.workers[number]
        free = task.owner is None or self.lock_ignored
        is_open = task.status == "init" or self.status_not_read
        if worker.task is None or not (free and is_open):
            return "TryLockFail", _with_worker(state, number, IDLE)
        locked = _with_task(state, worker.task, task._replace(owner=number))
        return "TryLockSuccess", _with_worker(locked, number, worker._replace(doing="executing"))

    def _failed(self, task: Task) -> Task:
        failures = task.failures + 1
        enough = failures >= self.max_failures and not self.no_failure_suffices
        dead = enough or self.one_failure_suffices
        return task._replace(failures=failures, status="dlq" if dead else task.status)

    def _expired(self, state: State, number: int) -> State:
        tasks = tuple(
            task._replace(owner=None) if task.owner == number else task for task in state.tasks
        )
        after = state._replace(tasks=tasks)
        worker = state.workers[number]
        return after if worker.alive else _with_worker(after, number, IDLE._replace(alive=False))


def _key(worker: Worker) -> tuple[bool, str, int]:
    return worker.alive, worker.doing, -1 if worker.task is None else worker.task


def _numbers(state: State) -> range:
    return range(len(state.tasks))


def _locked_by(state: State, worker: int) -> bool:
    return any(task.owner == worker for task in state.tasks)


def _executing(state: State, task: int) -> set[int]:
    """The workers that execute a task; a dead one counts until its session is over."""
    return {
        number
        for number, worker in enumerate(state.workers)
        if worker.doing == "executing" and worker.task == task
    }


def _locks_are_consistent(state: State) -> bool:
    return all(
        state.workers[task.owner].task == number
        for number, task in enumerate(state.tasks)
        if task.owner is not None and state.workers[task.owner].alive
    )


def _no_orphan(state: State) -> bool:
    return all(
        _executing(state, number) <= {task.owner}
        for number, task in enumerate(state.tasks)
        if task.owner is not None and not state.workers[task.owner].alive
    )


def _with_worker(state: State, number: int, worker: Worker) -> State:
    return state._replace(workers=with_item(state.workers, number, worker))


def _with_task(state: State, number: int, task: Task) -> State:
    return state._replace(tasks=with_item(state.tasks, number, task))
