"""`store` on SQLite, where no proxy can stand: another process holds the file's write lock, again and again.

The bench is that process. It holds the lock for 10 to 300 ms (`late`) or 1.2 to 3 s (`abandoned`), and lets it
go for as long as it held it before. Writes of all nodes wait meanwhile; reads do not.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from bench.loop import Loop
from bench.nemesis.store_faults import WAITS_NS, StoreFault

MODES_OF_FILE = dict.fromkeys(WAITS_NS, (1.0,))  # a lock is for all requests that write
_RETRY_NS = 2_000_000


class FileLock:
    """Holds the write lock of a SQLite file while a fault is in force."""

    def __init__(self, loop: Loop, file: Path, random: Random) -> None:
        self._loop = loop
        self._file = file
        self._random = random
        self._fault: StoreFault | None = None
        self._connection: sqlite3.Connection | None = None
        self.holding = False

    @property
    def in_force(self) -> StoreFault | None:
        """The fault; setting it takes the lock or lets it go."""
        return self._fault

    @in_force.setter
    def in_force(self, fault: StoreFault | None) -> None:
        self._fault = fault
        if fault:
            self._take(fault)
        else:
            self.close()

    def close(self) -> None:
        """Let the file go."""
        if self._connection:
            self._connection.close()
        self._connection, self.holding = None, False

    def _take(self, fault: StoreFault) -> None:
        if self._fault is not fault:
            return
        try:
            self._connected().execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # a node writes just now
            self._later(_RETRY_NS, self._take, fault)
            return
        self.holding = True
        wait_ns = self._random.randint(*WAITS_NS[fault.mode])
        self._later(wait_ns, self._release, fault, wait_ns)

    def _release(self, fault: StoreFault, wait_ns: int) -> None:
        if self._fault is fault:
            with suppress(sqlite3.OperationalError):
                self._connected().execute("ROLLBACK")
            self.holding = False
            self._later(wait_ns, self._take, fault)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._file, timeout=0, isolation_level=None)
        return self._connection

    def _later(self, wait_ns: int, function: Callable[..., None], *arguments: object) -> None:
        self._loop.call_at(self._loop.now_ns() + wait_ns, function, *arguments)
