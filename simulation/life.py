"""One life of a process beside a bucket: a session of lines, as a node on `lin-kv` is."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import orjson

from bench.services import Body
from leaderless.wire.codec import encode
from simulation.hosts import NodeSession
from simulation.loop import VirtualEventLoop
from simulation.nodes import CALLS_PER_START
from simulation.port import STORE_TIMEOUT_S, Port

BUCKET = "bucket"  # its name in the network


class Life(NodeSession):
    """One life of a process beside a bucket. `now_s`: the time of all processes.

    Whatever its code raises, an invariant that it finds broken or an error of its own, its step raises.
    """

    def __init__(
        self,
        name: str,
        life: int,
        now_s: Callable[[], float],
        timeout_s: float = STORE_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.numbers_from = CALLS_PER_START * life  # of its requests
        self.loop = VirtualEventLoop()
        self.loop.now_s = now_s()
        self.loop.set_exception_handler(lambda _loop, told: self._failed(told.get("exception")))
        self.port = Port(partial(self._say, BUCKET), self.numbers_from, timeout_s)
        self._now_s = now_s
        self._skipped_s = 0.0  # how much later it is for processes than for the network
        self._lines: list[bytes] = []
        self._error: BaseException | None = None

    @property
    def deadline(self) -> float | None:
        """See `NodeSession`."""
        deadline = self.loop.deadline
        return None if deadline is None else deadline - self._skipped_s

    def receive_all(
        self, lines: Sequence[bytes], now: float, arrived_at: float | None = None
    ) -> None:
        """See `NodeSession`."""
        at = self._now_s() - (0.0 if arrived_at is None else now - arrived_at)
        for line in lines:
            message = orjson.loads(line)
            if message["src"] == BUCKET:
                self.loop.call_soon(self.port.answered, message["body"])
            else:
                self.start(self._take, line, message["src"], message["body"], at)
        self.pass_time(now)

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        """See `NodeSession`."""
        self.receive_all([line], now, arrived_at)

    def pass_time(self, now: float) -> None:
        """See `NodeSession`."""
        self._skipped_s = self._now_s() - now
        self.loop.run(self._now_s())
        if self._error:
            raise self._error

    def take(self) -> bytes:
        """See `NodeSession`."""
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def end(self) -> None:
        """Let go of what a process that was killed has left; it says nothing."""
        self.loop.end()

    def start(self, work: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Let something run as a task."""

        async def guarded() -> None:
            try:
                await work(*arguments)
            except Exception as error:
                self._failed(error)

        self.loop.create_task(guarded())

    async def _take(self, line: bytes, src: str, body: Body, at: float) -> None:
        """Somebody else than the bucket has said something, which came `at` that time."""
        raise NotImplementedError

    def _failed(self, error: BaseException | None) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self._error = self._error or error

    def _say(self, dest: str, body: Body) -> None:
        self._lines.append(encode(self.name, dest, body))
