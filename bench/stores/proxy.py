"""The proxy between nodes and a real store: a port for each node, so that it knows who asks."""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import h11

from bench.loop import RealLoop
from bench.nemesis.store_faults import StoreFault
from bench.stores.connection import Connection, Throttled
from bench.stores.damage import Bodies, Whole
from bench.stores.fates import REFUSED, Fate, Fates
from bench.stores.statistics import RequestStatistics
from bench.stores.stream import Stream

_HERE = "127.0.0.1"
_WAITING_MAX = 128
Observer = Callable[[str, str, bytes], object]


class Gate:
    """A port of this machine; `accept` gets the connections to it."""

    def __init__(self, loop: RealLoop, accept: Callable[[socket.socket], object]) -> None:
        self._loop = loop
        self._accept = accept
        self._socket = socket.create_server((_HERE, 0), backlog=_WAITING_MAX)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        loop.watch(self._socket.fileno(), self._take, None)

    def close(self) -> None:
        """Give the port up."""
        self._loop.watch(self._socket.fileno(), None, None)
        self._socket.close()

    def _take(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self._accept(connection)


class Proxy:
    """Stands before the server at `address`. `throttled`: how that server says that it is too busy.

    `connect` must be called before the first request. A node for which `is_starting` holds meets no fault: on
    `lin-kv` a node asks its store nothing before it has answered `init`.

    `observer` is told method, target and body of each request that the server has carried out. With one, a
    request goes to the server when the one before it is answered, so the order of their effects is known.
    """

    def __init__(
        self,
        loop: RealLoop,
        nodes: Sequence[str],
        address: tuple[str, int],
        throttled: Throttled,
        observer: Observer | None = None,
    ) -> None:
        self.loop = loop
        self.address = address
        self.throttled = throttled
        self.statistics = RequestStatistics()
        self._observer = observer
        self._turns: deque[Callable[[], object]] = deque()
        self.bodies = Bodies()
        self._connections: dict[str, set[Connection]] = {}
        self._gates: dict[str, Gate] = {}
        for node in nodes:
            self.port(node)

    def connect(self, fates: Fates, is_starting: Callable[[str], bool]) -> None:
        """Take the fates of requests from `fates`."""
        self._fates = fates
        self._is_starting = is_starting

    def port(self, node: str) -> int:
        """The port for a node: a new one for a node that joins."""
        if node not in self._gates:
            self._connections[node] = set()
            self._gates[node] = Gate(self.loop, partial(self._accept, node))
        return self._gates[node].port

    def fate(self, node: str) -> Fate:
        """The fate of a node's next request."""
        return self._fates.of(node, spared=self._is_starting(node))

    def in_turn(self, begin: Callable[[], object]) -> None:
        """Call `begin` when a request may go to the server."""
        if self._observer:
            self._turns.append(begin)
        if len(self._turns) <= 1:
            begin()

    def turn_over(self, request: Whole, answer: Whole | None) -> None:
        """A request that had its turn is answered, or never will be; the next one begins."""
        if self._observer is None:
            return
        self._turns.popleft()
        if answer and isinstance(answer.head, h11.Response) and answer.head.status_code < 300:
            assert isinstance(request.head, h11.Request)
            method, target = request.head.method.decode(), request.head.target.decode()
            self._observer(method, target, request.body)
        if self._turns:
            self._turns[0]()

    @property
    def in_force(self) -> StoreFault | None:
        """The fault of the store in force. Setting one that refuses breaks the connections of its nodes."""
        return self._fates.in_force

    @in_force.setter
    def in_force(self, fault: StoreFault | None) -> None:
        self._fates.in_force = fault
        for node, connections in self._connections.items():
            if self._refuses(node):
                for connection in [*connections]:
                    connection.reset()

    def close(self) -> None:
        """Close every connection and port."""
        for gate in self._gates.values():
            gate.close()
        for connections in self._connections.values():
            for connection in [*connections]:
                connection.close()

    def _accept(self, node: str, connection: socket.socket) -> None:
        made = Connection(
            self,
            node,
            lambda on_data: Stream(self.loop, connection, on_data),
            self._connections[node].discard,
        )
        self._connections[node].add(made)
        if self._refuses(node):
            made.reset()

    def _refuses(self, node: str) -> bool:
        fault = self._fates.in_force
        is_meant = fault is not None and fault.mode == REFUSED and node in fault.nodes
        return is_meant and not self._is_starting(node)
