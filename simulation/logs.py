"""The logs that a program may have, and what it has beside its store: ours, and S3-Queue's two."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import anyio

from bench.services import Body
from leaderless.api.log import Log
from leaderless.core.headlog.policy import CommitPolicy, PolicyMaker
from leaderless.core.messages import Effect, Note
from leaderless.core.shape import Shape
from leaderless.core.strategy import Identity, Trace
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.hosting.reads import Record
from leaderless.hosting.surroundings import Surroundings
from leaderless.peers.lines import Peers
from leaderless.store.calls import side_by_side
from leaderless.store.port import Store
from leaderless.store.wrapped import Within
from leaderless.table.manifest import Levels
from simulation.contents import RETENTION_S
from simulation.nodes import raise_if_broken
from simulation.peers import Fate
from simulation.port import STORE_TIMEOUT_S
from simulation.s3_queue.client import Repeating
from simulation.s3_queue.published import Topic
from simulation.s3_queue.repaired import RepairedTopic

LEADERLESS, PUBLISHED, REPAIRED = "leaderless", "s3-queue", "s3-queue-repaired"
LOGS = (LEADERLESS, PUBLISHED, REPAIRED)
PATIENCE_S = 3.5  # a program gives an answer within this time
READ_S = 1.0  # a poll of a queue ends after the message that it reads then
INLINE_BYTES = 64  # larger values get an object of their own
FAN = 2  # files that are merged at once
SET_BACK_S = 2.0  # so often the clock by which a program dates records is set back

Act = Callable[[Any, Store, Body], Awaitable[None]]


class Around(NamedTuple):
    """What a program has beside its store.

    `log`: one of `LOGS`; `repeats`: its client library repeats conditional writes. `now`: seconds since 1970,
    by the clock of an operator (True) or of any other process. `trace`: what takes the steps of its protocol.
    `shape` and `limits`: what differs from those of all programs, of a log that it makes, and its own.
    `store_timeout_s`: see `leaderless.core.pace.Pace`. `acts`: what a program does with its log and its store
    when it is told so. `crowd`: to which programs it hands over, and what becomes of each line.
    `policy`: see `Surroundings`. `conditions`: whether a program appends on conditions (`simulation.programs`).
    """

    log: str
    repeats: bool
    now: Callable[[bool], float]
    name: Callable[[], str]
    trace: Callable[[Identity], Trace]
    shape: Mapping[str, Any]
    limits: Mapping[str, Any] = {}
    store_timeout_s: float = STORE_TIMEOUT_S
    acts: Mapping[str, Act] = {}
    crowd: tuple[int, Callable[[], Fate]] | None = None
    policy: PolicyMaker = CommitPolicy
    conditions: bool = False

    @asynccontextmanager
    async def opened(
        self,
        store: Store,
        *,
        operator: bool = False,
        make_peers: Callable[[str], Peers] = Peers,
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
            bounds._replace(limits=limits, inline_bytes=INLINE_BYTES, levels=Levels(FAN)),
            Surroundings(now, self.name, self.trace, self.policy),
            make_peers,
        )
        log.host.clock.wall = lambda: now() + now() % SET_BACK_S  # it runs ahead meanwhile
        log.host.others = partial(_left, log.host.others)
        async with running(log.host):
            yield log

    async def founded(self, store: Store) -> Shape:
        """The shape of the log, which is made if there is none."""
        return (await initialise(store, shape=replace(new_shape(store), **self.shape))).shape

    async def vacuum(self, store: Store) -> None:
        """Vacuum as an operator does, in a process of its own."""
        async with self.opened(store, operator=True) as log:
            await log.vacuum(RETENTION_S)


def _left(others: Callable[[list[Effect]], object], effects: list[Effect]) -> None:
    """What a host leaves goes to `others`; a program in which an invariant is broken fails."""
    for effect in effects:
        if isinstance(effect, Note):
            raise_if_broken(effect)
    others(effects)


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
