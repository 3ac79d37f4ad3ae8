"""The log for programs without an event loop: `open_log_sync`, the same methods, which block.

    with open_log_sync("sqlite:///orders.db") as log:
        log.append("eu", {"item": 7})

One thread runs the loop of a log; any number of threads may call it, and share commits as tasks do.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, suppress
from functools import partial, wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from leaderless.api.log import Log
from leaderless.api.opening import open_log
from leaderless.groups.consumer import Consumer
from leaderless.hosting.reads import Record

P = ParamSpec("P")
T = TypeVar("T")


class _Blocking:
    """What blocks: `_inner`, a part of a log or the log itself, runs in the loop of the log's thread."""

    def __init__(self, inner: Any, log: Log, portal: BlockingPortal) -> None:
        self._inner = inner
        self._log = log
        self._running = portal

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def _portal(self) -> BlockingPortal:
        self._log.host.require_open()
        return self._running

    def _waited(self, call: Callable[[], Awaitable[T]]) -> T:
        waiting = self._portal.start_task_soon(call)
        try:
            return waiting.result()
        except BaseException:  # such as Ctrl-C, of which the loop's thread learns nothing
            waiting.cancel()
            raise


def _as(like: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Decorate a function whose parameters are those of another one, for type checkers and `help`."""

    def declared(made: Callable[..., T]) -> Callable[P, T]:
        theirs, own = signature(like), signature(made).return_annotation
        vars(made)["__signature__"] = theirs.replace(
            return_annotation=own or theirs.return_annotation
        )
        return made

    return declared


def _like(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[..., T]], Callable[Concatenate[_Blocking, P], T]]:
    """Decorate a method whose parameters are those of another one."""
    return cast(Callable[[Callable[..., T]], Callable[Concatenate[_Blocking, P], T]], _as(method))


def _blocks(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[[Callable[..., object]], Callable[Concatenate[_Blocking, P], T]]:
    """Make a method that waits for one of `_inner`; the decorated one gives its name and docstring."""

    def declared(named: Callable[..., object]) -> Callable[Concatenate[_Blocking, P], T]:
        @_like(method)
        @wraps(named)
        def call(self: _Blocking, /, *given: Any, **named: Any) -> T:
            return self._waited(partial(method, self._inner, *given, **named))

        return call

    return declared


class LogSync(_Blocking):
    """See `Log`: each method is the one of that name, and blocks until it is done."""

    def __init__(self, log: Log, portal: BlockingPortal) -> None:
        super().__init__(log, log, portal)

    @_blocks(Log.append)
    def append(self) -> None:
        """See `Log.append`."""

    @_blocks(Log.append_many)
    def append_many(self) -> None:
        """See `Log.append_many`."""

    @_blocks(Log.close)
    def close(self) -> None:
        """See `Log.close`."""

    @_blocks(Log.append_named)
    def append_named(self) -> None:
        """See `Log.append_named`."""

    @_blocks(Log.has_named)
    def has_named(self) -> None:
        """See `Log.has_named`."""

    @property
    def batch_bytes(self) -> int:
        """See `Log.batch_bytes`."""
        return self._log.batch_bytes

    @property
    def hand_overs(self) -> "Counter[str]":
        """See `Log.hand_overs`."""
        return self._log.hand_overs

    @_blocks(Log.read)
    def read(self) -> None:
        """See `Log.read`."""

    @_blocks(Log.offset_at)
    def offset_at(self) -> None:
        """See `Log.offset_at`."""

    @_blocks(Log.read_many)
    def read_many(self) -> None:
        """See `Log.read_many`."""

    @_blocks(Log.look)
    def look(self) -> None:
        """See `Log.look`."""

    @_like(Log.tail)
    def tail(self, *given: Any, **named: Any) -> Iterator[Record]:
        """See `Log.tail`."""
        return _Records(self._log.tail(*given, **named), self._log, self._running)

    @_blocks(Log.keys)
    def keys(self) -> None:
        """See `Log.keys`."""

    @_blocks(Log.commit)
    def commit(self) -> None:
        """See `Log.commit`."""

    @_blocks(Log.committed)
    def committed(self) -> None:
        """See `Log.committed`."""

    @_blocks(Log.committed_by_nodes)
    def committed_by_nodes(self) -> None:
        """See `Log.committed_by_nodes`."""

    @_blocks(Log.redrive)
    def redrive(self) -> None:
        """See `Log.redrive`."""

    @_like(Log.consumer)
    @contextmanager
    def consumer(self, *given: Any, **named: Any) -> Iterator["ConsumerSync"]:
        """See `Log.consumer`."""
        with _entered(self._portal, self._log.consumer(*given, **named)) as consumer:
            yield ConsumerSync(consumer, self._log, self._running)

    @_blocks(Log.fence)
    def fence(self) -> None:
        """See `Log.fence`."""

    @_blocks(Log.unfence)
    def unfence(self) -> None:
        """See `Log.unfence`."""

    @_blocks(Log.compact)
    def compact(self) -> None:
        """See `Log.compact`."""

    @_blocks(Log.vacuum)
    def vacuum(self) -> None:
        """See `Log.vacuum`."""

    @_blocks(Log.retain)
    def retain(self) -> None:
        """See `Log.retain`."""

    @_blocks(Log.trim)
    def trim(self) -> None:
        """See `Log.trim`."""

    @_blocks(Log.groups)
    def groups(self) -> None:
        """See `Log.groups`."""

    @property
    def counters(self) -> dict[str, int]:
        """See `Log.counters`."""
        return self._log.counters

    @_blocks(Log.metrics)
    def metrics(self) -> None:
        """See `Log.metrics`."""

    @_blocks(Log.status)
    def status(self) -> None:
        """See `Log.status`."""


class _Records(_Blocking, Iterator[Record]):
    """The records of an iterator that waits, which goes on after an error as that one does."""

    def __next__(self) -> Record:
        try:
            record: Record = self._waited(self._inner.__anext__)
        except StopAsyncIteration:  # all keys are closed
            raise StopIteration from None
        return record


class ConsumerSync(_Records):
    """See `Consumer`: each method is the one of that name, and blocks until it is done."""

    @property
    def keys(self) -> list[str]:
        """See `Consumer.keys`."""
        return [*self._portal.call(lambda: self._inner.keys)]

    @_blocks(Consumer.batch)
    def batch(self) -> None:
        """See `Consumer.batch`."""

    @_blocks(Consumer.ack)
    def ack(self) -> None:
        """See `Consumer.ack`."""

    @_blocks(Consumer.fail)
    def fail(self) -> None:
        """See `Consumer.fail`."""


@contextmanager
def _entered(portal: BlockingPortal, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What an asynchronous context gives. A child that was forked inside leaves it to its parent."""
    opener = os.getpid()
    with ExitStack() as stack:
        entered = stack.enter_context(portal.wrap_async_context_manager(manager))
        try:
            yield entered
        finally:
            if os.getpid() != opener:
                stack.pop_all()
                # The loop's thread is in the parent: nothing waits for it.
                with suppress(StopIteration):
                    portal.stop().send(None)


@_as(open_log)
@contextmanager
def open_log_sync(*given: Any, **named: Any) -> Iterator[LogSync]:
    """Open a log for a program without an event loop; arguments and errors are those of `open_log`."""
    opening = partial(open_log, *given, **named)
    with start_blocking_portal() as portal, _entered(portal, portal.call(opening)) as log:
        yield LogSync(log, portal)
