"""Gives a log of the older format a shape (`leaderless.core.shape`), while processes of both releases use it.

1. The object `format` gets the shape. From then on no process of the older release opens the log.
2. One compare-and-set gives the head its shape and a new epoch. A process of the older release that still runs
   cannot read this head, so it appends nothing any more: what it has under way rests on an older head, and its
   batches are of an older epoch.
3. The index gets its newer format, in an epoch of its own, so that such a process compacts nothing either.

Each step may be cut off and done again. Until step 2 both releases share the log by its old shape. Processes of
this release go on all the time: the head tells them.
"""

from dataclasses import replace
from functools import partial

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.records import HEAD
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Cas, Ok
from leaderless.core.process import Process, call
from leaderless.core.shape import Shape
from leaderless.errors import Indefinite
from leaderless.library.host import Host
from leaderless.library.place import MADE_BY, Bounds, new_shape
from leaderless.store.calls import patiently
from leaderless.store.format import format_of, read_format
from leaderless.store.names import FORMAT
from leaderless.store.port import Store, replaced


async def upgrade(store: Store, host: Host, bounds: Bounds, worker: str) -> bool:
    """Give the log in `store` a shape, if it has none; returns whether this call did it.

    `worker`: a name that no other process has. Raises `Definite`; `Indefinite`: to do it again is safe.
    """
    shape = await write_shape(store)
    limits = bounds.limits.fitted(shape)
    replica = Replica(host.clock, worker, (), limits, founding=bounds.shape)
    compactor = Compactor(host.clock, replica, worker, bounds.pace)
    try:
        given = await host.call(_give_shape(replica, shape, worker))
        await host.call(compactor.renew_format())
    except StoreSilent as silent:
        raise Indefinite(f"the upgrade is not finished; run it again: {silent}") from silent
    return given


async def write_shape(store: Store) -> Shape:
    """Step 1; the shape that `format` has then."""
    while True:
        found = await read_format(store)
        old = found.value
        if not old.is_old:
            return old
        # Nodes of the older release had as many registers of offsets as followed from their number.
        shape = replace(new_shape(store, old.runs), offset_registers=old.offset_registers)
        change = partial(replaced, store, FORMAT, format_of(shape, MADE_BY), found.version)
        if await patiently(change):
            return shape


def _give_shape(replica: Replica, shape: Shape, by: str) -> Process[bool]:
    """Step 2; returns whether the head has its shape by this process."""
    yield from replica.refresh()
    while replica.shape.is_old:
        head, asked_at = replica.head, replica.now
        new = head.with_shape(shape, by)
        outcome = yield from call(Cas(HEAD, head.value, new.value, create=head.value is None))
        if isinstance(outcome, Ok):
            replica.changed(new, asked_at)
            return True
        yield from replica.refresh()
    return False
