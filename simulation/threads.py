"""Threads of a process on a virtual loop: one thing runs at a time, so the same calls come in the same order.

The loop waits while a thread runs. A thread that asks for something lets the loop go on until it has the
answer. So a request from a thread meets whatever a request meets, and its process may die while it waits.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Ask = Callable[[], Awaitable[Any]]
Outcome = Callable[[], Any]  # returns or raises
_HERE = threading.local()


class Ended(BaseException):
    """The process of a thread is gone."""


class _Thread:
    """A call in a thread of its own, which takes turns with the loop."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._turn, self._back = threading.Lock(), threading.Lock()
        self._turn.acquire()
        self._back.acquire()
        self._asks: Ask | None = None  # None: it has ended
        self._outcome: Outcome = _nothing  # of what it asks for, and of the call at last
        threading.Thread(target=self._run, daemon=True).start()

    async def driven(self) -> Outcome:
        """Answer what the thread asks for until it ends; the outcome of its call."""
        self._go_on(_nothing)
        while (asks := self._asks) is not None:
            try:
                answer = await asks()
                self._go_on(lambda answer=answer: answer)  # type: ignore[misc]
            except asyncio.CancelledError:
                while self._asks is not None:
                    self._go_on(_raising(Ended()))
                raise
            except Exception as error:
                self._go_on(_raising(error))
        return self._outcome

    def ask(self, ask: Ask) -> Any:
        """In the thread: what the loop gets when it awaits `ask`."""
        self._asks = ask
        self._back.release()
        self._turn.acquire()
        return self._outcome()

    def _go_on(self, outcome: Outcome) -> None:
        """Let the thread run until it asks for something, or ends."""
        self._outcome, self._asks = outcome, None
        self._turn.release()
        self._back.acquire()

    def _run(self) -> None:
        _HERE.thread = self
        self._turn.acquire()
        try:
            returned = self._call()
            self._outcome = lambda: returned
        except BaseException as error:
            self._outcome = _raising(error)
        self._back.release()


async def in_turn(
    call: Callable[[], T],
    *,
    abandon_on_cancel: bool = False,
    limiter: anyio.CapacityLimiter | None = None,  # noqa: ARG001  # none is needed: one runs at a time
) -> T:
    """As `anyio.to_thread.run_sync`, on a virtual loop."""
    driven = asyncio.ensure_future(_Thread(call).driven())
    with anyio.CancelScope(shield=not abandon_on_cancel):
        outcome: Callable[[], T] = await asyncio.shield(driven)
    return outcome()


def asked(ask: Ask) -> Any:
    """In a thread: what its loop gets when it awaits `ask`."""
    thread: _Thread | None = getattr(_HERE, "thread", None)
    assert thread, "a call that blocks is made outside of a thread"
    return thread.ask(ask)


def _nothing() -> None:
    """It was asked for nothing yet."""


def _raising(error: BaseException) -> Outcome:
    def outcome() -> Any:
        raise error

    return outcome
