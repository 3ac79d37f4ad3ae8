"""The logs that a simulated run judges, with the same few operations: ours, and S3-Queue's two.

An operation returns, or raises: `Rejected` when it certainly did not happen, `Unclear` otherwise.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Any, NamedTuple, Protocol

from leaderless.core.strategy import Identity
from leaderless.errors import Definite, LogError
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise, new_shape
from leaderless.library.surroundings import Surroundings
from leaderless.store.port import Store, StoreError
from leaderless.store.wrapped import Within
from s3_queue.client import Repeating
from s3_queue.published import Topic
from s3_queue.records import QueueError
from s3_queue.repaired import RepairedTopic
from simulation.objects.nodes import Node, Peers, node_on
from simulation.objects.scenario import LEADERLESS, PUBLISHED, RETENTION_S, Scenario

POLL_LIMIT = 10  # messages of a key in one poll
PATIENCE_S = 20.0
STORE_TIMEOUT_S = 1.0
GROUP = "g"
NOT_MIXED = "this log has no committed offsets here"
INLINE_BYTES = 64  # larger values get an object of their own

Polled = dict[str, list[list[int]]]


class Rejected(Exception):
    """It did not happen, and will not."""


class Unclear(Exception):
    """It may have happened, or may still happen."""


class Subject(Protocol):
    """A log as one process sees it. `home`: where its committed offsets are, if it has any."""

    home: str = ""

    async def send(self, key: str, value: int) -> int:
        """Append a message; returns its offset."""
        ...

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        """Pairs of offset and message of each key, from a position on."""
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

    async def upgrade(self) -> None:
        """Give a log of the older format a shape, if this process can."""
        return


class Around(NamedTuple):
    """What a process has beside its store; `life`: the name of this start of it."""

    scenario: Scenario
    now: Callable[[], float]
    name: Callable[[], str]
    random: Random
    life: str
    peers: Peers


@asynccontextmanager
async def opened(store: Store, around: Around) -> AsyncIterator[Subject]:
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
        identity = Identity(name, life.peers(name, scenario.processes), around.name())
        options = life.options(shape, PATIENCE_S)
        async with node_on(store, bounds, options, identity, around.peers) as node:
            yield _OfNode(node, scenario)
        return
    log = Log(store, bounds, Surroundings(around.now, around.name))
    async with running(log.host):
        yield _Ours(log, scenario)


class _Ours(Subject):
    """Our log, as a program sees it."""

    home = "programs"

    def __init__(self, log: Log, scenario: Scenario) -> None:
        self._log = log
        self._padding = "x" * scenario.value_bytes

    async def send(self, key: str, value: int) -> int:
        with outcomes():
            return await self._log.append(key, [value, self._padding])

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        with outcomes():
            found = await self._log.read_many(positions, POLL_LIMIT)
        return {
            key: [[record.offset, number_in(record.value)] for record in records]
            for key, records in found.items()
        }

    async def compact(self, _key: str) -> None:
        with outcomes():
            await self._log.compact()

    async def vacuum(self, _key: str) -> None:
        with outcomes():
            await self._log.vacuum(RETENTION_S)

    async def commit(self, offsets: dict[str, int]) -> None:
        with outcomes():
            await self._log.commit(GROUP, offsets)

    async def committed(self, keys: list[str]) -> dict[str, int]:
        with outcomes():
            return await self._log.committed(GROUP, keys)

    async def upgrade(self) -> None:
        with outcomes():
            await self._log.upgrade()


class _OfNode(Subject):
    """Our log, as clients of a node see it. It compacts by itself, and leaves vacuums to programs."""

    home = "nodes"

    def __init__(self, node: Node, scenario: Scenario) -> None:
        self._node = node
        self._padding = "x" * scenario.value_bytes

    async def send(self, key: str, value: int) -> int:
        with outcomes():
            return await self._node.send(key, [value, self._padding])

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        with outcomes():
            found = await self._node.poll(positions, POLL_LIMIT)
        return {
            key: [[offset, number_in(value)] for offset, value in pairs]
            for key, pairs in found.items()
        }

    async def compact(self, _key: str) -> None: ...

    async def vacuum(self, _key: str) -> None: ...

    async def commit(self, offsets: dict[str, int]) -> None:
        with outcomes():
            await self._node.commit(offsets)

    async def committed(self, keys: list[str]) -> dict[str, int]:
        with outcomes():
            return await self._node.committed(keys)


class _Queues(Subject):
    """S3-Queue's topics, one a key."""

    def __init__(self, store: Store, around: Around) -> None:
        self._store = store
        self._around = around
        self._padding = "x" * around.scenario.value_bytes
        self._topics: dict[str, Topic] = {}

    async def send(self, key: str, value: int) -> int:
        with outcomes():
            [offset] = await (await self._topic(key)).produce([[value, self._padding]])
            return offset

    async def poll(self, positions: Mapping[str, int]) -> Polled:
        with outcomes():
            found = {key: await self._read(key, at) for key, at in positions.items()}
        return {key: pairs for key, pairs in found.items() if pairs}

    async def compact(self, key: str) -> None:
        with outcomes():
            topic = await self._topic(key)
            if found := await topic.compactable():
                await topic.compact(*found)

    async def vacuum(self, key: str) -> None:
        with outcomes():
            await (await self._topic(key)).vacuum(self._around.now(), RETENTION_S)

    async def _read(self, key: str, at: int) -> list[list[int]]:
        topic, pairs = await self._topic(key), list[list[int]]()
        at = max(1, at)  # its offsets count from 1
        while len(pairs) < POLL_LIMIT and (messages := await topic.read(at)):
            pairs += [[message.offset, number_in(message.value)] for message in messages]
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


def number_in(value: Any) -> int:
    """The number in a message that a run has sent."""
    number, _padding = value
    return int(number)


@contextmanager
def outcomes() -> Any:
    """Say for each error of a log whether it may have happened."""
    try:
        yield
    except (Definite, QueueError) as error:
        raise Rejected(f"{type(error).__name__}: {error}") from error
    except (LogError, StoreError) as error:
        raise Unclear(f"{type(error).__name__}: {error}") from error
