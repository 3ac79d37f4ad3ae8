"""Writers that race those of other processes: `python -m tests.racing URL ENDPOINT NAME ROUNDS`.

The object is a list of the winners so far, as names with a space after each. In each round all writers try to
add their names to the same list at once, in the first one by creating it. It prints the names of those that
were told they won, and in a second line those that got no clear answer. A name is `NAME.ROUND.WRITER`, so each
is tried once.
"""

import sys
from functools import partial
from typing import NamedTuple

import anyio

from leaderless.store.port import Conflict, Found, OutcomeUnknown, Store
from leaderless.store.urls import open_store
from tests.servers import options_of

KEY = "winners"
WRITERS = 10


class Told(NamedTuple):
    """What the store said: which names won, and of which it was not clear."""

    won: list[str]
    unknown: list[str]


async def race(store: Store, name: str, rounds: int) -> Told:
    """Race in so many rounds, counted over all processes."""
    told = Told([], [])
    while (round_number := (found := await read(store)).value.count(b" ")) < rounds:
        async with anyio.create_task_group() as writers:
            for writer in range(WRITERS):
                writers.start_soon(
                    partial(add, store, found, f"{name}.{round_number}.{writer}", told)
                )
    return told


async def add(store: Store, found: Found, name: str, told: Told) -> None:
    """Try to add a name to the list that was found."""
    try:
        winners = found.value + name.encode() + b" "
        if found.version:
            await store.compare_and_set(KEY, winners, found.version)
        else:
            await store.create(KEY, winners)
    except Conflict:
        return
    except OutcomeUnknown:
        told.unknown.append(name)
        return
    told.won.append(name)


async def read(store: Store) -> Found:
    """The list, as soon as the store is clear about it."""
    while True:
        try:
            return await store.read(KEY) or Found(b"", "")
        except OutcomeUnknown:
            continue


async def main(url: str, endpoint: str, name: str, rounds: str) -> None:
    """Print the names, in two lines."""
    store = open_store(url, options_of(url, endpoint))
    try:
        told = await race(store, name, int(rounds))
        sys.stdout.write("".join(f"{' '.join(names)}\n" for names in told))
    finally:
        await store.aclose()


if __name__ == "__main__":
    URL, ENDPOINT, NAME, ROUNDS = sys.argv[1:]
    anyio.run(main, URL, ENDPOINT, NAME, ROUNDS)
