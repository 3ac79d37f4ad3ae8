"""When workers get their next operation: the main phase at a rate, and the final phase after the faults.

Both ask the workload's generators for the next operation. A phase is `done` when there are no more
operations and every worker is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench.loop import Loop
from bench.worker import Recorder, Worker
from runs.history import Op
from workloads.interface import Draft, OpGenerator, Turn, Wait

_CATCH_UP_NS = 50_000_000  # how far the schedule may lie behind before the backlog is given up
_RETRY_NS = 1_000_000


@dataclass
class Phase:
    """Which workers are free, and how an operation reaches one. The phase lasts `limit_s` at most."""

    loop: Loop
    recorder: Recorder
    workers: Sequence[Worker]
    generator: OpGenerator
    limit_s: float

    def __post_init__(self) -> None:
        self._end_ns = self.loop.now_ns() + int(self.limit_s * 1e9)
        self._all = (1 << len(self.workers)) - 1
        self._free = self._all  # bit i is set while worker i is free
        self._over = False

    @property
    def done(self) -> bool:
        return self._over and self._free == self._all

    def completed(self, worker: Worker, op: Op) -> None:
        """A worker has finished its operation."""
        self._free |= 1 << worker.number
        self.generator.update(op)

    def _invoke(self, worker: Worker, draft: Draft) -> None:
        self._free &= ~(1 << worker.number)
        worker.invoke(draft)


@dataclass
class MainPhase(Phase):
    """Operations at a rate: gaps are drawn uniformly from 0 to 2/rate seconds.

    Free workers take turns. When all are busy the next one to come free gets an operation at once,
    and the schedule goes on from there.
    """

    rate: float
    random: Random

    def __post_init__(self) -> None:
        super().__post_init__()
        self._gap_ns = 2e9 / self.rate if self.rate else 0.0
        self._cursor = 0
        self._starved = False
        self.loop.call_at(self._end_ns, self._stop)
        if self.rate:
            self._tick_soon()

    def completed(self, worker: Worker, op: Op) -> None:
        super().completed(worker, op)
        if self._starved:
            self._starved = False
            # Not from inside the completion: its caller is not finished with the worker.
            self._tick_soon()

    def _tick_soon(self) -> None:
        self.loop.call_soon(lambda: self._tick(self.loop.now_ns()))

    def _stop(self) -> None:
        self._over = True

    def _tick(self, due_ns: int) -> None:
        """Invoke the operation that was due then, and schedule the next one."""
        now_ns = self.loop.now_ns()
        if self._over or now_ns >= self._end_ns:
            return
        if not self._free:
            self._starved = True
            return
        if not self._give_out():
            self.loop.call_at(now_ns + _RETRY_NS, self._tick, now_ns + _RETRY_NS)
            return
        if now_ns - due_ns > _CATCH_UP_NS:
            due_ns = now_ns
        next_ns = due_ns + int(self.random.random() * self._gap_ns)
        self.loop.call_at(next_ns, self._tick, next_ns)

    def _give_out(self) -> bool:
        """Give the first free worker in turn that has something to do its operation."""
        asked = 0
        while candidates := self._free & ~asked:
            worker = self._next(candidates)
            draft = self.generator.next(Turn(worker.number, self.recorder.now_ns()))
            if isinstance(draft, Draft):
                self._cursor = (self._cursor + 1) % len(self.workers)
                self._invoke(worker, draft)
                return True
            asked |= 1 << worker.number
        return False

    def _next(self, candidates: int) -> Worker:
        """The first candidate at or after the cursor, going round."""
        later = candidates >> self._cursor << self._cursor
        lowest = (later or candidates) & -(later or candidates)
        return self.workers[lowest.bit_length() - 1]


class FinalPhase(Phase):
    """Each worker does what the final generator says as soon as it is free, until the limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._active = set(range(len(self.workers)))
        for worker in self.workers:
            self._ask_soon(worker)

    def completed(self, worker: Worker, op: Op) -> None:
        super().completed(worker, op)
        self._ask_soon(worker)

    def _ask_soon(self, worker: Worker) -> None:
        self.loop.call_soon(lambda: self._ask(worker))

    def _ask(self, worker: Worker) -> None:
        draft = None
        if self.loop.now_ns() < self._end_ns:
            draft = self.generator.next(Turn(worker.number, self.recorder.now_ns()))
        match draft:
            case Draft():
                self._invoke(worker, draft)
            case Wait(until_ns):
                at_ns = min(until_ns + self.recorder.origin_ns, self._end_ns)
                self.loop.call_at(at_ns, self._ask, worker)
            case None:
                self._active.discard(worker.number)
                self._over = not self._active
