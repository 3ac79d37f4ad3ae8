"""The logs that a simulated run judges, with the same few operations: ours, and S3-Queue's two.

An operation returns, or raises; `outcomes` says whether it may have happened.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

import anyio
import orjson

from leaderless.api.log import Log
from leaderless.core.messages import (
    Answer,
    CommitOffsets,
    CommitOffsetsOk,
    Failure,
    ListCommittedOffsets,
    ListCommittedOffsetsOk,
    Poll,
    PollOk,
    Send,
    SendOk,
)
from leaderless.core.strategy import Clock, Context, Identity, Trace
from leaderless.errors import Definite, Indefinite, LogError
from leaderless.hosting.data import Data
from leaderless.hosting.host import Host, MakeEvent, running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.port import Store, StoreError
from leaderless.store.values import message_of
from leaderless.store.wrapped import Within
from simulation.objects.nodes import Peers, node_on
from simulation.objects.scenario import LEADERLESS, PUBLISHED, RETENTION_S, Scenario
from simulation.s3_queue.client import Repeating
from simulation.s3_queue.published import Topic
from simulation.s3_queue.records import QueueError
from simulation.s3_queue.repaired import RepairedTopic

POLL_LIMIT = 10  # messages of a key in one poll
PATIENCE_S = 20.0
STORE_TIMEOUT_S = 1.0
GROUP = "g"
NOT_MIXED = "this log has no committed offsets here"
INLINE_BYTES = 64  # larger values get an object of their own

A = TypeVar("A", bound=Answer)
Message = list[Any]  # a number, and padding
Polled = dict[str, list[tuple[int, Any]]]


class Rejected(Exception):
    """It did not happen, and will not."""


class Unclear(Exception):
    """It may have happened, or may still happen."""


class OpenLog(Protocol):
    """A log as one process sees it. `home`: where its committed offsets are, if it has any."""

    home: str = ""

    async def send(self, key: str, value: Message) -> int:
        """Append a value; returns its offset."""
        ...

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        """Pairs of offset and value of each key, from a position on."""
        ...

    async def compact(self, key: str) -> None:
        """Compact what can be compacted."""
        ...

    async def vacuum(self, key: str) -> None:
        """Delete data that no message refers to, older than `RETENTION_S`."""
        ...

    async def commit(self, offsets: dict[str, int]) -> None:
        """Commit offsets."""
        raise AssertionError(f"{NOT_MIXED}: {offsets}")

    async def committed(self, keys: list[str]) -> dict[str, int]:
        """The committed offsets that there are."""
        raise AssertionError(f"{NOT_MIXED}: {keys}")


class Around(NamedTuple):
    """What a process has beside its store.

    `life`: the name of this start of it; `trace`: makes what takes the steps of its protocol.
    """

    scenario: Scenario
    now: Callable[[], float]
    name: Callable[[], str]
    random: Random
    life: str
    peers: Peers
    trace: Callable[[Identity], Trace]


@asynccontextmanager
async def opened(store: Store, around: Around) -> AsyncIterator[OpenLog]:
    """The log of a scenario, open in one process."""
    scenario = around.scenario
    if scenario.repeats:
        store = Repeating(store)
    if scenario.log != LEADERLESS:
        yield _Queues(store, around)
        return
    life = around.scenario.life(around.life, new_shape(store))
    with outcomes():
        shape = (await initialise(store, shape=life.shape)).shape
    bounds = bounds_of(store, PATIENCE_S, STORE_TIMEOUT_S, shape)
    bounds = bounds._replace(limits=life.limits(bounds.limits), inline_bytes=INLINE_BYTES)
    if life.nodes:
        name = around.life.partition("/")[0]
        writer = f"{name}.{around.name()}"  # as of a session
        identity = Identity(name, life.peers(name, scenario.processes), writer)
        options = life.options(shape, PATIENCE_S)
        context = Context(identity, Clock(), options, around.trace(identity))
        async with node_on(store, context, around.peers) as host:
            yield _OfNode(host, Data(store, bounds.inline_bytes, bounds.value_bytes))
        return
    log = Log(store, bounds, Surroundings(around.now, around.name, around.trace))
    async with running(log.host):
        yield _Ours(log)


class _Ours(OpenLog):
    """Our log, as a program sees it."""

    home = "programs"

    def __init__(self, log: Log) -> None:
        self._log = log

    async def send(self, key: str, value: Message) -> int:
        return await self._log.append(key, value)

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        found = await self._log.read_many(positions, POLL_LIMIT)
        return {
            key: [(each.offset, each.value) for each in records] for key, records in found.items()
        }

    async def compact(self, _key: str) -> None:
        await self._log.compact()

    async def vacuum(self, _key: str) -> None:
        await self._log.vacuum(RETENTION_S)

    async def commit(self, offsets: dict[str, int]) -> None:
        await self._log.commit(GROUP, offsets)

    async def committed(self, keys: list[str]) -> dict[str, int]:
        return await self._log.committed(GROUP, keys)


class _OfNode(OpenLog):
    """Our log, as clients of a node see it. It compacts by itself, and leaves vacuums to programs."""

    home = "nodes"

    def __init__(self, host: Host, data: Data) -> None:
        self._host = host
        self._data = data

    async def send(self, key: str, value: Message) -> int:
        message = message_of(value)
        size = len(orjson.dumps(message))
        return (await self._ask(lambda request: Send(request, key, message, size), SendOk)).offset

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        found = await self._ask(lambda request: Poll(request, dict(positions)), PollOk)
        return {key: await self._values(pairs[:POLL_LIMIT]) for key, pairs in found.msgs.items()}

    async def _values(self, pairs: list[list[Any]]) -> list[tuple[int, Any]]:
        values = await self._data.values([message for _, message in pairs])
        return [(at, value) for (at, _), value in zip(pairs, values, strict=True)]

    async def compact(self, _key: str) -> None: ...

    async def vacuum(self, _key: str) -> None: ...

    async def commit(self, offsets: dict[str, int]) -> None:
        await self._ask(lambda request: CommitOffsets(request, offsets), CommitOffsetsOk)

    async def committed(self, keys: list[str]) -> dict[str, int]:
        asked = await self._ask(
            lambda request: ListCommittedOffsets(request, keys), ListCommittedOffsetsOk
        )
        return asked.offsets

    async def _ask(self, event: MakeEvent, kind: type[A]) -> A:
        with anyio.move_on_after(PATIENCE_S):
            answer = await self._host.ask(event)
            if isinstance(answer, Failure):
                raise (Definite if answer.reason.definite else Indefinite)(answer.text)
            assert isinstance(answer, kind)
            return answer
        raise Indefinite(f"no answer within {PATIENCE_S:g} s")


class _Queues(OpenLog):
    """S3-Queue's topics, one a key."""

    def __init__(self, store: Store, around: Around) -> None:
        self._store = store
        self._around = around
        self._topics: dict[str, Topic] = {}

    async def send(self, key: str, value: Message) -> int:
        [offset] = await (await self._topic(key)).produce([value])
        return offset

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        found = {key: await self._read(key, at) for key, at in positions.items()}
        return {key: pairs for key, pairs in found.items() if pairs}

    async def compact(self, key: str) -> None:
        topic = await self._topic(key)
        if found := await topic.compactable():
            await topic.compact(*found)

    async def vacuum(self, key: str) -> None:
        await (await self._topic(key)).vacuum(self._around.now(), RETENTION_S)

    async def _read(self, key: str, at: int) -> list[tuple[int, Any]]:
        topic, pairs = await self._topic(key), list[tuple[int, Any]]()
        at = max(1, at)  # its offsets count from 1
        while len(pairs) < POLL_LIMIT and (messages := await topic.read(at)):
            pairs += [(message.offset, message.value) for message in messages]
            at = messages[-1].offset + 1
        return pairs

    async def _topic(self, key: str) -> Topic:
        if key not in self._topics:
            store, around = Within(self._store, key), self._around
            if around.scenario.log == PUBLISHED:
                topic = Topic(store, around.name, around.random)
            else:
                topic = RepairedTopic(store, around.name, around.random, RETENTION_S)
            await topic.initialise()
            self._topics[key] = topic
        return self._topics[key]


@contextmanager
def outcomes() -> Any:
    """Say for each error of a log whether it may have happened."""
    try:
        yield
    except (Definite, QueueError) as error:
        raise Rejected(f"{type(error).__name__}: {error}") from error
    except (LogError, StoreError) as error:
        raise Unclear(f"{type(error).__name__}: {error}") from error
