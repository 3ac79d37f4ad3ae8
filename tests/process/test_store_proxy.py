"""The proxy between nodes and a real store, on real sockets: what is applied, and what the node sees."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import pytest

from bench.loop import RealLoop
from bench.nemesis.requests import StoreFault
from bench.stores.fates import Fates
from bench.stores.proxy import Proxy
from bench.stores.run_store import SLOW_DOWN
from tests import servers

LIMIT_NS = 20_000_000_000
LARGE = bytes(range(256)) * 8_000  # 2 MB


class Ways:
    """Links without latency; `lost`: the ends whose messages get lost."""

    def __init__(self) -> None:
        self.lost: set[str] = set()

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None:
        return None if src in self.lost and not spared else 0


class EchoServer(ThreadingHTTPServer):
    """Keeps what it was asked: method, path and host."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.applied: list[tuple[str, str, str]] = []


class Echo(BaseHTTPRequestHandler):
    """Notes what it was asked, and answers with the body and the host that it was asked for."""

    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        assert isinstance(self.server, EchoServer)
        self.server.applied.append((self.command, self.path, self.headers["host"]))
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        if self.path == "/close":
            self.send_header("connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_HEAD = _handle  # noqa: N815 - names of the base class

    def log_request(self, *args: Any) -> None:
        pass


def run_until(loop: RealLoop, done: Callable[[], bool]) -> None:
    """Run the loop, which looks every ms whether it is done; a thread cannot wake it."""
    limit_ns = loop.now_ns() + LIMIT_NS

    def look() -> None:
        loop.call_at(loop.now_ns() + 1_000_000, look)

    look()
    loop.run_until(lambda: done() or loop.now_ns() > limit_ns)
    assert loop.now_ns() <= limit_ns, "it did not happen in time"


class Rig:
    """A proxy before a server that notes what it applies; clients run in threads beside the loop."""

    def __init__(self, loop: RealLoop, server: EchoServer, threads: ThreadPoolExecutor) -> None:
        self.loop = loop
        self.applied = server.applied
        self._threads = threads
        self.ways = Ways()
        self.starting: set[str] = set()
        address = ("127.0.0.1", server.server_port)
        self.proxy = Proxy(loop, ["n0", "n1"], address, SLOW_DOWN)
        self.proxy.connect(Fates(self.ways, Random(1)), self.starting.__contains__)

    def until(self, done: Callable[[], bool]) -> None:
        run_until(self.loop, done)

    def run(self, client: Callable[[], object]) -> Any:
        """What a client that runs in a thread returns."""
        future: Future[Any] = self._threads.submit(client)
        self.until(future.done)
        return future.result()

    def ask(
        self,
        *paths: str,
        node: str = "n0",
        method: str = "PUT",
        body: bytes = b"x",
        timeout: float = 20,
    ) -> Any:
        """Ask on one connection; the answers' statuses and bodies."""

        def client() -> Any:
            connection = http.client.HTTPConnection(
                "127.0.0.1", self.proxy.port(node), timeout=timeout
            )
            with closing(connection):
                found = []
                for path in paths:
                    connection.request(method, path, body)
                    answer = connection.getresponse()
                    found.append((answer.status, answer.read()))
                return found

        return self.run(client)

    def fault(self, mode: str, *nodes: str, share: float = 1.0) -> None:
        self.proxy.impose(StoreFault(frozenset(nodes or ["n0"]), mode, share))


@contextmanager
def echo_server() -> Iterator[EchoServer]:
    with EchoServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def rig() -> Iterator[Rig]:
    with (
        closing(RealLoop()) as loop,
        ThreadPoolExecutor() as threads,
        echo_server() as server,
    ):
        made = Rig(loop, server, threads)
        yield made
        made.proxy.close()


def test_requests_and_answers_pass_as_they_are(rig: Rig) -> None:
    assert rig.ask("/a", "/b") == [(200, b"x"), (200, b"x")]
    assert rig.ask("/c", body=LARGE) == [(200, LARGE)]
    assert rig.ask("/d", "/e", method="HEAD") == [(200, b""), (200, b"")]
    host = f"127.0.0.1:{rig.proxy.port('n0')}"  # a signature covers it
    assert rig.applied == [
        *(("PUT", path, host) for path in ("/a", "/b", "/c")),
        *(("HEAD", path, host) for path in ("/d", "/e")),
    ]
    counted = rig.proxy.statistics
    assert (dict(counted.by_kind), dict(counted.by_status)) == ({"PUT": 3, "HEAD": 2}, {"200": 5})
    rig.proxy.begin()  # requests count from here on
    assert rig.ask("/f", body=b"four") == [(200, b"four")]
    counted = rig.proxy.statistics
    assert (counted.at_start, dict(counted.by_kind), counted.sent_bytes) == (5, {"PUT": 1}, 4)


def test_a_server_that_closes_its_connections_is_asked_on_new_ones(rig: Rig) -> None:
    assert rig.ask("/close") == [(200, b"x")]
    assert rig.ask("/close") == [(200, b"x")]


BREAKS = (ConnectionError, http.client.HTTPException)


@pytest.mark.parametrize(
    ("mode", "lost", "applied"),
    [
        ("lost", "", True),
        ("reset", "", False),
        ("refused", "", False),
        # What the link loses leaves the node without an answer.
        ("", "n0", False),
        ("", "store", True),
    ],
)
def test_a_request_without_an_answer_was_applied_or_not(
    rig: Rig, mode: str, lost: str, applied: bool
) -> None:
    if mode:
        rig.fault(mode)
    rig.ways.lost = {lost}
    with pytest.raises(BREAKS if mode else TimeoutError):
        rig.ask("/a", timeout=20 if mode else 0.05)
    if applied:
        rig.until(lambda: bool(rig.applied))
    assert bool(rig.applied) is applied
    rig.proxy.impose(None)
    rig.ways.lost = set()
    assert rig.ask("/c") == [(200, b"x")]


def test_a_fault_is_for_its_nodes_and_not_for_one_that_starts(rig: Rig) -> None:
    rig.fault("refused")
    assert rig.ask("/b", node="n1") == [(200, b"x")]
    rig.starting.add("n0")
    assert rig.ask("/a") == [(200, b"x")]
    rig.starting.clear()
    with pytest.raises(BREAKS):
        rig.ask("/b")


def test_a_store_that_refuses_breaks_open_connections_too(rig: Rig) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", rig.proxy.port("n0"), timeout=20)

    def ask() -> Any:
        connection.request("PUT", "/a", b"x")
        return connection.getresponse().read()

    with closing(connection):
        assert rig.run(ask) == b"x"
        rig.fault("refused")
        with pytest.raises(BREAKS):
            rig.run(ask)
    assert len(rig.applied) == 1


@pytest.mark.parametrize(
    ("mode", "count", "status", "bodies"),
    [
        ("throttled", 2, 503, {SLOW_DOWN.body}),  # the proxy answers it
        ("dripping", 2, 200, {LARGE}),
        ("damaged", 20, 200, {LARGE[: len(LARGE) // 2], b"", b"\xff" * len(LARGE)}),
    ],
)
def test_an_answer_is_whole_by_its_looks(
    rig: Rig, mode: str, count: int, status: int, bodies: set[bytes]
) -> None:
    rig.fault(mode)
    answers = rig.ask(*["/a"] * count, body=LARGE)
    assert ({each for each, _ in answers}, {body for _, body in answers}) == ({status}, bodies)
    assert len(rig.applied) == (count if status == 200 else 0)
    assert rig.ask("/b", node="n1", body=b"whole") == [(200, b"whole")]


def test_a_request_on_its_way_is_applied_even_if_its_node_is_gone(rig: Rig) -> None:
    rig.fault("late")
    for number in range(8):  # a coin decides whether it waits before it is applied
        with socket.create_connection(("127.0.0.1", rig.proxy.port("n0"))) as node:
            node.sendall(b"PUT /%d HTTP/1.1\r\nhost: s\r\ncontent-length: 1\r\n\r\nx" % number)
            rig.until(lambda: rig.proxy.statistics.by_kind.total() == number + 1)  # noqa: B023 - called at once
    rig.until(lambda: len(rig.applied) == 8)


def test_what_is_no_http_breaks_its_connection_alone(rig: Rig) -> None:
    def client() -> Any:
        with socket.create_connection(("127.0.0.1", rig.proxy.port("n0")), timeout=20) as node:
            node.sendall(b"\x00\x01 nonsense\r\n\r\n")
            return node.recv(100)

    with pytest.raises(ConnectionError):
        rig.run(client)
    assert rig.ask("/a") == [(200, b"x")]


def test_a_server_that_is_not_there_breaks_the_connection(rig: Rig) -> None:
    rig.proxy.address = ("127.0.0.1", servers.free_port())
    with pytest.raises(BREAKS):
        rig.ask("/a")
