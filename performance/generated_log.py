"""A long log as appends, compaction and merges leave it: files, the index of runs, and a short end in no file.

Appending millions of messages takes longer than most measurements of what reads them. So segments are written
directly. All that follows is the work of the log's own compaction (`core.headlog.compaction`) and upkeep
(`table.upkeep`), with the bounds of a log on the store.
"""

from collections.abc import Iterable

from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.records import HEAD, Head, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Heading
from leaderless.core.process import Process, Sleep
from leaderless.core.shape import Shape as Sizes
from leaderless.core.strategy import Clock
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.port import Store
from leaderless.store.registers import canonical
from performance.generated_rows import WRITER, Shape

SEGMENTS_AT_ONCE = 80  # that wait in the store for the compactor
PATIENCE_S, TIMEOUT_S, LOOK_S = 300.0, 60.0, 0.02


async def generate(store: Store, shape: Shape) -> None:
    """Write the log into a store that has none."""
    made = await initialise(store, "parquet")
    bounds = bounds_of(store, PATIENCE_S, TIMEOUT_S, made.shape)
    log = Log(store, bounds)
    clock, count = log.host.clock, -(-shape.messages // shape.batch)
    replica = Replica(clock, WRITER, (), bounds.limits, founding=made.shape)
    compactor = Compactor(clock, replica, WRITER, bounds.pace)
    async with running(log.host):
        for first in range(0, count, SEGMENTS_AT_ONCE):
            sealed = min(first + SEGMENTS_AT_ONCE, count)
            await _write(store, shape, range(first, sealed))
            replica.head = _head(sealed, made.shape)
            await log.host.call(_compact(clock, compactor))
            await log.maintenance.merge()
    await store.create(HEAD, canonical(replica.head.value))


def _head(sealed: int, shape: Sizes) -> Head:
    heading = Heading(version=1, by=WRITER, sealed=sealed, base=sealed, shape=shape)
    return Head(heading, [])


async def _write(store: Store, shape: Shape, numbers: Iterable[int]) -> None:
    for number in numbers:
        await store.create(segment_name(number), canonical(shape.segment(number).value))


def _compact(clock: Clock, compactor: Compactor) -> Process[None]:
    """Until no run is full."""
    yield from compactor.consider()
    while compactor.running:
        yield Sleep(clock.now + LOOK_S)
