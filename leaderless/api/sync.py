"""The log for programs without an event loop: `open_log_sync`, the same methods, which block.

    with open_log_sync("sqlite:///orders.db") as log:
        log.append("eu", {"item": 7})

One thread runs the loop of a log; any number of threads may call it, and share commits as tasks do.
"""

import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from leaderless.api.consumer import READ_AT_ONCE, Consumer
from leaderless.api.log import Log
from leaderless.api.opening import open_log
from leaderless.api.record import Looked, Record, Status
from leaderless.api.tail import Start
from leaderless.core.pace import Pace
from leaderless.core.shape import Runs
from leaderless.hosting.maintenance import Vacuumed
from leaderless.hosting.members import IDLE_S, LATENCY_S
from leaderless.store.values import Encoded, Value

if TYPE_CHECKING:  # it needs pyarrow
    from leaderless.table.retention import Policy, Retained

T = TypeVar("T")


class LogSync:
    """See `Log`: each method is the one of that name, and blocks until it is done."""

    def __init__(self, log: Log, portal: BlockingPortal) -> None:
        self._log = log
        self._running = portal

    def __repr__(self) -> str:
        return repr(self._log)

    @property
    def _portal(self) -> BlockingPortal:
        self._log.host.require_process()
        return self._running

    def append(self, key: str, value: Value) -> int:
        """See `Log.append`."""
        return self._portal.call(self._log.append, key, value)

    def append_many(self, key: str, values: Sequence[Value]) -> list[int]:
        """See `Log.append_many`."""
        return self._portal.call(self._log.append_many, key, values)

    def append_named(self, writer: str, seq: int, records: Sequence[tuple[str, Value]]) -> None:
        """See `Log.append_named`."""
        self._portal.call(self._log.append_named, writer, seq, records)

    def append_encoded(self, writer: str, seq: int, records: Sequence[Encoded]) -> None:
        """See `Log.append_encoded`."""
        self._portal.call(self._log.append_encoded, writer, seq, records)

    def has_named(self, writer: str, seq: int) -> bool:
        """See `Log.has_named`."""
        return self._portal.call(self._log.has_named, writer, seq)

    @property
    def batch_bytes(self) -> int:
        """See `Log.batch_bytes`."""
        return self._log.batch_bytes

    def read(self, key: str, offset: int = 0, limit: int = 100) -> list[Record]:
        """See `Log.read`."""
        return self._portal.call(self._log.read, key, offset, limit)

    def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        """See `Log.read_many`."""
        return self._portal.call(self._log.read_many, offsets, limit)

    def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        """See `Log.look`."""
        looked: Looked = self._portal.call(self._log.look, offsets, limit)
        return looked

    def tail(
        self, keys: Iterable[str], offset: Start = "latest", latency_s: float = LATENCY_S
    ) -> Iterator[Record]:
        """See `Log.tail`."""
        return _Blocking(self._log.tail(keys, offset, latency_s), self)

    def keys(self) -> dict[str, int]:
        """See `Log.keys`."""
        return self._portal.call(self._log.keys)

    def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """See `Log.commit`."""
        self._portal.call(self._log.commit, group, offsets)

    def committed(self, group: str, keys: Iterable[str]) -> dict[str, int]:
        """See `Log.committed`."""
        return self._portal.call(self._log.committed, group, keys)

    def committed_by_nodes(self) -> dict[str, int]:
        """See `Log.committed_by_nodes`."""
        return self._portal.call(self._log.committed_by_nodes)

    @contextmanager
    def consumer(
        self,
        group: str,
        keys: Iterable[str],
        *,
        lease_s: float = 10.0,
        failures_max: int = 5,
        keys_max: int | None = None,
        latency_s: float = LATENCY_S,
        idle_s: float = IDLE_S,
    ) -> Iterator["ConsumerSync"]:
        """See `Log.consumer`."""
        member = self._log.consumer(
            group,
            keys,
            lease_s=lease_s,
            failures_max=failures_max,
            keys_max=keys_max,
            latency_s=latency_s,
            idle_s=idle_s,
        )
        with _entered(self._portal, member) as consumer:
            yield ConsumerSync(consumer, self)

    def fence(self) -> int:
        """See `Log.fence`."""
        return self._portal.call(self._log.fence)

    def unfence(self) -> int:
        """See `Log.unfence`."""
        return self._portal.call(self._log.unfence)

    def compact(self) -> int:
        """See `Log.compact`."""
        return self._portal.call(self._log.compact)

    def vacuum(self, retention_s: float = 3600.0) -> Vacuumed:
        """See `Log.vacuum`."""
        return self._portal.call(self._log.vacuum, retention_s)

    def retain(self, policy: "Policy") -> "Retained":
        """See `Log.retain`."""
        return self._portal.call(self._log.retain, policy)

    def status(self) -> Status:
        """See `Log.status`."""
        return self._portal.call(self._log.status)


class _Blocking(Iterator[Record]):
    """The records of an iterator that waits, which goes on after an error as that one does."""

    def __init__(self, records: AsyncIterator[Record], log: LogSync) -> None:
        self._records = records
        self._log = log

    def __next__(self) -> Record:
        return self._waited(self._records.__anext__)

    def _waited(self, call: Callable[[], Awaitable[T]]) -> T:
        waiting = self._log._portal.start_task_soon(call)
        try:
            return waiting.result()
        except BaseException:  # such as Ctrl-C, of which the loop's thread learns nothing
            waiting.cancel()
            raise


class ConsumerSync(_Blocking):
    """See `Consumer`: each method is the one of that name, and blocks until it is done."""

    def __init__(self, consumer: Consumer, log: LogSync) -> None:
        super().__init__(consumer, log)
        self._consumer = consumer

    def batch(self, limit: int = READ_AT_ONCE) -> list[Record]:
        """See `Consumer.batch`."""
        return self._waited(partial(self._consumer.batch, limit))

    def ack(self, record: Record) -> None:
        """See `Consumer.ack`."""
        self._log._portal.call(self._consumer.ack, record)

    def fail(self, record: Record) -> None:
        """See `Consumer.fail`."""
        self._log._portal.call(self._consumer.fail, record)


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
                with suppress(
                    StopIteration
                ):  # the loop's thread is in the parent: nothing waits for it
                    portal.stop().send(None)


@contextmanager
def open_log_sync(
    url: str,
    topic: str | None = None,
    *,
    create: bool = True,
    endpoint: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    region: str | None = None,
    patience_s: float = 30.0,
    store_timeout_s: float = 5.0,
    message_worth_s: float = Pace().message_worth_s,
    runs: Runs | None = None,
) -> Iterator[LogSync]:
    """Open a log for a program without an event loop; arguments and errors are those of `open_log`."""
    opening = partial(
        open_log,
        url,
        topic,
        create=create,
        endpoint=endpoint,
        access_key=access_key,
        secret_key=secret_key,
        region=region,
        patience_s=patience_s,
        store_timeout_s=store_timeout_s,
        message_worth_s=message_worth_s,
        runs=runs,
    )
    with start_blocking_portal() as portal:
        opened = portal.call(opening)
        with _entered(portal, opened) as log:
            yield LogSync(log, portal)
