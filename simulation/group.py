"""A group of consumers whose members are programs beside a bucket, and what it promises.

A program becomes a member for a while, then it hands its keys over; or it dies as one. A member takes records,
works, and acknowledges them, or says that the last one failed. No record is buried: it may fail without end.

| law | what must hold |
|---|---|
| `ConsumedInOrder` | a key's record comes only when all before it were processed, and a batch leaves none out |
| `AckedOnce` | what was acknowledged is not acknowledged again: its new owner is told, the old one refused |
| `ConsumedAtLast` | in the end each record of an acknowledged send was processed by a member |
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

import anyio

from leaderless.api.log import Log
from leaderless.errors import Definite, LogError
from leaderless.groups.consumer import Consumer
from leaderless.hosting.reads import Record
from leaderless.store.port import Store
from simulation.oracle import Body, raise_to, require

GROUP = "members"
LEASE_S = 2.0
FAILURES_MAX = 1_000_000
RECORDS_MAX = 10  # of a batch
WORK_S = 0.5  # at most
FAILING = 0.1  # of the batches


class Group:
    """What its members say of it: of each key the offset of the last record."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.processed: dict[str, int] = {}  # a member has done its work, and says so
        self._acknowledged: dict[str, int] = {}  # and knows that the store has it

    async def join(self, log: Log, _store: Store, body: Body) -> None:
        """Be a member for so many seconds, and then hand over."""
        group = log.consumer(GROUP, body["keys"], lease_s=LEASE_S, failures_max=FAILURES_MAX)
        with anyio.move_on_after(body["seconds"]):
            async with group as member:
                while True:
                    with suppress(LogError):  # such as `NotOwner`
                        await self._consume(member)

    def behind(self, sends: Iterable[list[Any]]) -> list[str]:
        """The keys of `sends` (a key, an offset with its message) of which not all is processed."""
        done = self.processed  # who dies may not hear of its last acknowledgement
        return sorted({key for key, (offset, _) in sends if done.get(key, -1) < offset})

    async def _consume(self, member: Consumer) -> None:
        """Take records, and settle them."""
        records = await member.batch(RECORDS_MAX)
        key, offsets = records[0].key, [each.offset for each in records]
        due = self.processed.get(key, -1) + 1
        in_order = offsets[0] <= due and offsets == [*range(offsets[0], offsets[-1] + 1)]
        require(in_order, "ConsumedInOrder", f"{offsets} of {key} are given, {due} was due")
        await anyio.sleep(self._random.random() * WORK_S)
        known, fails = self._acknowledged.get(key, -1), self._random.random() < FAILING
        processed = {key: offsets[-1] - fails}
        raise_to(self.processed, processed)
        await _settled(member.fail if fails else member.ack, records[-1])
        require(offsets[-1] > known, "AckedOnce", f"{offsets[-1]} of {key}, when {known} was")
        raise_to(self._acknowledged, processed)


async def _settled(settle: Callable[[Record], Awaitable[None]], record: Record) -> None:
    """Acknowledge a record, or say that it failed, until the store has it. Raises `Definite`."""
    while True:
        try:
            return await settle(record)
        except Definite:
            raise
        except LogError:
            await anyio.sleep(WORK_S)
