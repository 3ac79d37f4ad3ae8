"""Several processes open a SQLite store that is not there yet; each of them gets it."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from leaderless.store.port import Refused
from leaderless.store.sqlite import SqliteStore

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
