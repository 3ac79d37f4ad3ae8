"""Protocol processes: sequential code without I/O, in the terms of structured concurrency.

A process is a generator. It yields a trap, the scheduler handles it, and the process is resumed:

    outcome = yield from call(Get("head"))      # a store operation: its Outcome
    answer = yield from ask("n1", question, 0.1)  # a peer: its answer, None without one in time
    results = yield from gather([p, q])         # child processes, side by side: what they return
    yield Sleep(until)                          # resumed at `until`, not before; a time that has come:
                                                # when all events that came together have been taken
    yield Wait(signal)                          # resumed when another process yields Notify(signal)
    yield Wait(signal, until)                   # or at `until`
    yield Spawn(process)                        # another process, on its own from now on
    yield Tell("n1", share)                     # a peer, one way: emitted, resumed at once
    yield Note("it is slow")                    # a line for the node's log
    yield Reply(request, SendOk(7))             # an answer: emitted, resumed at once

So a protocol reads top to bottom, races included, while everything stays a value machine: no await, no
clock, no thread. The idea is that of sans-I/O protocol code (h11, aioquic) with generators for the waiting;
"trap" is the word of curio and trio for what a coroutine yields to its scheduler.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from leaderless.core.messages import (
    Cas,
    Get,
    Note,
    Outcome,
    PeerReply,
    Put,
    Question,
    Reply,
    StoreOp,
    Tell,
)

T = TypeVar("T")
W = TypeVar("W")


class Sleep(NamedTuple):
    """Wait until a time, in seconds of the machine's clock; at least until the end of the turn."""

    until: float


class Gather(NamedTuple):
    """Run child processes side by side and wait for all of them; see `gather`."""

    children: "Iterable[Process[object]]"


class Ask(NamedTuple):
    """Ask a peer and wait for its answer, for `patience_s` at most; see `ask`."""

    dest: str
    question: Question
    patience_s: float


class Signal:
    """Something that happens once; a process that waits for it, before or after, goes on.

    `waiting` belongs to the scheduler.
    """

    __slots__ = ("fired", "waiting")

    def __init__(self) -> None:
        self.fired: bool = False
        self.waiting: list[Any] = []


class Wait(NamedTuple):
    """Wait until the signal has fired, or until a time, in seconds of the machine's clock."""

    signal: Signal
    until: float | None = None


class Notify(NamedTuple):
    """Fire the signal: every process that waits for it goes on."""

    signal: Signal


class Spawn(NamedTuple):
    """Run another process, without waiting for it."""

    process: "Process[object]"


Trap = Get | Put | Cas | Ask | Sleep | Gather | Wait | Notify | Spawn | Reply | Tell | Note
# What a process is resumed with depends on the trap, which a generator's type cannot say: so it is `Any`
# here, and the functions below give it its type. `T` is what the process returns.
Process = Generator[Trap, Any, T]


def call(op: StoreOp) -> Process[Outcome]:
    """Carry out one store operation. It is never tried again here; `Unknown` means that it may have
    happened, or may still happen."""
    outcome: Outcome = yield op
    return outcome


def ask(dest: str, question: Question, patience_s: float) -> Process[PeerReply | None]:
    """Ask the peer `dest`; None if it refused, or did not answer within `patience_s` seconds: see `NotSent`."""
    answer: PeerReply | None = yield Ask(dest, question, patience_s)
    return answer


def gather(children: Iterable[Process[T]]) -> Process[list[T]]:
    """Run child processes side by side; returns what they return, in their order.

    An exception of a child ends the wait with the same exception; the other children run on.
    """
    children = list(children)
    if len(children) == 1:  # mostly
        return [(yield from children[0])]
    results: list[T] = yield Gather(children)
    return results


def resolved(
    asking: Generator[Sequence[W], list[Any], T], answer: Callable[[W], Process[object]]
) -> Process[T]:
    """What a reader without I/O returns; what it asks for at once is resolved side by side."""
    try:
        wanted = next(asking)
        while True:
            # Not inside the call: a digest of a process knows no method that waits for its argument.
            found = yield from gather(map(answer, wanted))
            wanted = asking.send(found)
    except StopIteration as end:
        result: T = end.value
        return result


def notifying(done: Signal, process: Process[T]) -> Process[T]:
    """Run a process, and fire the signal when it ends or fails; not when it is closed: that must not yield."""
    try:
        result = yield from process
    except Exception:
        yield Notify(done)
        raise
    yield Notify(done)
    return result
