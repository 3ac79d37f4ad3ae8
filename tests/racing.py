"""A process that races others for one object: `python -m tests.racing URL ENDPOINT TIMES`.

It counts the object up `TIMES` times by compare-and-set, and prints what it reached each time.
"""

import sys

import anyio

from leaderless.store.port import Conflict, OutcomeUnknown, Store
from leaderless.store.urls import open_store
from tests.servers import of_moto

KEY = "count"


async def count_up(store: Store, times: int) -> list[int]:
    """The numbers that were reached; the object must exist.

    An unknown outcome ends it: whether it counted cannot be told.
    """
    reached: list[int] = []
    while len(reached) < times:
        found = await store.read(KEY)
        assert found is not None
        number = int(found.value) + 1
        try:
            await store.compare_and_set(KEY, b"%d" % number, found.version)
        except Conflict:
            continue
        reached.append(number)
    return reached


async def main(url: str, endpoint: str, times: str) -> None:
    """Print the numbers."""
    store = open_store(url, of_moto(endpoint) if endpoint else None)
    try:
        sys.stdout.write(" ".join(map(str, await count_up(store, int(times)))))
    except OutcomeUnknown as error:
        sys.exit(f"the store was not clear: {error}")
    finally:
        await store.aclose()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
