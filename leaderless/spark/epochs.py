"""The commit of an epoch: its rows get into the log exactly once, whatever is killed on the way.

Tasks only stage rows. The driver alone appends them, when Spark commits the epoch:

1. it decides what the epoch is, by a plan that can be created once (`staging`);
2. it appends the plan's rows in batches whose names follow from the plan: the writer, and the number
   `epoch << 20 | place`. The last batch of an epoch has the highest place there is;
3. it deletes what was staged.

So a repeated commit appends nothing twice, from any process: a batch whose name is in the log counts as
appended (`leaderless.library.named`), and an epoch whose last batch is there is done. Spark may spread the rows
over its tasks in another way when it repeats an epoch; only the plan's rows count. Two drivers at once follow
one plan. One that was paused until the epoch was over may make a plan again; the log has passed its names.

A reader may see a part of an epoch before the rest of it, when the epoch has more than one batch.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import chain
from typing import NamedTuple

from leaderless.errors import Broken, Unfit
from leaderless.library.log import Log
from leaderless.library.staged import LAST, seq_of
from leaderless.spark.staging import (
    Epoch,
    Plan,
    clear,
    clear_until,
    decide,
    groups,
    planned,
    staged,
)
from leaderless.store.port import Store
from leaderless.store.values import Encoded


class Batch(NamedTuple):
    """A batch of an epoch and its number."""

    seq: int
    rows: list[Encoded]


async def commit(log: Log, store: Store, epoch: Epoch, parts: Sequence[str]) -> None:
    """Append the rows of `parts`, or what an earlier commit of this epoch has planned, unless it is done."""
    if parts and not await _done(log, epoch):
        plan = await decide(store, epoch, Plan(tuple(parts), log.batch_bytes))
        try:
            async for batch in batches(store, epoch, plan):
                await log.append_encoded(epoch.writer, batch.seq, batch.rows)
        except Broken:
            if not await _done(log, epoch):  # or else another driver has finished it, and deleted
                raise
    await clear_until(store, epoch)


async def abort(store: Store, epoch: Epoch, parts: Sequence[str]) -> None:
    """Delete what tasks have staged, unless a plan may refer to it."""
    if await planned(store, epoch) is None:
        await clear(store, parts)


async def _done(log: Log, epoch: Epoch) -> bool:
    return await log.has_named(epoch.writer, seq_of(epoch.number, LAST))


async def batches(store: Store, epoch: Epoch, plan: Plan) -> AsyncIterator[Batch]:
    """The batches of an epoch: a function of its plan alone."""
    place = 0
    open_group: list[Encoded] = []
    async for rows in staged(store, plan.parts):
        *full, open_group = groups(chain(open_group, rows), plan.batch_bytes)
        for group in full:
            yield Batch(seq_of(epoch.number, place), group)
            place += 1
        if place >= LAST:
            raise Unfit(f"an epoch of {place} batches: let fewer rows go into one epoch")
    yield Batch(seq_of(epoch.number, LAST), open_group)
