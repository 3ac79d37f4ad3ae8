"""Plays a transcript of programs on one topic of S3-Queue, each a process with its own name, as `logs` does.

    > p produce 7 "a"               one batch: returns its offsets
    > p fill 3                      messages 1, 2, 3, one after the other
    > p produce_many 1001           a batch of so many messages
    > p read 1                      from an offset on, what one entry has; `p ceiling 1`: which entry that is
    > p consume c                   the message of the consumer `c`; `p ack c 1`; `p takes c 3`: both, thrice
    > p compact 1 3                 a range; `p resume 1 3`: also after one that has crashed
    > p fence                       returns the version of the log's state; `p unfence`
    > p vacuum 3600                 how many were deleted
    > p status                      the counter, the state, the compaction's cursor
    > p loses 2 index/              its next two writes of such objects get no answer, and change nothing
    > p misses 1 index/             the same, but they do
    > p crashes compact 1 3         where it `dies` or `loses`: whatever its last request said
    > p repeats                     its client library repeats every request without an answer
    > objects index                 entries as `first..last TYPE`; of others the keys
    > delete index/2                an object is gone

The other commands are those of `logs`.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import anyio
import orjson

from leaderless.store.port import Conflict, OutcomeUnknown, Store, all_of
from leaderless.store.wrapped import Counted, Within
from simulation.bucket import EPOCH_S
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
from tests.around import UPDATES, Call, Kind
from tests.datadriven.logs import TROUBLE, Faulty, Logs, Program, value_of
from tests.datadriven.runner import json_of

MakeTopic = Callable[[Store, Callable[[], str]], Topic]


class Losing(Faulty):
    """The next `lost` writes of objects in a place get no answer; `happens`: whether they are carried out."""

    lost, place, happens = 0, "", False

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if not (self.lost and kind in ("write", *UPDATES) and key.startswith(self.place)):
            return await super().around(kind, key, call)
        self.lost -= 1
        if self.happens:
            await super().around(kind, key, call)
        raise OutcomeUnknown("503")


class QueueProgram(Program):
    """One process with a topic. What the published protocol asks of operators and consumers stands here."""

    def __init__(self, make: MakeTopic, store: Store, *named: Any) -> None:
        super().__init__(store, *named)
        self.store: Losing = Losing(store)
        self._counted = Counted(self.store)
        self._make, self._name = make, named[-1]
        self.topic = make(self._counted, self._name)

    async def open(self) -> None:
        await self.topic.initialise()

    async def carry_out(self, what: str, words: list[str]) -> Any:
        if own := getattr(self, f"_{what}", None):
            return await own(*words)
        return await getattr(self.topic, what)(*map(int, words))

    async def _produce(self, *words: str) -> list[int]:
        return await self.topic.produce([*map(value_of, words)])

    async def _produce_many(self, number: str) -> list[int]:
        return await self.topic.produce([*range(int(number))])

    async def _fill(self, number: str) -> list[int]:  # type: ignore[override]  # other words than of our log
        return [(await self.topic.produce([at]))[0] for at in range(1, int(number) + 1)]

    async def _read(self, offset: str) -> list[str]:
        return [f"{at}={json_of(value)}" for at, value in await self.topic.read(int(offset))]

    async def _ceiling(self, offset: str) -> str:
        return entry_text(await self.topic.ceiling(int(offset)))

    async def _vacuum(self, retention_s: str) -> str:
        now = EPOCH_S + anyio.current_time()
        return f"{await self.topic.vacuum(now, float(retention_s))} deleted"

    async def _loses(self, number: str, place: str) -> None:
        self.store.lost, self.store.place, self.store.happens = int(number), place, False

    async def _misses(self, number: str, place: str) -> None:
        self.store.lost, self.store.place, self.store.happens = int(number), place, True

    async def _repeats(self) -> None:
        self.topic = self._make(Repeating(self._counted), self._name)

    async def _crashes(self, what: str, *words: str) -> str:
        with suppress(OutcomeUnknown):
            return f"not: {await self.carry_out(what, [*words])}"
        return "crashed"

    # ------------------------------------------------------------ consumers

    async def _consume(self, consumer: str) -> str:  # type: ignore[override]  # other words than of our log
        """[SPEC.md, 16.8]"""
        key = f"consumers/{consumer}/cursor"
        if await self._counted.read(key) is None:
            with suppress(Conflict):
                await self._counted.create(key, orjson.dumps({"offset": 1}))
        found = await self._counted.read(key)
        assert found
        messages = await self._read(orjson.loads(found.value)["offset"])
        return messages[0] if messages else "none"

    async def _ack(self, consumer: str, word: str) -> str:  # type: ignore[override]  # other words than of our log
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

    async def _takes(self, consumer: str, number: str) -> list[str]:  # type: ignore[override]  # other words than of our log
        taken = []
        for _ in range(int(number)):
            taken.append(await self._consume(consumer))
            await self._ack(consumer, taken[-1].partition("=")[0])
        return taken

    # ------------------------------------------------------------ operators

    async def _fence(self) -> int:
        return await self._set_state(FENCED)

    async def _unfence(self) -> int:
        return await self._set_state(OPEN)

    async def _set_state(self, wanted: str) -> int:
        """[SPEC.md, 16.12]"""

        async def set_to(text: bytes) -> bytes:
            state, version = orjson.loads(text).values()
            changed = orjson.dumps({"state": wanted, "version": version + 1})
            return text if state == wanted else changed

        return int(orjson.loads(await self.topic._change(LOG_STATE, set_to))["version"])

    async def _status(self) -> str:
        counter, state, cursor = [
            orjson.loads((await self.topic._object(key)).value)
            for key in (COUNTER, LOG_STATE, CURSOR)
        ]
        pending = (counter.get("pending") or {}).get("offset", "nothing")
        said = f"next {counter['value']}, pending {pending}, {state['state']} {state['version']}"
        return f"{said}, compacted below {cursor['value']}"


class Queues(Logs):
    """Carries commands out on a topic of `make`, on a virtual bucket whose requests take 5 ms."""

    trouble = (*TROUBLE, QueueError)

    def __init__(self, make: MakeTopic) -> None:
        super().__init__()
        self._make = make
        self._names = (str(number) for number in count(1))

    async def played_on(self, store: Store, text: str) -> str:
        return await super().played_on(Within(store, "topic"), text)

    async def _program(self, name: str) -> Program:
        if name not in self._programs:
            names = self._names.__next__
            program = QueueProgram(self._make, self._store, self._tasks, names)
            await program.open()
            self._programs[name] = program
        return self._programs[name]

    async def _initialise(self) -> str:
        await self._make(self._store, self._names.__next__).initialise()
        return ""

    async def _delete(self, *keys: str) -> None:
        await self._store.delete(
            [index_key(int(key[6:])) if key.startswith("index/") else key for key in keys]
        )

    async def _objects(self, folder: str) -> list[str]:
        keys = [each.key async for each in all_of(self._store, folder)]
        return [text for key in keys if (text := await self._seen(key))]

    async def _seen(self, key: str) -> str:
        found = await self._store.read(key)
        if not key.startswith("index/"):
            return key
        entry = Entry.of(orjson.loads(found.value)) if found else None
        return entry_text(entry) if entry and entry.type != DELETED else ""


def entry_text(entry: Entry | None) -> str:
    """Which messages an entry has, and of what type it is."""
    return f"{entry.first}..{entry.offset} {entry.type}" if entry else "none"
