"""Programs with a topic of S3-Queue, in transcripts (`tests.datadriven.programs`).

> p produce 7 "a"               one batch: returns its offsets; `p produce_many 1001`: of so many messages
> p fill 3                      messages 1, 2, 3, one after the other
> p read 1                      from an offset on, what one entry has; `p ceiling 1`: which entry that is
> p consume c                   the message of the consumer `c`; `p ack c 1`; `p takes c 3`: both, thrice
> p compact 1 3                 a range; `p resume 1 3`: also after one that has crashed
> p fence                       returns the version of the log's state; `p unfence`
> p vacuum 3600                 how many were deleted
> p status                      the counter, the state, the compaction's cursor
> p crashes compact 1 3         where it `dies` or `loses`: whatever its last request said
> p repeats                     its client library repeats every request without an answer
> objects index                 entries as `first..last TYPE`; of others the keys
> delete index/2                an object is gone
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import orjson

from leaderless.store.port import Conflict, OutcomeUnknown, Store
from simulation.s3_queue.client import Repeating
from simulation.s3_queue.published import Topic
from simulation.s3_queue.records import (
    COUNTER,
    CURSOR,
    DELETED,
    FENCED,
    LOG_STATE,
    OPEN,
    Entry,
    QueueError,
    index_key,
)
from simulation.s3_queue.repaired import RepairedTopic
from tests.datadriven.programs import now
from tests.datadriven.runner import json_of
from tests.datadriven.words import value_of
from tests.store_process import TROUBLE, Names, Process


class Queue(Process):
    """One process with a topic. What the published protocol asks of operators and consumers stands here."""

    within, named, trouble = "topic", "{}", (*TROUBLE, QueueError)
    make: ClassVar[type[Topic]] = Topic

    async def open(self) -> None:
        self.topic = self.make(self.store, self._name)
        await self.topic.initialise()

    @classmethod
    async def initialise(cls, store: Store, name: Names) -> str:
        await cls.make(store, name).initialise()
        return ""

    @staticmethod
    def key_of(word: str) -> str:
        return index_key(int(word[6:])) if word.startswith("index/") else word

    @staticmethod
    def seen(key: str, value: bytes) -> str:
        if not key.startswith("index/"):
            return key
        entry = Entry.of(orjson.loads(value))
        return entry_text(entry) if entry.type != DELETED else ""

    def calls(self, what: str) -> Callable[..., Any]:
        """A method of its topic."""
        found: Callable[..., Any] = getattr(self.topic, what)
        return found

    async def _produce(self, *words: str) -> list[int]:
        return await self.topic.produce([*map(value_of, words)])

    async def _produce_many(self, number: str) -> list[int]:
        return await self.topic.produce([*range(int(number))])

    async def _fill(self, number: str) -> list[int]:
        return [(await self.topic.produce([at]))[0] for at in range(1, int(number) + 1)]

    async def _read(self, offset: str) -> list[str]:
        return [f"{at}={json_of(value)}" for at, value in await self.topic.read(int(offset))]

    async def _ceiling(self, offset: str) -> str:
        return entry_text(await self.topic.ceiling(int(offset)))

    async def _vacuum(self, retention_s: str) -> str:
        return f"{await self.topic.vacuum(now(), float(retention_s))} deleted"

    async def _repeats(self) -> None:
        self.topic = self.make(Repeating(self.store), self._name)

    async def _crashes(self, what: str, *words: str) -> str:
        with suppress(OutcomeUnknown):
            return f"not: {await self.carry_out(what, [*words])}"
        return "crashed"

    # ------------------------------------------------------------ consumers

    async def _consume(self, consumer: str) -> str:
        """[SPEC.md, 16.8]"""
        key = f"consumers/{consumer}/cursor"
        if await self.store.read(key) is None:
            with suppress(Conflict):
                await self.store.create(key, orjson.dumps({"offset": 1}))
        found = await self.store.read(key)
        assert found
        messages = await self._read(orjson.loads(found.value)["offset"])
        return messages[0] if messages else "none"

    async def _ack(self, consumer: str, word: str) -> str:
        """[SPEC.md, 16.9]"""
        offset, at = int(word), 0

        async def moved(text: bytes) -> bytes:
            nonlocal at
            at = int(orjson.loads(text)["offset"])
            return orjson.dumps({"offset": offset + 1}) if at == offset else text

        await self.topic._change(f"consumers/{consumer}/cursor", moved)
        if at == offset:
            return "advanced"
        return "already_processed" if offset < at else f"offset_mismatch, {at}"

    async def _takes(self, consumer: str, number: str) -> list[str]:
        taken = []
        for _ in range(int(number)):
            taken.append(await self._consume(consumer))
            await self._ack(consumer, taken[-1].partition("=")[0])
        return taken

    # ------------------------------------------------------------ operators

    async def _fence(self, wanted: str = FENCED) -> int:
        """[SPEC.md, 16.12]"""

        async def set_to(text: bytes) -> bytes:
            state, version = orjson.loads(text).values()
            changed = orjson.dumps({"state": wanted, "version": version + 1})
            return text if state == wanted else changed

        return int(orjson.loads(await self.topic._change(LOG_STATE, set_to))["version"])

    async def _unfence(self) -> int:
        return await self._fence(OPEN)

    async def _status(self) -> str:
        counter, state, cursor = [
            orjson.loads((await self.topic._object(key)).value)
            for key in (COUNTER, LOG_STATE, CURSOR)
        ]
        pending = (counter.get("pending") or {}).get("offset", "nothing")
        said = f"next {counter['value']}, pending {pending}, {state['state']} {state['version']}"
        return f"{said}, compacted below {cursor['value']}"


class RepairedQueue(Queue):
    """One process with a topic of the repaired protocol."""

    make = RepairedTopic


def entry_text(entry: Entry | None) -> str:
    """Which messages an entry has, and of what type it is."""
    return f"{entry.first}..{entry.offset} {entry.type}" if entry else "none"
