"""Opening a SQLite store: by several processes at once, before it is there, and on a full disk."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from leaderless import open_log
from leaderless.store.port import OutcomeUnknown, Refused
from leaderless.store.sqlite import SqliteStore
from tests.full_disk import room

OPENERS = 8


@pytest.mark.parametrize("before", range(8))
def test_another_process_makes_the_database_between_two_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """It is made whole before statement `before` of the one that opens it, unless that is in a transaction."""
    path = tmp_path / "log.db"
    connect, left = sqlite3.connect, [before]

    class Overtaken(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            left[0] -= 1
            if left[0] == -1 and not self.in_transaction:
                monkeypatch.setattr(sqlite3, "connect", connect)
                SqliteStore(path)
            return super().execute(*arguments)

    def overtaken(*arguments: Any, **named: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Overtaken, **named)

    monkeypatch.setattr(sqlite3, "connect", overtaken)
    SqliteStore(path)


def test_many_open_it_at_once(tmp_path: Path) -> None:
    barrier = Barrier(OPENERS)

    def opening(path: Path) -> Callable[[], SqliteStore]:
        def work() -> SqliteStore:
            barrier.wait()
            return SqliteStore(path)

        return work

    with ThreadPoolExecutor(OPENERS) as threads:
        for number in range(10):
            work = opening(tmp_path / f"{number}.db")
            for opened in [threads.submit(work) for _ in range(OPENERS)]:
                opened.result()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (name TEXT)")
    with pytest.raises(Refused, match="another program"):
        SqliteStore(path)


FULL = 100  # bytes that a file may have


@pytest.mark.anyio
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "beside another process"])
async def test_a_full_disk_stops_no_reader(tmp_path: Path, shared: bool) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    async with open_log(url) as log:
        await log.append("k", 1)
        await log.commit("g", {"k": 0})
    async with AsyncExitStack() as stack:
        if shared:
            other = await stack.enter_async_context(open_log(url))
            await other.append("k", 2)
        with room(FULL):
            async with open_log(url, patience_s=1.0) as log:
                assert len(await log.read("k")) == 1 + shared
                assert await log.keys() == {"k": 1 + shared}
                assert (await log.status()).state == "open"
                assert await log.committed("g", ["k"]) == {"k": 0}
                assert (await anext(log.tail(["k"], "earliest"))).value == 1


@pytest.mark.anyio
async def test_who_reads_on_a_full_disk_writes_when_there_is_room_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.write("k", b"1")
    await store.aclose()
    with room(FULL):
        store = SqliteStore(path)
        with pytest.raises(OutcomeUnknown):
            await store.write("k", b"2")
        found = await store.read("k")
        assert found is not None
        assert found.value == b"1"
    await store.write("k", b"3")
    found = await SqliteStore(path).read("k")  # another process is not kept out
    assert found is not None
    assert found.value == b"3"
    await store.aclose()
    for call in (store.read("k"), store.write("k", b"4")):
        with pytest.raises(Refused, match="closed"):
            await call
