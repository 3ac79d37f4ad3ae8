"""A proxy damages answers of an S3 server: programs go on. The bench damages those of nodes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import anyio
import anyio.to_thread
import pytest

from leaderless.store.objects import ObjectStore, open_bucket
from leaderless.store.port import OutcomeUnknown
from tests import servers
from tests.process.test_log_on_stores import (
    BUCKET,
    appending,
    keys,
    require_kept,
    require_whole,
    whole_log,
)
from tests.proxy import Answer, Fate, Proxy, empty, garbage, half, proxy, without

pytestmark = pytest.mark.anyio
DAMAGES: list[Fate] = [half, empty, garbage, "cut off"]


def page_of_a_proxy(answer: Answer) -> Answer:
    """What some middle box says."""
    return answer[0], answer[1], b"<html><body>please log in</body></html>"


def store_at(endpoint: str) -> ObjectStore:
    return open_bucket("s3", servers.BUCKET, servers.s3_options(endpoint))


# ---------------------------------------------------------------- each operation of the port


@contextmanager
def meets(endpoint: str, *fates: Fate) -> Iterator[Proxy]:
    """A proxy that deals `fates` to the first requests, and passes on all else."""
    left = [*fates]
    with proxy(endpoint, lambda *_: left.pop(0) if left else "ok") as server:
        yield server


@pytest.mark.parametrize("damage", DAMAGES)
async def test_listings_and_deletions_that_make_no_sense_are_unknown(
    mock: str, damage: Fate
) -> None:
    with meets(mock, "ok", damage, damage, damage) as server:
        store = store_at(server.url)
        await store.write("d/1", b"1")
        with pytest.raises(OutcomeUnknown):
            await store.list_objects("d")
        with pytest.raises(OutcomeUnknown):
            await anyio.to_thread.run_sync(lambda: [*store.files.list_files("d")])
        with pytest.raises(OutcomeUnknown):
            await store.delete(["d/1", "d/2"])
        assert await store.list_objects("d") == []


async def test_a_listing_of_another_folder_is_unknown(mock: str) -> None:
    with meets(mock) as server:
        store = store_at(server.url)
        for key in ("a/1", "b/1"):
            await store.write(key, b"1")
        listings: list[Answer] = []

        def kept(answer: Answer) -> Answer:
            listings.append(answer)
            return listings[0]

        server.fate = lambda *_: kept
        await store.list_objects("a")
        with pytest.raises(OutcomeUnknown, match="'a/1' is no answer to a listing of 'b'"):
            await store.list_objects("b")


# ---------------------------------------------------------------- programs


def some_damaged(every: int) -> Callable[[str, str, dict[str, str]], Fate]:
    """Each so many answers to a request for an object, and each so many to a write, make no sense."""
    counts = {"GET": 0, "PUT": 0}
    reads: Iterator[Fate] = cycle(
        [half, empty, garbage, page_of_a_proxy, "cut off", without("etag")]
    )

    def fate(method: str, path: str, _headers: dict[str, str]) -> Fate:
        if method not in counts or "/format" in path:
            return "ok"
        counts[method] += 1
        if counts[method] % every:
            return "ok"
        return without("etag") if method == "PUT" else next(reads)

    return fate


async def test_programs_go_on_when_answers_are_damaged(mock: str) -> None:
    """Two programs append to one log, so each reads what the other one wrote."""
    url = f"{BUCKET}/log"
    async with anyio.create_task_group():
        first = appending(url, mock, "first")
        await anyio.to_thread.run_sync(first.wait_for, 4)  # it has made the log
        with proxy(mock, some_damaged(4)) as server:
            programs = [appending(url, server.url, name) for name in ("a", "b")]
            for program in programs:
                await anyio.to_thread.run_sync(program.wait_for, 60)
            for program in (first, *programs):
                program.kill()
    acknowledged = [record for each in (first, *programs) for record in each.acknowledged]
    require_kept(acknowledged, await whole_log(url, **keys(mock)))
    await require_whole(url, servers.s3_options(mock))
