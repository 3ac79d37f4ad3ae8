"""The real store of one run, as the bench sees it: what nodes are told, its fault, its figures."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from bench.checkers import single
from bench.failure import RunFailure
from bench.loop import RealLoop
from bench.nemesis.fault import Fault
from bench.nemesis.store_faults import Store
from bench.processes import Own
from bench.stores.fates import MODES_OF_PROXY, Fates, Ways
from bench.stores.file_lock import MODES_OF_FILE, FileLock
from bench.stores.proxy import Proxy
from bench.stores.servers import StoreServer
from bench.stores.statistics import RequestStatistics
from runs.keyword import Keyword, keywords


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
            self._proxy.statistics.begin()

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
    figures = keywords(
        request_count=counted.count,
        requests_per_op=single(counted.count / operations) if operations else None,
        at_start=counted.at_start,
        by_kind=dict(counted.by_kind.most_common()),
        by_status=dict(counted.by_status.most_common()),
        by_fault=dict(counted.by_fault.most_common()),
        sent_bytes=counted.sent_bytes,
        received_bytes=counted.received_bytes,
    )
    return {name: value for name, value in figures.items() if value is not None}
