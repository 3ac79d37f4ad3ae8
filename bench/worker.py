"""Workers perform operations, and phases say when: callbacks on the loop.

A worker performs one operation after another through its client.

The `Recorder` collects what they do as the history of the run, and streams it to `history.jsonl`, so that an
abort loses nothing.

Workers get their operations in the main phase at a rate, and in the final phase, after the faults, as soon as
they are free. Both ask the workload's generators for the next operation. A phase is `done` when there are no
more operations and every worker is free.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from random import Random
from typing import Any

import orjson

from bench.failure import RunFailure, clip, indent
from bench.loop import Loop
from bench.net import GAVE_UP, Departure, Network
from runs.history import Keyword, Op, OpType, Process, json_line
from runs.writing import LineBuffer, Lines
from workloads.interface import (
    NODE,
    Client,
    CrashClient,
    Draft,
    MalformedReply,
    OpGenerator,
    Rpc,
    RpcError,
    RpcTimeout,
    Steps,
    Turn,
    Wait,
    Workload,
    error_of,
    shown,
)


class Recorder(LineBuffer):
    """Numbers and times operations. Time counts from `start`, when the main phase begins."""

    def __init__(self, loop: Loop, file: Lines) -> None:
        super().__init__(file)
        self._loop = loop
        # Where the history's clock begins on the loop's clock, which the journal uses.
        self.origin_ns = 0
        self.ops: list[Op] = []
        self.operation_count = 0  # invoked by clients

    def start(self) -> None:
        """Let the clock of the history begin now."""
        self.origin_ns = self._loop.now_ns()

    def now_ns(self) -> int:
        return self._loop.now_ns() - self.origin_ns

    def record(
        self,
        type: OpType,  # noqa: A002 - the field is called so in every history
        process: Process,
        f: str,
        value: Any,
        extra: dict[str, Any] | None = None,
    ) -> Op:
        """Append one operation to the history, with the present time."""
        op = Op(len(self.ops), self.now_ns(), type, process, f, value, extra or {})
        self.ops.append(op)
        self.operation_count += type == "invoke"  # a nemesis has only `info`
        self.lines.append(json_line(op) + b"\n")
        return op


_NUMBERED = '{"type": ..., "in_reply_to": <msg_id>, "msg_id": <an integer; or leave it out>}'


def client_names() -> Callable[[], str]:
    """A function that makes names of clients: c0, c1, ...; each only once."""
    return map("c{}".format, count()).__next__


@dataclass(eq=False, kw_only=True)
class Worker:
    """Performs operations on one node, one at a time.

    `whose` says which node that is at present; a worker that is to go on with another does so as a new process.
    `on_complete(worker, op)` is called after each completion, `on_failure` when a reply breaks the protocol.
    """

    number: int
    whose: Callable[[], str]
    concurrency: int
    workload: Workload
    loop: Loop
    network: Network
    recorder: Recorder
    new_client: Callable[[], str]
    on_complete: Callable[["Worker", Op], None]
    on_failure: Callable[[RunFailure], None]

    def __post_init__(self) -> None:
        self.process = self.number
        self.node = self._first_node = self.whose()
        self._client: Client | None = None
        self._client_id = ""
        self._departure: Departure | None = None  # of a client that the next operation will replace
        self._op: Op | None = None
        self._steps: Steps | None = None
        self.asked = ""  # the type of the last request
        self.is_late = False  # whether an answer came after its request had been given up
        self._rpc: Rpc | None = None  # the request that waits for its reply
        self._msg_id = 0
        # Requests of this client that were not answered, given up or not.
        self._waiting = set[int]()
        self._deadline_ns = 0

    def invoke(self, draft: Draft) -> None:
        """Begin an operation."""
        if (node := self.whose()) != self.node:
            if self._client:
                self.process += self.concurrency
                self._departure = Departure(self.loop.now_ns(), "had gone on with another node")
                self._client = None
            self.node = node
        extra = draft.extra if node == self._first_node else draft.extra | {NODE: node}
        op = self.recorder.record("invoke", self.process, draft.f, draft.value, extra)
        self._op = replace(op)  # to which a client may add
        self._steps = (self._client or self._open()).invoke(self._op)
        self._advance(self._steps.send, None)

    def _open(self) -> Client:
        """Open a fresh client. The one before leaves the network only now, as the real tool's does."""
        if self._departure:
            self.network.leave(self._client_id, self._departure)
            self._departure = None
        self._client_id = self.new_client()
        self._msg_id = 0
        self._waiting = set()
        self.network.add(self._client_id, self._deliver)
        self._client = self.workload.open_client(self.node)
        return self._client

    def _advance(self, resume: Callable[[Any], Rpc], argument: Any) -> None:
        """Resume the client until its next request or its end, and send or complete."""
        try:
            rpc = resume(argument)
        except StopIteration as finished:
            self._complete("ok", value=finished.value)
        except CrashClient:
            self._complete("info", "had crashed")
        except RpcTimeout:
            self._complete(self._unknown_outcome(), GAVE_UP, error=Keyword("net-timeout"))
        except RpcError as error:
            outcome = "fail" if error.definite else self._unknown_outcome()
            self._complete(outcome, error=[Keyword(error.name), error.text])
        except MalformedReply as malformed:
            # The run ends, and this operation has not.
            self.on_failure(_report(self.node, malformed))
        except Exception as bug:
            # A workload's client is broken. The operation's outcome is unknown; the `exceptions`
            # checker reports it, and the run goes on.
            self._complete("info", error=f"indeterminate: {bug}", exception=type(bug).__name__)
        else:
            self._send(rpc)

    def _unknown_outcome(self) -> OpType:
        """`fail` for an operation without effects, which never happened; otherwise `info`."""
        assert self._op
        return "fail" if self._op.f in self.workload.idempotent else "info"

    def _send(self, rpc: Rpc) -> None:
        self._msg_id += 1
        self._waiting.add(self._msg_id)
        self._rpc = rpc
        self.asked = rpc.body["type"]
        self._deadline_ns = self.loop.now_ns() + rpc.timeout_ms * 1_000_000
        self.loop.call_at(self._deadline_ns, self._expire)
        self.network.send(self._client_id, rpc.dest, {**rpc.body, "msg_id": self._msg_id})

    def _expire(self) -> None:
        """The deadline of some request has come: of the one that waits, or of one before it."""
        if self._rpc and self._steps and self.loop.now_ns() >= self._deadline_ns:
            self._rpc = None
            self._advance(self._steps.throw, RpcTimeout())

    def _deliver(self, src: str, body: dict[str, Any], _wire: bytes) -> None:
        answered = body.get("in_reply_to")
        if type(answered) is not int or answered not in self._waiting:
            if type(answered) is int and 0 < answered <= self._msg_id:
                self.network.hearing.repeated[src] += 1
            return
        self._waiting.discard(answered)
        if self._rpc is None or answered != self._msg_id:
            self.is_late = True  # an answer to a request that was given up
            return
        assert self._steps
        rpc, self._rpc = self._rpc, None
        if body.get("type") == "error":
            self._advance(self._steps.throw, error_of(body))
        elif type(body.get("msg_id", 0)) is not int:
            why = f"the field msg_id is {shown(body['msg_id'])}, not an integer"
            self._advance(self._steps.throw, MalformedReply(rpc.body, body, _NUMBERED, why))
        else:
            self._advance(self._steps.send, body)

    def _complete(
        self,
        type: OpType,  # noqa: A002 - as in every history
        why: str = "had left after an error",
        *,
        value: Any = None,
        **extra: Any,
    ) -> None:
        """End the operation; `why` says why the client leaves, if it has to."""
        op = self._op
        assert op
        self._op = self._steps = None
        value = value if type == "ok" else op.value
        done = self.recorder.record(
            type, self.process, op.f, value, {**op.extra, **extra} if extra else op.extra
        )
        if type == "info":
            self.process += self.concurrency
            if not self.workload.reusable:
                self._departure = Departure(self.loop.now_ns(), why)
                self._client = None
        self.on_complete(self, done)


def _report(node: str, malformed: MalformedReply) -> RunFailure:
    def show(body: Any) -> str:
        return indent(clip(orjson.dumps(body).decode()))

    return RunFailure(
        f"Node {node} sent a malformed reply: {malformed.why}.\nThe request was\n"
        f"{show(malformed.request)}\nand the reply should look like\n"
        f"{indent(malformed.expected)}\nbut it was\n{show(malformed.reply)}"
    )


# ---------------------------------------------------------------- phases


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
        self._free = {worker.number for worker in self.workers}
        self._over = False

    @property
    def done(self) -> bool:
        return self._over and len(self._free) == len(self.workers)

    def completed(self, worker: Worker, op: Op) -> None:
        """A worker has finished its operation."""
        self._free.add(worker.number)
        self.generator.update(op)

    def _invoke(self, worker: Worker, draft: Draft) -> None:
        self._free.discard(worker.number)
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
        in_turn = chain(range(self._cursor, len(self.workers)), range(self._cursor))
        for number in filter(self._free.__contains__, in_turn):
            draft = self.generator.next(Turn(number, self.recorder.now_ns()))
            if isinstance(draft, Draft):
                self._cursor = (self._cursor + 1) % len(self.workers)
                self._invoke(self.workers[number], draft)
                return True
        return False


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
        turn = Turn(worker.number, self.recorder.now_ns())
        match self.generator.next(turn) if self.loop.now_ns() < self._end_ns else None:
            case Draft() as draft:
                self._invoke(worker, draft)
            case Wait(until_ns):
                at_ns = min(until_ns + self.recorder.origin_ns, self._end_ns)
                self.loop.call_at(at_ns, self._ask, worker)
            case None:
                self._active.discard(worker.number)
                self._over = not self._active
