"""The real store of one run, as the bench sees it: what nodes are told, its fault, its figures.

`store` on SQLite, where no proxy can stand: another process holds the file's write lock, again and again.

The bench is that process. It holds the lock for 10 to 300 ms (`late`) or 1.2 to 3 s (`abandoned`), and lets it
go for as long as it held it before. Writes of all nodes wait meanwhile; reads do not.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from bench.checkers import single
from bench.failure import RunFailure
from bench.loop import Loop, RealLoop
from bench.nemesis.fault import Fault
from bench.nemesis.store_faults import WAITS_NS, Store, StoreFault
from bench.processes import Own
from bench.stores.fates import MODES_OF_PROXY, Fates, Ways
from bench.stores.proxy import Proxy, RequestStatistics
from bench.stores.servers import StoreServer
from runs.keyword import Keyword, keywords

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


# ----------------------------------------------------------------


class RunStore:
    """`server` for the nodes of a run, with a proxy before it where it has an address."""

    def __init__(
        self, server: StoreServer, loop: RealLoop, nodes: Sequence[str], random: Random
    ) -> None:
        self._server = server
        self._random = random
        self._proxy: Proxy | None = None
        self._lock: FileLock | None = None
        if server.address:
            self._proxy = Proxy(loop, nodes, server.address, server.throttled)
        elif server.file:
            self._lock = FileLock(loop, server.file, random)

    def own(self, node: str) -> Own:
        """What a node is told: the URL, and in its environment endpoint and keys."""
        address = self._address(node)
        return Own(["--store", self._server.url(address)], self._server.environment(address))

    def _address(self, node: str) -> str:
        return f"127.0.0.1:{self._proxy.port(node)}" if self._proxy else ""

    def connect(self, network: Ways, is_starting: Callable[[str], bool]) -> None:
        """Let latency and link faults of the network act on the way to the store, too."""
        if self._proxy:
            self._proxy.connect(Fates(network, self._random), is_starting)

    def fault(self, nodes: Sequence[str], targets: str) -> Fault:
        """The fault `store` for some of `nodes`, which may change.

        Raises `RunFailure` where nothing can stand between nodes and store.
        """
        name = self._server.name
        if self._proxy:
            return Store(self._proxy, nodes, targets, MODES_OF_PROXY, name)
        if self._lock:  # a lock is for all
            return Store(self._lock, nodes, "all", MODES_OF_FILE, name)
        raise RunFailure(
            f"--nemesis store: the bench's proxy speaks HTTP without TLS, and cannot stand before {name}."
            " Leave the fault out, or use a server with an http endpoint, such as --store-server moto."
        )

    def begin(self) -> None:
        """The main phase begins: requests count from now on."""
        if self._proxy:
            self._proxy.begin()

    def result(self, operations: int) -> dict[Keyword, Any]:
        """For results.edn; where no proxy stands before the store there are no figures."""
        url = self._server.url("HOST:PORT")
        described = keywords(valid=True, server=self._server.name, url=url)
        if self._proxy:
            described |= _figures(self._proxy.statistics, operations)
        return described

    def close(self) -> None:
        """Let go of ports and files."""
        if self._proxy:
            self._proxy.close()
        if self._lock:
            self._lock.close()


def _figures(counted: RequestStatistics, operations: int) -> dict[Keyword, Any]:
    count = counted.by_kind.total()
    figures = keywords(
        request_count=count,
        requests_per_op=single(count / operations) if operations else None,
        at_start=counted.at_start,
        by_kind=dict(counted.by_kind.most_common()),
        by_status=dict(counted.by_status.most_common()),
        by_fault=dict(counted.by_fault.most_common()),
        sent_bytes=counted.sent_bytes,
        received_bytes=counted.received_bytes,
    )
    return {name: value for name, value in figures.items() if value is not None}
