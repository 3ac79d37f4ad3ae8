"""A node's connection to the proxy, and the one to the server that belongs to it.

Requests and answers are taken whole (h11 finds their ends) and passed on as they came: a signature covers the
host that the node asked, so that stays, too. A request that is to be applied is passed on even if its node has
gone meanwhile: it was on its way. An answer that is to be damaged is damaged here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import h11

from bench.loop import RealLoop
from bench.stores.damage import Bodies, Whole, damaged
from bench.stores.fates import End, Fate
from bench.stores.statistics import RequestStatistics, kind_of
from bench.stores.stream import Stream

_PIECES = 16  # of an answer that drips


class Throttled(NamedTuple):
    """How a server says that it is too busy: a status of HTTP, a type of content and a body."""

    status: int
    content_type: str
    body: bytes


class Surroundings(Protocol):
    """What connections share."""

    loop: RealLoop
    address: tuple[str, int]
    throttled: Throttled
    statistics: RequestStatistics
    bodies: Bodies

    def fate(self, node: str) -> Fate:
        """The fate of the next request."""
        ...

    def in_turn(self, begin: Callable[[], object]) -> None:
        """Call `begin` when a request may go to the server."""
        ...

    def turn_over(self, request: Whole, answer: Whole | None) -> None:
        """A request that had its turn is answered by the server, or never will be (None)."""
        ...


class Connection:
    """One connection of `node`. `on_close` is called once, when nothing is left of it."""

    def __init__(
        self,
        around: Surroundings,
        node: str,
        open_stream: Callable[[Callable[[bytes], object]], Stream],
        on_close: Callable[["Connection"], object],
    ) -> None:
        self._around = around
        self._node = node
        self._on_close = on_close
        self._asks = h11.Connection(h11.SERVER)
        self._answers = h11.Connection(h11.CLIENT)
        self._upstream: Stream | None = None
        self._at_server: Whole | None = None  # the request whose turn it is
        self._request = _Gathering()
        self._answer = _Gathering()
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
        self._leave_turn(None)
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
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._client.write(self._asks.send(go_on) or b"")
        if request is not None:
            fate = self._fate = self._around.fate(self._node)
            head = request.head
            assert isinstance(head, h11.Request)
            method, target = head.method.decode(), head.target.decode()
            self._asked = kind_of(method, target), target
            self._around.statistics.asked(method, target, len(request.body), fate.mode)
            self._later(fate.there_ns, lambda: self._arrive(request, fate))

    def _arrive(self, request: Whole, fate: Fate) -> None:
        """The request has come to the store."""
        if fate.applied:
            self._around.in_turn(partial(self._pass_on, request))
        elif fate.end is End.THROTTLED:
            self._later(fate.back_ns, self._throttle)
        elif fate.end is End.SILENT:
            self._over()
        else:
            self._later(fate.back_ns, self._broken)

    def _pass_on(self, request: Whole) -> None:
        self._is_answered, self._at_server = False, request
        if self._upstream is None:
            around = self._around
            self._upstream = Stream.to(around.loop, around.address, self._from_server)
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

    def _answered(self, answer: Whole, fate: Fate) -> None:
        assert isinstance(answer.head, h11.Response)
        self._is_answered = True
        self._around.statistics.answered(answer.head.status_code, len(answer.body))
        self._leave_turn(answer)
        self._around.bodies.note(*self._asked, answer)
        if fate.end is End.DAMAGED:
            answer = damaged(answer, fate.damage, self._around.bodies.other_than(*self._asked))
        if fate.end is End.SILENT:
            self._over()
        elif fate.end is End.RESET:
            self._later(fate.back_ns, self._broken)
        else:
            self._later(fate.back_ns, lambda: self._give(answer, fate.drips_ns))

    def _throttle(self) -> None:
        said = self._around.throttled
        headers = [("content-type", said.content_type), ("content-length", str(len(said.body)))]
        self._around.statistics.answered(said.status, len(said.body))
        head = h11.Response(status_code=said.status, headers=headers, reason=b"Slow Down")
        self._give(Whole(head, said.body), 0)

    def _give(self, answer: Whole, drips_ns: int) -> None:
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
        self._leave_turn(None)
        self._close_if_idle()

    def _leave_turn(self, answer: Whole | None) -> None:
        if request := self._at_server:
            self._at_server = None
            self._around.turn_over(request, answer)

    def _later(self, wait_ns: int, function: Callable[[], object]) -> None:
        if wait_ns:
            self._around.loop.call_at(self._around.loop.now_ns() + wait_ns, function)
        else:
            function()


class _Gathering:
    """Collects the events of one message."""

    def __init__(self) -> None:
        self._head: h11.Request | h11.Response | None = None
        self._parts: list[bytes] = []

    def next_of(self, connection: h11.Connection) -> Whole | None:
        """The next whole message that has come, if one has. Raises `h11.RemoteProtocolError`."""
        while True:
            event: Any = connection.next_event()
            if isinstance(event, h11.Request | h11.Response):
                self._head, self._parts = event, []
            elif isinstance(event, h11.Data):
                self._parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                assert self._head is not None
                return Whole(self._head, b"".join(self._parts))
            elif not isinstance(event, h11.InformationalResponse):
                return None  # more data is needed, or it is not their turn


def _encoded(connection: h11.Connection, message: Whole) -> bytes:
    parts = [connection.send(message.head)]
    if message.body:
        parts.append(connection.send(h11.Data(data=message.body)))
    parts.append(connection.send(h11.EndOfMessage()))
    return b"".join(part or b"" for part in parts)
