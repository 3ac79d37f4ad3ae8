"""A long log as appends, compaction and merges leave it: files, the index of runs, and a short end in no file.

Appending millions of messages takes longer than most measurements of what reads them. So segments are written
directly. All that follows is the work of the log's own compaction (`core.headlog.compaction`) and upkeep
(`table.upkeep`), with the bounds of a log on the store.
"""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.records import HEAD, Head, Segment, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Block, Entry, Heading
from leaderless.core.process import Process, Sleep
from leaderless.core.shape import Runs
from leaderless.core.shape import Shape as Sizes
from leaderless.core.strategy import Clock
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.port import Store
from leaderless.store.registers import canonical
from performance.harness import open_at

BATCH, WIDTH = 8_000, 98  # messages in a batch, just below its size; bytes of a value, 100 as JSON
SEGMENTS_AT_ONCE = 80  # that wait in the store for the compactor
PATIENCE_S, TIMEOUT_S, LOOK_S = 300.0, 60.0, 0.02
WRITER = "performance"


class Shape(NamedTuple):
    """So many messages of `width` characters, spread evenly over keys.

    The first half of a message is its number, the second one has random digits. A batch has `batch` messages,
    and is a segment of its own. Message `n` has key `n % keys` and offset `n // keys`.
    """

    messages: int
    keys: int
    width: int = WIDTH
    batch: int = BATCH

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return -(-self.messages // self.batch)

    def key(self, number: int) -> str:
        """The key of a message."""
        return f"k{number % self.keys:06}"

    def records(self, first: int) -> list[tuple[str, str]]:
        """The keys and values of the batch whose first message is `first`."""
        random, half = Random(first), self.width // 2
        rest = self.width - half
        return [
            (self.key(number), f"{number:0{half}}{random.randrange(10**rest):0{rest}}")
            for number in range(first, min(first + self.batch, self.messages))
        ]

    def segment(self, batch: int) -> Segment:
        """The segment of a batch."""
        appends: dict[str, Block] = {}
        for number, (key, value) in enumerate(self.records(batch * self.batch), batch * self.batch):
            appends.setdefault(key, (number // self.keys, []))[1].append(value)
        return Segment(batch, [Entry(WRITER, batch, appends, {})])


async def generate(
    store: Store, shape: Shape, runs: Runs = "parquet", *, merges: bool = True
) -> None:
    """Write the log into a store that has none."""
    made = await initialise(store, runs)
    bounds = bounds_of(store, PATIENCE_S, TIMEOUT_S, made.shape)
    log = Log(store, bounds)
    replica = Replica(log.host.clock, WRITER, (), bounds.limits, founding=made.shape)
    compactor = Compactor(log.host.clock, replica, WRITER, bounds.pace)
    async with running(log.host):
        for first in range(0, shape.batches, SEGMENTS_AT_ONCE):
            sealed = min(first + SEGMENTS_AT_ONCE, shape.batches)
            await _write(store, shape, range(first, sealed))
            replica.head = _head(sealed, made.shape)
            await log.host.call(_compact(log.host.clock, compactor))
            if merges:
                await log.maintenance.merge()
    await store.create(HEAD, canonical(replica.head.value))


async def generated(url: str, shape: Shape, runs: Runs = "parquet", merges: bool = True) -> None:
    """Write the log, unless it is there."""
    store = open_at(url)
    if await store.read(HEAD) is None:
        await generate(store, shape, runs, merges=merges)
    await store.aclose()


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
