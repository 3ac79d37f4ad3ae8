"""The commit of an epoch: its rows get into the log exactly once, whatever is killed on the way.

Tasks only stage rows. The driver alone appends them, when Spark commits the epoch:

1. it decides what the epoch is, by a plan that can be created once (`staging`);
2. it appends the plan's rows in batches whose names follow from the plan: the writer, and the number
   `epoch << 20 | place`. The last batch of an epoch has the highest place there is;
3. it deletes what was staged.

So a repeated commit appends nothing twice, from any process: a batch whose name is in the log counts as
appended (`leaderless.hosting.named`), and an epoch whose last batch is there is done. Spark may spread the rows
over its tasks in another way when it repeats an epoch; only the plan's rows count. Two drivers at once follow
one plan. One that was paused until the epoch was over may make a plan again; the log has passed its names.

Two laws keep this true:

- `PlanFinished`. An epoch that has a plan is finished by that plan, whatever a later commit brings, even
  nothing; and so is each earlier epoch of the writer. Nothing that a plan names, and no plan, is deleted before
  the last batch of its epoch is in the log.
- `PlanKept`. An epoch with a batch in the log has its plan, or its last batch is in the log, too. Where neither
  holds, something else has deleted the plan. Then a new one would append some rows twice and others never, for
  its first names are in the log. So the commit is refused.

A reader may see a part of an epoch before the rest of it, when the epoch has more than one batch.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.errors import Broken, Definite, Unfit
from leaderless.spark.encoding import SCHEMA, values_by_key
from leaderless.spark.staging import (
    Epoch,
    decide,
    groups,
    planned,
    staged,
    staged_until,
)
from leaderless.store.calls import delete_all
from leaderless.store.port import Store
from leaderless.upkeep.staged import LAST, Plan, seq_of

if TYPE_CHECKING:
    from leaderless.api.log import Log


async def commit(log: "Log", store: Store, epoch: Epoch, parts: Sequence[str]) -> None:
    """Append the rows of `parts`, or what an earlier commit of this epoch has planned, unless it is done.

    Raises `Definite` when a part of the epoch is in the log, and its plan is gone.
    """
    left = await staged_until(store, epoch)
    unplanned: list[str] = []  # a condemnation among it holds until this epoch is over
    for earlier in sorted(left.keys() - {epoch}, key=lambda each: each.number):
        if await _finish(log, store, earlier, ()):
            await delete_all(store, left[earlier])
        else:
            unplanned += left[earlier]
    if await _finish(log, store, epoch, parts):
        await delete_all(store, [*unplanned, *left.get(epoch, ()), epoch.plan])


async def _finish(log: "Log", store: Store, epoch: Epoch, parts: Sequence[str]) -> bool:
    """Append what an epoch lacks; returns whether it is done: not if it has neither plan nor parts."""
    begun = await log.has_named(epoch.writer, seq_of(epoch.number, 0))
    if begun and await _done(log, epoch):
        return True
    plan = await planned(store, epoch)
    if plan is None and begun:  # it had a plan, which may go when it is done
        if await _done(log, epoch):
            return True
        raise Definite(
            f"a part of epoch {epoch.number} of {epoch.writer!r} is in the log, and its plan, which says what"
            f" is missing, was deleted. Nothing more was appended. See which records have the writer"
            f" named/{epoch.writer}, and write those that are missing under another name, or by a stream with"
            " a new checkpoint"
        )
    if plan is None and parts:
        plan = await decide(store, epoch, Plan(tuple(parts), log.batch_bytes))
    if plan is None:
        return False
    try:
        async for seq, rows in batches(store, epoch, plan):
            await append_rows(log, epoch.writer, seq, rows)
    except Broken:
        if not await _done(log, epoch):  # or else another driver has finished it, and deleted
            raise
    return True


async def append_rows(log: "Log", writer: str, seq: int, rows: pa.Table) -> None:
    """Append rows as the batch `[writer, seq]`, unless it is in the log. Raises as `Log.append_named`."""
    keys, texts = (pc.binary_length(rows[name]) for name in ("key", "text"))
    size = pc.sum(keys).as_py() + pc.sum(texts).as_py()
    await log.named.append_blocks(writer, seq, values_by_key(rows), size, pc.max(texts).as_py())


async def abort(store: Store, epoch: Epoch, parts: Sequence[str]) -> None:
    """Delete what tasks have staged, unless the epoch has a plan, which may name it.

    A flaw: the request of a commit that made the plan may arrive after this has looked. Then the plan names
    rows that are gone, and every later commit of the epoch is `Broken`; nothing is lost or twice in silence.
    """
    if await planned(store, epoch) is None:
        await delete_all(store, parts)


async def _done(log: "Log", epoch: Epoch) -> bool:
    return await log.has_named(epoch.writer, seq_of(epoch.number, LAST))


async def batches(store: Store, epoch: Epoch, plan: Plan) -> AsyncIterator[tuple[int, pa.Table]]:
    """The batches of an epoch, each with its number: a function of its plan alone."""
    place, open_group = 0, SCHEMA.empty_table()
    async for rows in staged(store, plan.parts):
        *full, open_group = groups(pa.concat_tables([open_group, rows]), plan.batch_bytes)
        for group in full:
            yield seq_of(epoch.number, place), group
            place += 1
        if place >= LAST:
            raise Unfit(f"an epoch of {place} batches: let fewer rows go into one epoch")
    yield seq_of(epoch.number, LAST), open_group
