"""A log in a SQLite file of the kit, whose writes are found in its write-ahead log, one by one.

A reader of the kit holds the state of the beginning, so no checkpoint takes away what follows
[sqlite.org/wal.html#performance_considerations]: the file with each beginning of the write-ahead log that ends
with a commit is one state after the other.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from leaderless.conformance.bucket import Sweep
from leaderless.conformance.judge import Changes
from leaderless.store.names import FORMAT

LOOK_S = 0.001  # between two looks whether a program has written
# Bytes, of a write-ahead log and of a page in it [sqlite.org/fileformat2.html#walformat].
HEADER, FRAME = 32, 24
STATE = "SELECT key, CASE typeof(value) WHEN 'blob' THEN value END, version FROM objects"


class Database:
    """The file at `path`, of which all that is written after this call is judged."""

    def __init__(self, path: Path) -> None:
        self.changes: Changes = Changes()
        self._path, self._wal = path, path.with_name(f"{path.name}-wal")
        self._pin = sqlite3.connect(path, isolation_level=None)
        self._pin.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._pin.execute("BEGIN")
        rows, self._count = _state(self._pin)
        self._rows: dict[str, Any] = {}
        self._take(rows, self._count, "the kit")
        self._judged = 0

    def close(self) -> None:
        """Let go of the file."""
        self._pin.close()

    def _written(self) -> tuple[bytes, list[int]]:
        """The write-ahead log, and where the commits end in it."""
        wal = self._wal.read_bytes() if self._wal.exists() else b""
        frame = FRAME + int.from_bytes(wal[8:12])
        ends = range(HEADER + frame, len(wal) + 1, frame)
        return wal, [end for end in ends if any(wal[end - frame + 4 : end - frame + 8])]

    def _commits(self) -> int:
        return len(self._written()[1])

    async def watch(self, sweep: Sweep) -> None:
        """Kill the program when it has made so many commits as the sweep says."""
        before = self._commits()
        while not sweep.is_over and self._commits() < before + sweep.at:  # noqa: ASYNC110 - of a process
            await anyio.sleep(LOOK_S)
        if not sweep.is_over:
            sweep.fired = f"after {sweep.at} commits"
            sweep.kill()

    def judge(self) -> None:
        """Judge all commits since the last call."""
        again = self._path.with_name("again.db")
        wal, ends = self._written()
        for number, end in enumerate(ends[self._judged :], self._judged + 1):
            again.write_bytes(self._path.read_bytes())
            again.with_name("again.db-wal").write_bytes(wal[:end])
            with closing(sqlite3.connect(again)) as connection:
                self._take(*_state(connection), f"commit {number}")
            for left in self._path.parent.glob("again.db*"):
                left.unlink()
        self._judged = len(ends)

    def _take(self, rows: dict[str, Any], count: int, commit: str) -> None:
        changed = [key for key in {**self._rows, **rows} if rows.get(key) != self._rows.get(key)]
        for key in changed if self._rows else [*{*changed} & {FORMAT}]:
            value, version = rows.get(key, (None, count))
            if (value is None and key in rows) or (
                self._rows and (version, count) != (self._count + 1,) * 2
            ):
                said = f"R30: {commit} gives {key} version {version}, count {count} after {self._count}"
                self.changes.broken = self.changes.broken or f"{said}; or its value is no BLOB"
            self.changes.changed(key, value, commit)
        self._rows, self._count = rows, count


def _state(connection: sqlite3.Connection) -> tuple[dict[str, Any], int]:
    rows = {key: (value, version) for key, value, version in connection.execute(STATE)}
    [count] = connection.execute("SELECT count FROM writes").fetchone()
    return rows, count
