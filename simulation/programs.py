"""What lives on a host beside a bucket: programs and nodes.

A program is asynchronous code on an event loop of its own. It serves the requests of the workload with a log
of `simulation.logs`. Beside the requests of the workload it knows `compact`, `close` (a key), `consume` (be a
member of a group), and `vacuum`, which a process of its own carries out. With `conditions` it sends one message
in four as it is, one where it knows the key to end, one with a token, and one with both. A node on a bucket is
the session of `leaderless.runtime.on_store` without its pipes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from bench.services import Body
from leaderless.api.log import Log
from leaderless.core.coordination import InvariantBroken
from leaderless.core.machine import Machine
from leaderless.core.strategy import Options
from leaderless.errors import Broken, Definite, KeyClosed, LogError, OffsetConflict
from leaderless.hosting.host import Host
from leaderless.hosting.place import bounds_of, registers_of
from leaderless.hosting.reads import Record
from leaderless.peers.lines import Peers
from leaderless.runtime.kept_log import look_at
from leaderless.runtime.settings import Settings
from leaderless.store.port import StoreError
from leaderless.wire.bodies import ErrorCode
from simulation.bucket import Bucket
from simulation.life import Life
from simulation.logs import PATIENCE_S, Act, Around, Queues
from simulation.nodes import StrategyMaker, new_session
from simulation.oracle import raise_to, require
from simulation.peers import SimulatedPeers
from simulation.port import STORE_TIMEOUT_S, Port, at_once
from simulation.s3_queue.records import QueueError

POLL_LIMIT = 10  # messages of a key in one poll
GONE_S = 4.0  # who asked so long ago gets no answer any more; the request may have been on its way for a second
RETRY_S = 0.2  # when the bucket did not let it open the log
GROUP = "g"
TROUBLE = (LogError, StoreError, QueueError)  # of a log and its store


class Program(Life):
    """A program that serves a log. `padding` makes each value larger."""

    def __init__(
        self,
        name: str,
        life: int,
        now_s: Callable[[], float],
        around: Around,
        padding: str = "",
        *,
        timeout_s: float = STORE_TIMEOUT_S,
    ) -> None:
        super().__init__(name, life, now_s, timeout_s)
        self._around = around
        self._padding = padding
        self._log: asyncio.Future[Log | Queues] = self.loop.create_future()
        self._compacting = asyncio.Lock()
        self._ends: dict[str, int] = {}  # of keys, as far as it has been told
        self.peers: SimulatedPeers | None = None
        self.start(self._live)

    async def _live(self) -> None:
        while True:
            try:
                meet = self._meet if self._around.crowd else Peers
                async with self._around.opened(self.port, make_peers=meet) as log:
                    self._log.set_result(log)
                    await self.loop.create_future()
            except TROUBLE:
                await anyio.sleep(RETRY_S)

    def _meet(self, writer: str) -> SimulatedPeers:
        assert self._around.crowd
        crowd, fate = self._around.crowd
        self.peers = SimulatedPeers(
            writer,
            host=self.name,
            crowd=crowd,
            fate=fate,
            say=self._say,
            start=self.start,
        )
        return self.peers

    async def _take(self, _line: bytes, src: str, body: Body, at: float) -> None:
        kind = body["type"]
        if "to" in body:
            if self.peers:
                self.peers.heard(body)
            return
        asked: dict[str, Callable[[], Awaitable[None]]] = {
            "compact": self._compact,
            "close": partial(self._close, body),
            "vacuum": partial(self._around.vacuum, self.port),
            **{name: partial(self._act, act, body) for name, act in self._around.acts.items()},
        }
        if kind in asked:
            try:
                await asked[kind]()
            except TROUBLE as error:  # nobody is told the outcome
                self._fail_if_broken(error)
            answer: Body = {"type": f"{kind}_ok"}
        else:
            answer = await self._answer_in_time(body, at + PATIENCE_S - self.loop.time())
        if self.loop.time() - at < GONE_S and "msg_id" in body:
            self._say(src, {**answer, "in_reply_to": body["msg_id"]})

    async def _answer_in_time(self, body: Body, patience_s: float) -> Body:
        try:
            with anyio.move_on_after(max(0.0, patience_s)):
                return await self._answer(body)
        except (Definite, QueueError) as error:
            return _error(ErrorCode.TEMPORARILY_UNAVAILABLE, error)
        except (LogError, StoreError) as error:
            self._fail_if_broken(error)
            return _error(ErrorCode.TIMEOUT, error)
        return _error(ErrorCode.TIMEOUT, "it took too long")

    def _fail_if_broken(self, error: Exception) -> None:
        """The bucket damages nothing: a log that its program finds broken breaks its own invariant."""
        if isinstance(error, Broken):
            self._failed(InvariantBroken(str(error)))

    async def _answer(self, body: Body) -> Body:
        if body["type"] == "init":
            return {"type": "init_ok"}
        log = await asyncio.shield(self._log)
        match body:
            case {"type": "send", "key": key, "msg": msg}:
                value = [msg, self._padding] if self._padding else msg
                if self._around.conditions and isinstance(log, Log) and isinstance(msg, int):
                    return {"type": "send_ok", "offset": await self._append(log, key, value, msg)}
                return {"type": "send_ok", "offset": await log.append(key, value)}
            case {"type": "poll", "offsets": offsets}:
                found = await log.read_many(offsets, POLL_LIMIT) if offsets else {}
                if self._around.conditions:
                    raise_to(self._ends, {key: found[key][-1].offset + 1 for key in found})
                return {"type": "poll_ok", "msgs": {key: self._shown(found[key]) for key in found}}
            case {"type": "commit_offsets", "offsets": offsets}:
                await log.commit(GROUP, offsets)
                return {"type": "commit_offsets_ok"}
            case {"type": "list_committed_offsets", "keys": keys}:
                return {
                    "type": "list_committed_offsets_ok",
                    "offsets": await log.committed(GROUP, keys),
                }
            case {"type": "fence" | "unfence" as kind} if isinstance(log, Log):
                return {"type": "fence_ok", "epoch": await getattr(log, kind)()}
        return _error(ErrorCode.NOT_SUPPORTED, f"a program knows no {body['type']}")

    async def _append(self, log: Log, key: str, value: Any, msg: int, tries: int = 2) -> int:
        """Append on the condition of a message; after a conflict once more, at the end that was met."""
        expected = self._ends.get(key, 0) if msg % 4 in (1, 2) else None
        token = max(0, msg // 4 - msg % 3) if msg % 4 > 1 else None
        try:
            offset = await log.append(key, value, expected=expected, token=token)
        except OffsetConflict as met:
            told = f"key {key} ends at {met.end}, expected was {expected}"
            require(met.end > (expected or 0), "ConditionKept", told)
            raise_to(self._ends, {key: met.end})
            if tries == 1:
                raise
            return await self._append(log, key, value, msg, tries - 1)
        require(expected in (None, offset), "ConditionKept", f"{offset} in place of {expected}")
        raise_to(self._ends, {key: offset + 1})
        return offset

    def _shown(self, records: list[Record]) -> list[list[Any]]:
        return [[each.offset, each.value[0] if self._padding else each.value] for each in records]

    async def _compact(self) -> None:
        """S3-Queue's compactions are not safe beside each other, by its own word."""
        log = await asyncio.shield(self._log)
        async with self._compacting:
            await log.compact()

    async def _close(self, body: Body) -> None:
        """Close a key, and try to append behind its end."""
        key, log = body["key"], await asyncio.shield(self._log)
        assert isinstance(log, Log)
        end = await log.close(key)
        try:
            told = f"{await log.append(key, 'behind')} is an offset"
        except KeyClosed as closed:
            told = f"it ends at {closed.end}"
        require(told == f"it ends at {end}", "ClosedForEver", f"{key} was closed at {end}: {told}")

    async def _act(self, act: Act, body: Body) -> None:
        await act(await asyncio.shield(self._log), self.port, body)


class NodeOnBucket(Life):
    """A node on a bucket. Its first look at the bucket meets no fault: without it no node answers `init`."""

    def __init__(
        self,
        name: str,
        life: int,
        now_s: Callable[[], float],
        bucket: Bucket,
        *,
        strategy: str | StrategyMaker,
        options: Options,
        timeout_s: float = STORE_TIMEOUT_S,
    ) -> None:
        super().__init__(name, life, now_s, timeout_s)
        limits = replace(options.limits, line_bytes=Port.value_bytes_max)  # nothing is a line
        settings = Settings(options=options._replace(limits=limits))
        look = at_once(bucket, lambda store: look_at(store, settings), now_s())
        assert look.shape, look.trouble
        chosen = settings.on_log(look.shape).options
        self._bounds = bounds_of(self.port, PATIENCE_S, timeout_s, look.shape)
        self._session = new_session(
            strategy, life, chosen, look=look, hosted=self._hosted, wall=lambda: bucket.clock_s
        )

    def _hosted(self, machine: Machine) -> Host:
        host = Host(
            machine, registers_of(self.port, self._bounds), self._session.carry_out, goes_on=True
        )
        self.start(host.run)
        return host

    async def _take(self, line: bytes, _src: str, _body: Body, at: float) -> None:
        self._session.receive(line, self.loop.time(), at)

    def take(self) -> bytes:
        """See `NodeSession`."""
        return self._session.take() + super().take()


def _error(code: ErrorCode, what: object) -> Body:
    text = what if isinstance(what, str) else f"{type(what).__name__}: {what}"
    return {"type": "error", "code": code, "text": text}
