"""The proxy between nodes and a real store: a port for each node, so that it knows who asks.

Each connection of a node has one of its own to the server. Requests and answers are taken whole (h11 finds
their ends) and passed on as they came: a signature covers the host that the node asked, so that stays, too. A
request that is to be applied is passed on even if its node has gone meanwhile: it was on its way. An answer
that is to be damaged is damaged here.
"""

import re
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, cast
from urllib.parse import parse_qs, urlsplit

import h11

from bench.loop import RealLoop
from bench.nemesis.requests import DAMAGED, LOST, Fate, StoreFault, later
from bench.stores.fates import (
    LOSS,
    REFUSED,
    THROTTLED,
    Answer,
    Bodies,
    Fates,
    Head,
    Whole,
    damaged,
)

_GATEWAY = re.compile(r"/v3/(.+)")  # of etcd


@dataclass
class RequestStatistics:
    """Counts requests.

    `at_start`: those before the main phase, when nodes look whether the store keeps its laws.
    """

    at_start: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    by_status: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0
    received_bytes: int = 0

    def asked(self, method: str, target: str, size: int, fault: str | None) -> None:
        """A node has sent a request, which meets a fault or none."""
        self.by_kind[kind_of(method, target)] += 1
        self.sent_bytes += size
        if fault:
            self.by_fault[fault] += 1

    def answered(self, status: int, size: int) -> None:
        """The store has answered."""
        self.by_status[str(status)] += 1
        self.received_bytes += size


def kind_of(method: str, target: str) -> str:
    """The kind of a request: of S3 its method, or LIST; of etcd the method of its gateway, such as `kv/txn`."""
    parts = urlsplit(target)
    if found := _GATEWAY.fullmatch(parts.path):
        return found[1]
    is_list = method == "GET" and "list-type" in parse_qs(parts.query)
    return "LIST" if is_list else method


# ---------------------------------------------------------------- a stream


_CHUNK_BYTES = 1 << 18
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends a reset


class Stream:
    """A connection that is open, or is about to be.

    `on_data` gets what arrives, and b"" at its end, which comes once, also when the other side resets.
    """

    def __init__(
        self, loop: RealLoop, connection: socket.socket, on_data: Callable[[bytes], object]
    ) -> None:
        self._loop = loop
        self._socket = connection
        self._on_data = on_data
        self._unsent = bytearray()
        self._ended = False
        self.closed = False
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    @classmethod
    def to(
        cls, loop: RealLoop, address: tuple[str, int], on_data: Callable[[bytes], object]
    ) -> "Stream":
        """Connect to a server. When nobody listens there, `on_data` gets b""."""
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.connect_ex(address)
        return cls(loop, connection, on_data)

    def write(self, data: bytes) -> None:
        """Send bytes, after those that still wait. They are lost when the connection is gone."""
        if self.closed or self._ended:
            return
        self._unsent += data
        self._flush()

    def close(self) -> None:
        """Close in order; what could not be sent yet is lost."""
        if not self.closed:
            self.closed = True
            self._loop.watch(self._socket.fileno(), None, None)
            self._socket.close()

    def reset(self) -> None:
        """Break the connection: the other side gets an error."""
        if not self.closed:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close()

    def _read(self) -> None:
        if self.closed:
            return  # by another callback of this turn
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:  # refused, or reset
            chunk = b""
        if not chunk:
            self._ended = True
            self._loop.watch(self._socket.fileno(), None, None)
        self._on_data(chunk)

    def _flush(self) -> None:
        if self.closed or self._ended:
            return
        with suppress(OSError):  # full, not connected yet, or broken: reading tells which
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        self._watch()

    def _watch(self) -> None:
        self._loop.watch(self._socket.fileno(), self._read, self._flush if self._unsent else None)


# ---------------------------------------------------------------- a connection


_PIECES = 16  # of an answer that drips


class Connection:
    """One connection of `node`. `on_close` is called once, when nothing is left of it."""

    def __init__(
        self,
        around: "Proxy",
        node: str,
        open_stream: Callable[[Callable[[bytes], object]], Stream],
        on_close: Callable[["Connection"], object],
    ) -> None:
        self._around = around
        self._later = partial(later, around.loop)
        self._node = node
        self._on_close = on_close
        self._asks = h11.Connection(h11.SERVER)
        self._answers = h11.Connection(h11.CLIENT)
        self._upstream: Stream | None = None
        self._request = _Gathering[h11.Request]()
        self._answer = _Gathering[h11.Response]()
        self._fate: Fate | None = None  # while a request is under way
        self._asked = "", ""  # the request's kind, and its target
        self._is_answered = False  # by the server: the answer may still be on its way
        self._client = open_stream(self._from_node)

    def reset(self) -> None:
        """Break the connection for the node; a request that is under way goes on."""
        self._client.reset()
        self._close_if_idle()

    def close(self) -> None:
        """Close both ends, whatever is under way."""
        self._fate = None
        self._client.close()
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._fate is None and self._client.closed:
            if self._upstream:
                self._upstream.close()
            self._on_close(self)

    # ------------------------------------------------------------ the request

    def _from_node(self, data: bytes) -> None:
        if not data:
            self._client.close()
            self._close_if_idle()
            return
        self._asks.receive_data(data)
        self._read_request()

    def _read_request(self) -> None:
        try:
            request = self._request.next_of(self._asks)
        except h11.RemoteProtocolError:  # no HTTP: nothing can be passed on
            self.reset()
            return
        if self._asks.they_are_waiting_for_100_continue:
            self._client.write(
                self._asks.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
            )
        if request is not None:
            fate = self._fate = self._around.fate(self._node)
            head = request.head
            method, target = head.method.decode(), head.target.decode()
            self._asked = kind_of(method, target), target
            self._around.statistics.asked(method, target, len(request.body), fate.mode)
            self._later(fate.there_ns, lambda: self._arrive(request, fate))

    def _arrive(self, request: Whole[h11.Request], fate: Fate) -> None:
        """The request has come to the store."""
        if fate.applied:
            self._pass_on(request)
        elif fate.mode == THROTTLED:
            self._later(fate.back_ns, self._throttle)
        elif fate.mode == LOSS:
            self._over()
        else:
            self._later(fate.back_ns, self._broken)

    def _pass_on(self, request: Whole[h11.Request]) -> None:
        self._is_answered = False
        if self._upstream is None:
            self._upstream = Stream.to(self._around.loop, self._around.address, self._from_server)
        self._upstream.write(_encoded(self._answers, request))

    # ------------------------------------------------------------ the answer

    def _from_server(self, data: bytes) -> None:
        if self._fate is None:  # the server closes an idle connection, or talks out of turn
            self.close()
            return
        if self._is_answered:  # and closes before the node has the answer
            self._leave_server()
            return
        try:
            self._answers.receive_data(data)
            answer = self._answer.next_of(self._answers)
        except h11.RemoteProtocolError:  # it broke off in the middle of its answer
            answer = None
        if answer is not None:
            self._answered(answer, self._fate)
        elif not data:
            self._broken()

    def _answered(self, answer: Answer, fate: Fate) -> None:
        self._is_answered = True
        self._around.statistics.answered(answer.head.status_code, len(answer.body))
        self._around.bodies.note(*self._asked, answer)
        if fate.mode == DAMAGED:
            answer = damaged(answer, fate.damage, self._around.bodies.other_than(*self._asked))
        if fate.mode == LOSS:
            self._over()
        elif fate.mode == LOST:
            self._later(fate.back_ns, self._broken)
        else:
            self._later(fate.back_ns, lambda: self._give(answer, fate.drips_ns))

    def _throttle(self) -> None:
        said = self._around.throttled
        self._around.statistics.answered(said.head.status_code, len(said.body))
        self._give(said, 0)

    def _give(self, answer: Answer, drips_ns: int) -> None:
        data = _encoded(self._asks, answer)
        if not drips_ns:
            self._client.write(data)
            self._given()
            return
        size = len(data) // _PIECES + 1
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        for number, piece in enumerate(pieces):
            self._later(drips_ns * number // len(pieces), partial(self._client.write, piece))
        self._later(drips_ns, self._given)

    def _given(self) -> None:
        """The answer is written: the connection is ready for the next request, or at its end."""
        self._over()
        if self._client.closed:
            return
        if self._asks.our_state is not h11.DONE or self._asks.their_state is not h11.DONE:
            self.close()
            return
        self._asks.start_next_cycle()
        if self._answers.our_state is h11.DONE and self._answers.their_state is h11.DONE:
            self._answers.start_next_cycle()
        elif self._answers.our_state is not h11.IDLE:
            self._leave_server()
        self._read_request()

    def _leave_server(self) -> None:
        if self._upstream:
            self._upstream.close()
        self._upstream, self._answers = None, h11.Connection(h11.CLIENT)

    # ------------------------------------------------------------ ends

    def _broken(self) -> None:
        self._client.reset()
        self._over()

    def _over(self) -> None:
        """The request is no longer under way."""
        self._fate = None
        self._close_if_idle()


class _Gathering(Generic[Head]):
    """Collects the events of one message."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._parts: list[bytes] = []

    def next_of(self, connection: h11.Connection) -> Whole[Head] | None:
        """The next whole message that has come, if one has. Raises `h11.RemoteProtocolError`."""
        while True:
            event: Any = connection.next_event()
            if isinstance(event, h11.Request | h11.Response):
                self._head, self._parts = cast(Head, event), []
            elif isinstance(event, h11.Data):
                self._parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                assert self._head is not None
                return Whole(self._head, b"".join(self._parts))
            elif not isinstance(event, h11.InformationalResponse):
                return None  # more data is needed, or it is not their turn


def _encoded(connection: h11.Connection, message: Whole[h11.Request] | Answer) -> bytes:
    body = [h11.Data(data=message.body)] if message.body else []
    events = (message.head, *body, h11.EndOfMessage())
    return b"".join(connection.send(event) or b"" for event in events)


# ---------------------------------------------------------------- the proxy


_WAITING_MAX = 128


class Proxy:
    """Stands before the server at `address`. `throttled`: how that server says that it is too busy.

    `connect` must be called before the first request. A node for which `is_starting` holds meets no fault: on
    `lin-kv` a node asks its store nothing before it has answered `init`.
    """

    def __init__(
        self,
        loop: RealLoop,
        nodes: Sequence[str],
        address: tuple[str, int],
        throttled: Answer,
    ) -> None:
        self.loop = loop
        self.address = address
        self.throttled = throttled
        self.statistics = RequestStatistics()
        self.bodies = Bodies()
        self._connections: dict[str, set[Connection]] = {}
        self._gates: dict[str, socket.socket] = {}
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
            gate = self._gates[node] = socket.create_server(("127.0.0.1", 0), backlog=_WAITING_MAX)
            gate.setblocking(False)
            self.loop.watch(gate.fileno(), partial(self._take, node, gate), None)
        return int(self._gates[node].getsockname()[1])

    def begin(self) -> None:
        """The main phase begins: requests count from now on."""
        self.statistics = RequestStatistics(at_start=self.statistics.by_kind.total())

    def fate(self, node: str) -> Fate:
        """The fate of a node's next request."""
        return self._fates.of(node, spared=self._is_starting(node))

    def impose(self, fault: StoreFault | None) -> None:
        """Let a fault begin or end. One that refuses breaks the connections of its nodes (an `Impose`)."""
        self._fates.in_force = fault
        for node, connections in self._connections.items():
            if self._refuses(node):
                for connection in [*connections]:
                    connection.reset()

    def close(self) -> None:
        """Close every connection and port."""
        for gate in self._gates.values():
            self.loop.watch(gate.fileno(), None, None)
            gate.close()
        for connections in self._connections.values():
            for connection in [*connections]:
                connection.close()

    def _take(self, node: str, gate: socket.socket) -> None:
        try:
            taken, _ = gate.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        connection = Connection(
            self, node, partial(Stream, self.loop, taken), self._connections[node].discard
        )
        self._connections[node].add(connection)
        if self._refuses(node):
            connection.reset()

    def _refuses(self, node: str) -> bool:
        fault = self._fates.in_force
        is_meant = fault is not None and fault.mode == REFUSED and node in fault.nodes
        return is_meant and not self._is_starting(node)
