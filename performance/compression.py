"""What zstd saves in a log, and what it costs: bytes that are stored and moved, and CPU.

    python -m performance.compression [--size 30]

One process appends JSON messages of 100 bytes, and of 10 kB, to a log in memory, 16 at once; then a new one reads
all. A message is an order with a random id, user, item and price; a large one has 80 of them.
"""

import time
from random import Random

import anyio
import click
import orjson

from leaderless.api.log import Log
from leaderless.core.shape import Compression
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, ensure_log
from leaderless.store.memory import MemoryStore
from leaderless.store.port import all_of
from leaderless.store.wrapped import Counted
from performance.harness import program, show_table

TITLES = (
    "message",
    "compression",
    "stored",
    "written",
    "CPU to append, s",
    "read",
    "CPU to read, s",
)


def order(random: Random) -> dict[str, object]:
    return {
        "id": f"{random.getrandbits(64):016x}",
        "user": f"user-{random.randrange(100_000)}",
        "item": random.choice(["table", "chair", "lamp", "shelf", "bed"]),
        "price": random.randrange(10_000) / 100,
        "eu": random.random() < 0.5,
    }


async def measured(large: bool, compression: Compression, size: int) -> list[str]:
    random, store = Random(1), MemoryStore()
    shape = (await ensure_log(store, compression=compression)).shape
    message = [order(random) for _ in range(110)] if large else order(random)
    each = len(orjson.dumps(message))
    counted = Counted(store)
    row = [f"{each}", compression]
    moved = []
    for reads in (False, True):
        bounds = bounds_of(store, 30.0, 5.0, shape)
        log = Log(counted, bounds)
        counted.clear()
        began = time.process_time()
        async with running(log.host), beside(*log.chores):
            if reads:
                offset = 0
                while records := await log.read("k", offset, 1000):
                    offset = records[-1].offset + 1
            else:
                left = size // each

                async def task() -> None:
                    nonlocal left
                    while left > 0:
                        left -= 1
                        await log.append(
                            "k", [order(random) for _ in range(110)] if large else order(random)
                        )

                async with anyio.create_task_group() as tasks:
                    for _ in range(16):
                        tasks.start_soon(task)
                await log.compact()
        took = time.process_time() - began
        moved += [
            f"{(counted.bytes_read if reads else counted.bytes_written) / size:.2f}",
            f"{took:.2f}",
        ]
    stored = sum([found.size or 0 async for found in all_of(store, "")])
    return [*row, f"{stored / size:.2f}", *moved]


@program(__doc__)
@click.option("--size", default=30, help="megabytes of messages")
def main(*, size: int) -> None:
    rows = [
        anyio.run(measured, large, compression, size * 1_000_000)
        for large in (False, True)
        for compression in ("none", "zstd")
    ]
    show_table(TITLES, rows)


if __name__ == "__main__":
    main()
