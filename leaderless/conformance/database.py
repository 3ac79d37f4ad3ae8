"""A log in a SQLite file of the kit, whose writes are found in its write-ahead log, one by one.

A reader of the kit holds the state of the beginning, so no checkpoint takes away what follows
[sqlite.org/wal.html#performance_considerations]: the file with each beginning of the write-ahead log that ends
with a commit is one state after the other.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leaderless.conformance.golden import fill
from leaderless.conformance.judge import Changes
from leaderless.conformance.rows import Sweep
from leaderless.store.names import FORMAT
from leaderless.store.sqlite import SqliteStore

LOOK_S = 0.001  # between two looks whether a program has written
# Bytes, of a write-ahead log and of a page in it [sqlite.org/fileformat2.html#walformat].
HEADER, FRAME = 32, 24
State = tuple[dict[str, Any], int]  # value and version of each object, and the count of writes
STATE = "SELECT key, CASE typeof(value) WHEN 'blob' THEN value END, version FROM objects"


class Database:
    """The file at `path`, of which all that is written behind what has `begun` is judged; see `Bucket`."""

    def __init__(
        self, path: Path, store: SqliteStore, begun: State, kill: Callable[[], None]
    ) -> None:
        self.store: SqliteStore = store
        self.place: dict[str, str] = {"store": store.url}
        self.changes: Changes = Changes(begun[0][FORMAT][0])
        self._path, self._begun, self._kill = path, begun, kill
        self._watching = asyncio.create_task(asyncio.sleep(0.0))

    def _written(self) -> tuple[bytes, list[int]]:
        """The write-ahead log, and where the commits end in it."""
        wal = self._path.with_name("log.db-wal").read_bytes()
        frame = FRAME + int.from_bytes(wal[8:12])
        ends = range(HEADER + frame, len(wal) + 1, frame)
        return wal, [end for end in ends if any(wal[end - frame + 4 : end - frame + 8])]

    async def meet(self, sweep: Sweep) -> None:
        """Kill the program when it has made so many commits as a sweep says from now on; -1: do not."""
        self._watching.cancel()
        if sweep.at >= 0:
            last = len(self._written()[1]) + sweep.at
            self._watching = asyncio.create_task(self._watch(sweep, last))

    async def _watch(self, sweep: Sweep, last: int) -> None:
        while len(self._written()[1]) < last:  # noqa: ASYNC110 - of a process
            await asyncio.sleep(LOOK_S)
        sweep.fired = f"after {sweep.at} commits"
        self._kill()

    def age(self) -> None:
        """All objects are two hours older."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("UPDATE objects SET modified = modified - 7200")

    def judge(self) -> None:
        """Judge all commits."""
        (before, last), (wal, ends) = self._begun, self._written()
        again = self._path.with_name("again.db")
        for number, end in enumerate(ends, 1):
            again.write_bytes(self._path.read_bytes())
            again.with_name("again.db-wal").write_bytes(wal[:end])
            with closing(sqlite3.connect(again)) as connection:
                rows, count = _state(connection)
            for key in [key for key in {**before, **rows} if rows.get(key) != before.get(key)]:
                value, version = rows.get(key, (None, 0))
                said = f"version {version}, count {count} after {last}; or its value is no BLOB"
                is_lawful = key not in rows or (value is not None and version == count == last + 1)
                wrong = "" if is_lawful else f"R30: commit {number} gives {key} {said}"
                self.changes.changed(key, value, f"commit {number}", wrong)
            before, last = rows, count


def _state(connection: sqlite3.Connection) -> State:
    rows = {key: (value, version) for key, value, version in connection.execute(STATE)}
    [[count]] = connection.execute("SELECT count FROM writes")
    return rows, count


@asynccontextmanager
async def in_file(
    objects: Mapping[str, bytes], kill: Callable[[], None]
) -> AsyncIterator[Database]:
    """A file with a log of these objects."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        async with aclosing(SqliteStore(path)) as store:
            await fill(store, objects)
            with closing(sqlite3.connect(path, isolation_level=None)) as pin:
                pin.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                pin.execute("BEGIN")
                yield Database(path, store, _state(pin), kill)
