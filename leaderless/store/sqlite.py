"""Objects in one SQLite file: durable, for any number of processes of one machine.

An acknowledged write is on the disk (write-ahead log, `synchronous=FULL`), and a process that is killed in
the middle of one leaves nothing of it. The file must not be on a network share: its locks would not hold
[sqlite.org/wal.html]. Every write takes the file's only write lock at its beginning (`BEGIN IMMEDIATE`), so
what it compares cannot change before it ends. Calls run in threads, for a commit waits for the disk.

Who only reads writes nothing: a missing file stays missing, and a full disk stops no reader. What connections
share (`FILE-shm`) needs room, too: where there is none, a reader takes the file for itself while a query runs,
and keeps no connection.

A file from a stranger is looked at before SQLite opens it, for SQLite deletes what a journal names, and writes
through links. It is refused unless its tables, and the types in each row, are those of this module. A statement
that computes for longer than a write may wait is ended [sqlite.org/security.html].
"""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio.to_thread

from leaderless.store.files import FolderFiles
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    Version,
    require_page,
)

T = TypeVar("T")
APPLICATION = 0x4C65614C  # "LeaL": marks a file of this module
FILES = "-files"  # the folder of files beside it
NO_ROOM = "SQLITE_IOERR_SHM"  # how the errors begin of what connections share
PRIMARY = 0xFF  # the part of an error code that all its kinds share
LOCKED_PAUSE_S = 0.002
LAST = "\U0010ffff"  # after every key
BESIDE = ("-journal", "-wal", "-shm")  # files of SQLite's own [sqlite.org/tempfiles.html]
DATABASE = b"SQLite format 3\0"
JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"  # begins a journal, and ends one with a super-journal
KEY_BYTES = 1 << 16  # at most, of a key and of what SQLite puts around a value
STEPS = 100_000  # of SQLite's machine between two looks at the clock; a call of a log takes fewer
SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, modified REAL NOT NULL);
CREATE TABLE IF NOT EXISTS writes (count INTEGER NOT NULL);
INSERT INTO writes SELECT 0 WHERE NOT EXISTS (SELECT * FROM writes);
"""
COLUMNS = {  # of each table the names and types, and whether it is the primary key
    "objects": [("key", "TEXT", 1), ("value", "BLOB", 0), ("version", "INTEGER", 0), ("modified", "REAL", 0)],
    "writes": [("count", "INTEGER", 0)],
}  # fmt: skip
PUT = """
INSERT INTO objects VALUES (?, ?, ?, ?) ON CONFLICT (key)
DO UPDATE SET value = excluded.value, version = excluded.version, modified = excluded.modified
"""


def _typed(**kinds: str) -> str:
    """Columns of a query, each NULL where its value is of another type: so SQLite hands out no other."""
    return ", ".join(
        f"CASE typeof({name}) WHEN '{kind}' THEN {name} END" for name, kind in kinds.items()
    )


FOUND = _typed(value="blob", version="integer", modified="real")
COUNT = (
    "SELECT CASE WHEN typeof(count) = 'integer' AND count > ? THEN count END FROM writes LIMIT 2"
)


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
        if self._path.name.casefold().endswith((*BESIDE, FILES)):
            ends = ", ".join((*BESIDE, FILES))
            raise Refused(
                f"{path} must not end in {ends}: it would be a file of the log beside it. Rename it"
            )
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
            self._watch(connection)
            connection.text_factory = bytes.decode
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.value_bytes_max + KEY_BYTES)
            connection.execute("PRAGMA trusted_schema=OFF")
            if alone:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            # In this order: another process may make the database between the two, the mark with the tables.
            tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            if tables and _mark_of(connection) != APPLICATION:
                raise Refused(f"{self._path} is a database of another program; name another file")
            if tables:
                _require_tables(connection, self._path)
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
        for end in BESIDE:
            with suppress(FileNotFoundError):
                _require_beside(self._path.with_name(f"{self._path.name}{end}"))

    def _watch(self, connection: sqlite3.Connection) -> None:
        """What it is asked next ends, unfinished, when it has computed for `busy_s`, or the store is closed."""
        end_s = time.monotonic() + self._busy_s
        connection.set_progress_handler(lambda: self._closed or time.monotonic() > end_s, STEPS)

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
        rows = await self._query(f"SELECT {FOUND} FROM objects WHERE key = ?", key)
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
            "SELECT key, CASE typeof(value) WHEN 'blob' THEN length(value) END, "
            f"{_typed(modified='real')} FROM objects "
            "WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
            first, end, after, limit,
        )  # fmt: skip
        return require_page([Listed(*row) for row in rows], folder, after)

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""
        self._closed = True  # it ends an endless query, which has a lock
        with self._write_lock, self._read_lock:
            for connection in (self._writer, self._reader):
                if connection:
                    connection.close()

    async def _query(self, statement: str, *values: object) -> list[Any]:
        def query() -> list[Any]:
            with self._read_lock, self._reading() as connection:
                if connection is None:
                    return []
                self._watch(connection)
                return [*map(self._sound, connection.execute(statement, values))]

        return await self._run(query)

    def _sound(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if None in row:
            raise Refused(
                f"{self._path} holds what no program writes there: a value of another type, or a count of "
                "writes that is missing, doubled or too low. Go back to an older copy of the file"
            )
        return row

    async def _write(self, may: Callable[[str | None], bool], key: str, value: bytes) -> Version:
        if len(value) > self.value_bytes_max:
            raise Refused(f"an object may have {self.value_bytes_max} bytes, not {len(value)}")

        def put(connection: sqlite3.Connection) -> Version:
            statement = f"SELECT {_typed(version='integer')} FROM objects WHERE key = ?"
            known = connection.execute(statement, (key,)).fetchone()
            version = known and self._sound(known)[0]
            if not may(None if version is None else str(version)):
                raise Conflict(f"{key} has version {version}")
            connection.execute("UPDATE writes SET count = count + 1")
            counts = connection.execute(COUNT, (version or 0,)).fetchall()
            [count] = self._sound(counts[0] if len(counts) == 1 else (None,))
            connection.execute(PUT, (key, value, count, time.time()))
            return str(count)

        return await self._transact(put)

    async def _transact(self, change: Callable[[sqlite3.Connection], T]) -> T:
        def transact() -> T:
            with self._write_lock:
                writer = self._writer = self._writer or self._connect_writer()
                self._watch(writer)
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
        except (sqlite3.OperationalError, OSError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY:
                raise Refused(f"{self._path}: {error}: this user may not") from error
            # such as busy, full, or an error of the disk
            raise OutcomeUnknown(f"{self._path}: {error}") from error
        except (sqlite3.Error, UnicodeError) as error:
            raise Refused(f"{self._path}: {error}") from error


def _mark_of(connection: sqlite3.Connection) -> int:
    """The number that says whose file it is; 0: of nobody yet."""
    [(mark,)] = connection.execute("PRAGMA application_id").fetchall()
    return int(mark)


def _require_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `Refused` unless the tables are those of `SCHEMA`, without anything that runs when they are used.

    A view, a trigger, or an index on an expression would run.
    """
    parts = connection.execute(
        "SELECT type, name, rootpage > 0, sql IS NULL FROM sqlite_master "
        "WHERE lower(tbl_name) IN ('objects', 'writes')"
    )
    allowed = {
        *(("table", name, 1, 0) for name in COLUMNS),
        ("index", "sqlite_autoindex_objects_1", 1, 1),
    }
    found = {
        table: connection.execute(
            f"SELECT name, type, pk, hidden FROM pragma_table_xinfo('{table}')"
        ).fetchall()
        for table in COLUMNS
    }
    strange = [
        *(f"{kind} {name}" for kind, name, *rest in parts if (kind, name, *rest) not in allowed),
        *(
            f"columns of {table}"
            for table, columns in COLUMNS.items()
            if found[table] != [(*column, 0) for column in columns]
        ),
    ]
    if strange:
        raise Refused(
            f"{path} is no file of a log: it has other {', '.join(strange)[:200]}. Do not use it"
        )


def _require_beside(file: Path) -> None:
    """Raise `Refused` for a file beside the database that SQLite would write to, or delete, to somebody's harm.

    `FILE-shm` is not opened: closing it would end the locks of this process.
    """
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise Refused(
            f"{file} must be a plain file with one name, or SQLite would write to another. Remove it"
        )
    if file.name.endswith(BESIDE[-1]):
        return
    with file.open("rb") as beside:
        if beside.read(len(DATABASE)) == DATABASE:
            raise Refused(f"{file} is a database, and SQLite would delete it. Move it away")
        end = max(0, beside.seek(0, os.SEEK_END) - 16)
        beside.seek(end)  # the length of a name, the sum of its bytes, and the mark
        length, is_super = int.from_bytes(beside.read(4)), beside.read().endswith(JOURNAL)
        if file.name.endswith(BESIDE[0]) and is_super and 0 < length <= end:
            beside.seek(end - length)
            named = beside.read(min(length, 400)).decode(errors="replace")
            raise Refused(
                f"{file} names the file {named!r}, which SQLite would delete, so nothing was opened. No log "
                "leaves such a journal: remove it"
            )
