"""Objects in one SQLite file: durable, for any number of processes of one machine.

An acknowledged write is on the disk (write-ahead log, `synchronous=FULL`), and a process that is killed in
the middle of one leaves nothing of it. The file must not be on a network share: its locks would not hold
[sqlite.org/wal.html]. Every write takes the file's only write lock at its beginning (`BEGIN IMMEDIATE`), so
what it compares cannot change before it ends. Calls run in threads, for a commit waits for the disk.

Who only reads writes nothing: a missing file stays missing, and a full disk stops no reader. What connections
share (`FILE-shm`) needs room, too: where there is none, a reader takes the file for itself while a query runs,
and keeps no connection.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio.to_thread

from leaderless.store.files import FolderFiles
from leaderless.store.port import PAGE, Conflict, Found, Listed, OutcomeUnknown, Refused, Version

T = TypeVar("T")
APPLICATION = 0x4C65614C  # "LeaL": marks a file of this module
FILES = "-files"  # the folder of files beside it
NO_ROOM = "SQLITE_IOERR_SHM"  # how the errors begin of what connections share
PRIMARY = 0xFF  # the part of an error code that all its kinds share
LOCKED_PAUSE_S = 0.002
LAST = "\U0010ffff"  # after every key
SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, modified REAL NOT NULL);
CREATE TABLE IF NOT EXISTS writes (count INTEGER NOT NULL);
INSERT INTO writes SELECT 0 WHERE NOT EXISTS (SELECT * FROM writes);
"""
PUT = """
INSERT INTO objects VALUES (?, ?, ?, ?) ON CONFLICT (key)
DO UPDATE SET value = excluded.value, version = excluded.version, modified = excluded.modified
"""


class SqliteStore:
    """A store in the file at `path`, which the first write makes when it is missing.

    `busy_s`: how long a write waits for those of other processes, in seconds. Raises `Refused` when the file
    cannot be used.
    """

    def __init__(self, path: Path, busy_s: float = 10.0) -> None:
        self.url: str = f"sqlite:///{path}"
        self.value_bytes_max = 512 << 20
        self._path = Path(os.path.realpath(path))  # a link and its target are one store
        self.files: FolderFiles = FolderFiles(self._path.with_name(f"{self._path.name}{FILES}"))
        self._busy_s = busy_s
        self._writer: sqlite3.Connection | None = None  # until the first write
        self._reader: sqlite3.Connection | None = None  # until there is something to read
        self._closed = False
        self._write_lock, self._read_lock = Lock(), Lock()
        try:
            with self._reading():
                pass
        except (sqlite3.Error, OSError) as error:
            raise Refused(f"{path} cannot be used as a store: {error}") from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for a query; None: nothing was written yet, so there is nothing to find."""
        if self._reader is None:
            try:
                self._reader = self._connect_reader()
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith(NO_ROOM):
                    raise
                with closing(self._connect("rw", alone=True)) as connection:
                    yield connection
                return
        yield self._reader

    def _connect_reader(self) -> sqlite3.Connection | None:
        self._require_usable()
        if not self._path.exists():
            return None
        connection = self._connect("rw")
        if _mark_of(connection) == APPLICATION:
            return connection
        connection.close()
        return None

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect("rwc")
        try:
            if _mark_of(connection) != APPLICATION:
                self._make(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str, alone: bool = False) -> sqlite3.Connection:
        """A connection. `mode`: "rw", or "rwc", which makes the file [sqlite.org/uri.html]. `alone`: it shares
        nothing with others, and keeps them out.
        """
        self._require_usable()
        uri = f"{self._path.as_uri()}?mode={mode}"
        try:
            connection = sqlite3.connect(
                uri, self._busy_s, uri=True, isolation_level=None, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise Refused(f"{self._path} cannot be used as a store: {error}") from error
        try:
            if alone:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            # In this order: another process may make the database between the two, the mark with the tables.
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
            if tables and _mark_of(connection) != APPLICATION:
                raise Refused(f"{self._path} is a database of another program; name another file")
            connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _require_usable(self) -> None:
        if self._closed:
            raise sqlite3.ProgrammingError("the store was closed")
        if not self._path.parent.is_dir():
            raise Refused(f"{self._path}: make the folder {self._path.parent} first")
        if self._path.is_file() and (names := self._path.stat().st_nlink) > 1:
            raise Refused(
                f"{self._path} has {names} names: processes that open it by two of them would damage it. "
                "Remove the others, or make them symbolic links"
            )

    def _make(self, connection: sqlite3.Connection) -> None:
        self._to_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        for statement in filter(str.strip, SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute("COMMIT")

    def _to_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Try again while another process holds the file: unlike other statements, this one does not wait."""
        give_up_s = time.monotonic() + self._busy_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & PRIMARY == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > give_up_s:
                    raise
            time.sleep(LOCKED_PAUSE_S)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        statement = "SELECT value, version, modified FROM objects WHERE key = ?"
        rows = await self._query(statement, key)
        return Found(rows[0][0], str(rows[0][1]), rows[0][2]) if rows else None

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        statement = "SELECT 1 FROM objects WHERE key = ? AND version = ?"
        return known if await self._query(statement, key, known.version) else await self.read(key)

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._write(lambda _: True, key, value)

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._write(lambda version: version is None, key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._write(lambda found: found == version, key, value)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""

        def remove(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM objects WHERE key = ?", [(key,) for key in keys])

        await self._transact(remove)

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""
        first, end = (f"{folder}/", f"{folder}0") if folder else ("", LAST)  # "0" follows "/"
        rows = await self._query(
            "SELECT key, length(value), modified FROM objects "
            "WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
            first, end, after, limit,
        )  # fmt: skip
        return [Listed(*row) for row in rows]

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""
        with self._write_lock, self._read_lock:
            self._closed = True
            for connection in (self._writer, self._reader):
                if connection:
                    connection.close()

    async def _query(self, statement: str, *values: object) -> list[Any]:
        def query() -> list[Any]:
            with self._read_lock, self._reading() as connection:
                return connection.execute(statement, values).fetchall() if connection else []

        return await self._run(query)

    async def _write(self, may: Callable[[str | None], bool], key: str, value: bytes) -> Version:
        if len(value) > self.value_bytes_max:
            raise Refused(f"an object may have {self.value_bytes_max} bytes, not {len(value)}")

        def put(connection: sqlite3.Connection) -> Version:
            rows = connection.execute("SELECT version FROM objects WHERE key = ?", (key,))
            [version] = rows.fetchone() or [None]
            if not may(None if version is None else str(version)):
                raise Conflict(f"{key} has version {version}")
            connection.execute("UPDATE writes SET count = count + 1")
            [(count,)] = connection.execute("SELECT count FROM writes").fetchall()
            connection.execute(PUT, (key, value, count, time.time()))
            return str(count)

        return await self._transact(put)

    async def _transact(self, change: Callable[[sqlite3.Connection], T]) -> T:
        def transact() -> T:
            with self._write_lock:
                writer = self._writer = self._writer or self._connect_writer()
                writer.execute("BEGIN IMMEDIATE")
                try:
                    result = change(writer)
                    writer.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # it was rolled back already
                        writer.execute("ROLLBACK")
                    raise
                return result

        return await self._run(transact)

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        except sqlite3.OperationalError as error:  # such as busy, full, or an error of the disk
            raise OutcomeUnknown(f"{self._path}: {error}") from error
        except sqlite3.Error as error:
            raise Refused(f"{self._path}: {error}") from error


def _mark_of(connection: sqlite3.Connection) -> int:
    """The number that says whose file it is; 0: of nobody yet."""
    [(mark,)] = connection.execute("PRAGMA application_id").fetchall()
    return int(mark)
