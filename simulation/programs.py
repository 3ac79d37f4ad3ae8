"""What lives on a host beside a bucket: programs and nodes, each a session of lines, as a node on `lin-kv` is.

A program is asynchronous code on an event loop of its own. It serves the requests of the workload with one of
three logs: ours as programs use it, and S3-Queue's two. Its requests to the bucket are messages, too. Beside
the requests of the workload it knows `compact`, `consume` (be a member of a group), and `vacuum`, which a
process of its own carries out. A node on a bucket is the session of `leaderless.runtime.on_store` without its
pipes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
import orjson

from bench.services import Body
from leaderless.api.log import Log
from leaderless.core.coordination import InvariantBroken
from leaderless.core.machine import Machine
from leaderless.core.shape import Shape
from leaderless.core.strategy import Identity, Options, Trace
from leaderless.errors import Broken, Definite, LogError
from leaderless.hosting.host import Host, running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.hosting.reads import Record
from leaderless.hosting.surroundings import Surroundings
from leaderless.runtime.kept_log import look_at
from leaderless.runtime.settings import Settings
from leaderless.store.calls import side_by_side
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Store,
    StoreError,
    Version,
)
from leaderless.store.registers import Registers
from leaderless.store.wrapped import Within
from leaderless.wire.bodies import ErrorCode
from leaderless.wire.codec import encode
from simulation.bucket import PRECONDITION_FAILED, TEXT, Bucket
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.nodes import CALLS_PER_START, NodeSession, StrategyMaker, new_session
from simulation.s3_queue.client import Repeating
from simulation.s3_queue.published import Topic
from simulation.s3_queue.records import QueueError
from simulation.s3_queue.repaired import RepairedTopic

BUCKET = "bucket"  # its name in the network
LEADERLESS, PUBLISHED, REPAIRED = "leaderless", "s3-queue", "s3-queue-repaired"
LOGS = (LEADERLESS, PUBLISHED, REPAIRED)
RETENTION_S = 1000.0  # of a vacuum
POLL_LIMIT = 10  # messages of a key in one poll
PATIENCE_S = 3.5  # a program gives an answer within this time
READ_S = 1.0  # a poll of a queue ends after the message that it reads then
GONE_S = 4.0  # who asked so long ago gets no answer any more; the request may have been on its way for a second
RETRY_S = 0.2  # when the bucket did not let it open the log
STORE_TIMEOUT_S = 1.0
GROUP = "g"
TROUBLE = (LogError, StoreError, QueueError)  # of a log and its store
INLINE_BYTES = 64  # larger values get an object of their own

T = TypeVar("T")


class Port:
    """The store port of one process: `say` sends a request, and `answered` takes what comes back.

    `numbers_from`: no two lives of a process give their requests the same numbers.
    """

    url = "virtual:"
    value_bytes_max = 1 << 30

    def __init__(
        self,
        say: Callable[[Body], object],
        numbers_from: int = 0,
        timeout_s: float = STORE_TIMEOUT_S,
    ) -> None:
        self._say = say
        self._number = numbers_from
        self._timeout_s = timeout_s
        self._open: dict[int, asyncio.Future[Body]] = {}

    def answered(self, body: Body) -> None:
        """An answer came; perhaps nobody waits for it any more."""
        answer = self._open.pop(body["in_reply_to"], None)
        if answer and not answer.done():
            answer.set_result(body)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key)
        return Found(found["value"].encode(TEXT), found["etag"]) if "etag" in found else None

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key, unless=known.version)
        if "etag" not in found:
            return None
        return Found(found["value"].encode(TEXT), found["etag"]) if "value" in found else known

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return str((await self._ask("put", key, value=value.decode(TEXT)))["etag"])

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return str((await self._ask("create", key, value=value.decode(TEXT)))["etag"])

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        changed = await self._ask("update", key, value=value.decode(TEXT), etag=version)
        return str(changed["etag"])

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        if keys:
            await self._ask("delete", keys[0], keys=list(keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""
        page = await self._ask("list", folder, after=after, limit=limit)
        return [Listed(*each) for each in page["found"]]

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""

    async def _ask(self, kind: str, key: str, **more: Any) -> Body:
        self._number += 1
        answer = self._open[self._number] = asyncio.get_running_loop().create_future()
        self._say({"type": kind, "key": key, **more, "msg_id": self._number})
        with anyio.move_on_after(self._timeout_s):
            body: Body = await answer
            if body["type"] != "error":
                return body
            error = Conflict if body["code"] == PRECONDITION_FAILED else OutcomeUnknown
            raise error(body["text"])
        raise OutcomeUnknown(f"no answer within {self._timeout_s:g} s")


def port_to(bucket: Bucket, client: str) -> Port:
    """A port whose requests are carried out and answered at once."""

    def say(body: Body) -> None:
        port.answered({**bucket.carried_out(client, body), "in_reply_to": body["msg_id"]})

    port = Port(say)
    return port


def at_once(bucket: Bucket, work: Callable[[Store], Awaitable[T]], now_s: float) -> T:
    """What a process does to which nothing else happens."""

    async def main(loop: VirtualEventLoop) -> T:
        loop.now_s = now_s
        return await work(port_to(bucket, "operator"))

    return run_virtual(main)


class Around(NamedTuple):
    """What a program has beside its store.

    `log`: one of `LOGS`; `repeats`: its client library repeats conditional writes. `now`: seconds since 1970,
    by the clock of an operator (True) or of any other process. `trace`: what takes the steps of its protocol.
    `shape` and `limits`: what differs from those of all programs, of a log that it makes, and its own.
    `store_timeout_s`: see `leaderless.core.pace.Pace`. `join`: what a member of a group does with its log.
    """

    log: str
    repeats: bool
    now: Callable[[bool], float]
    name: Callable[[], str]
    trace: Callable[[Identity], Trace]
    shape: Mapping[str, Any]
    limits: Mapping[str, Any] = {}
    store_timeout_s: float = STORE_TIMEOUT_S
    join: Callable[[Any, Body], Awaitable[None]] | None = None

    @asynccontextmanager
    async def opened(
        self, store: Store, *, operator: bool = False
    ) -> AsyncIterator["Log | Queues"]:
        """The log, open in one process."""
        now = partial(self.now, operator)
        store = Repeating(store) if self.repeats else store
        if self.log != LEADERLESS:
            yield Queues(store, self, now)
            return
        bounds = bounds_of(store, PATIENCE_S, self.store_timeout_s, await self.founded(store))
        limits = replace(bounds.limits, **self.limits)
        log = Log(
            store,
            bounds._replace(limits=limits, inline_bytes=INLINE_BYTES),
            Surroundings(now, self.name, self.trace),
        )
        async with running(log.host):
            yield log

    async def founded(self, store: Store) -> Shape:
        """The shape of the log, which is made if there is none."""
        wanted = replace(new_shape(store), **self.shape)
        return (await initialise(store, shape=wanted)).shape

    async def vacuum(self, store: Store) -> None:
        """Vacuum as an operator does, in a process of its own."""
        async with self.opened(store, operator=True) as log:
            await log.vacuum(RETENTION_S)


class Queues:
    """S3-Queue's topics, one a key, asked as our `Log` is. It has no committed offsets."""

    def __init__(self, store: Store, around: Around, now: Callable[[], float]) -> None:
        self._store, self._around, self._now = store, around, now
        self._topics: dict[str, Topic] = {}

    async def append(self, key: str, value: Any) -> int:
        [offset] = await (await self._topic(key)).produce([value])
        return offset

    async def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        reads = [partial(self._read, key, max(1, at), limit) for key, at in offsets.items()]
        return dict(zip(offsets, await side_by_side(reads), strict=True))

    async def compact(self) -> None:
        for topic in [*self._topics.values()]:
            if found := await topic.compactable():
                await topic.resume(*found)

    async def vacuum(self, retention_s: float) -> None:
        listed = await self._store.list_objects()
        for name in dict.fromkeys(each.key.partition("/")[0] for each in listed):
            await (await self._topic(name)).vacuum(self._now(), retention_s)

    async def commit(self, _group: str, _offsets: Mapping[str, int]) -> None:
        return

    async def committed(self, _group: str, _keys: Iterable[str]) -> dict[str, int]:
        return {}

    async def _read(self, key: str, at: int, limit: int) -> list[Record]:
        """Its offsets count from 1."""
        topic, until = await self._topic(key), anyio.current_time() + READ_S
        records: list[Record] = []
        while len(records) < limit and (messages := await topic.read(at)):
            records += [Record(key, *message) for message in messages]
            at = messages[-1].offset + 1
            if anyio.current_time() > until:
                break
        return records

    async def _topic(self, key: str) -> Topic:
        if key not in self._topics:
            store, around = Within(self._store, key), self._around
            if around.log == PUBLISHED:
                topic = Topic(store, around.name)
            else:
                topic = RepairedTopic(store, around.name, RETENTION_S)
            await topic.initialise()
            self._topics[key] = topic
        return self._topics[key]


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
        say = partial(self._say, BUCKET)
        self.port = Port(say, self.numbers_from, timeout_s)
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
        self.start(self._live)

    async def _live(self) -> None:
        while True:
            try:
                async with self._around.opened(self.port) as log:
                    self._log.set_result(log)
                    await self.loop.create_future()
            except TROUBLE:
                await anyio.sleep(RETRY_S)

    async def _take(self, _line: bytes, src: str, body: Body, at: float) -> None:
        kind = body["type"]
        asked: dict[str, Callable[[], Awaitable[None]]] = {
            "compact": self._compact,
            "consume": partial(self._consume, body),
            "vacuum": partial(self._around.vacuum, self.port),
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
                return {"type": "send_ok", "offset": await log.append(key, value)}
            case {"type": "poll", "offsets": offsets}:
                found = await log.read_many(offsets, POLL_LIMIT) if offsets else {}
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

    def _shown(self, records: list[Record]) -> list[list[Any]]:
        return [[each.offset, each.value[0] if self._padding else each.value] for each in records]

    async def _compact(self) -> None:
        """S3-Queue's compactions are not safe beside each other, by its own word."""
        log = await asyncio.shield(self._log)
        async with self._compacting:
            await log.compact()

    async def _consume(self, body: Body) -> None:
        log, join = await asyncio.shield(self._log), self._around.join
        assert join, "there is no group"
        await join(log, body)


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
        self._session = new_session(strategy, life, chosen, look=look, hosted=self._hosted)

    def _hosted(self, machine: Machine) -> Host:
        host = Host(machine, Registers(self.port), self._session.carry_out, goes_on=True)
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
