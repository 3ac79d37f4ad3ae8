"""A proxy between a client and an HTTP server: it loses or damages answers, or refuses requests, as a test
says."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

from tests.around import DAMAGES, Damage

Answer = tuple[int, list[tuple[str, str]], bytes]
# Pass it on; pass it on and drop the answer; break off in the middle of the answer; drop it; answer as to the
# last read of the path, if there was one; answer with this status and pass nothing on; or change the answer.
Fate = (
    Literal["ok", "answer lost", "cut off", "call lost", "stale"] | int | Callable[[Answer], Answer]
)
Choose = Callable[[str, str, dict[str, str]], Fate]


def damaging(damage: Damage) -> Callable[[Answer], Answer]:
    """Damages the body of an answer, and nothing else of it."""
    return lambda answer: (*answer[:2], damage(answer[2]))


half, empty, garbage = map(damaging, DAMAGES.values())


def without(header: str) -> Callable[[Answer], Answer]:
    """Takes a header away."""

    def change(answer: Answer) -> Answer:
        status, headers, body = answer
        return status, [(n, v) for n, v in headers if n.lower() != header], body

    return change


def wants_bare(_method: str, _path: str, headers: dict[str, str]) -> Fate:
    """As Ceph's gateway: 412 always to a quoted ETag, the standard form."""
    return 412 if headers.get("if-match", "").startswith('"') else "ok"


class Proxy(ThreadingHTTPServer):
    """`fate(method, path, headers)` decides about each request; `requests` are all that came.

    `drops`: a header that is not passed on, as if the server did not know it.
    """

    daemon_threads = True

    def __init__(self, upstream: str, fate: Choose, drops: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.fate = fate
        self.drops = drops
        self.requests: list[tuple[str, str]] = []
        self.read: dict[str, Answer] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def _handle(self) -> None:
        method, path, headers = self.command, self.path, dict(self.headers)
        body = self.rfile.read(int(headers.get("content-length", 0)))
        self.server.requests.append((method, path))
        fate = self.server.fate(method, path, {name.lower(): headers[name] for name in headers})
        if isinstance(fate, int):
            self._answer(fate, [], b"<Error><Code>Injected</Code></Error>")
            return
        if fate == "stale" and method == "GET" and path in self.server.read:
            self._answer(*self.server.read[path])
            return
        if fate != "call lost":
            status, answer_headers, answer = self._pass_on(body)
            if method == "GET":
                self.server.read[path] = status, answer_headers, answer
        if callable(fate):
            self._answer(*fate((status, answer_headers, answer)))
        elif fate in ("ok", "stale"):
            self._answer(status, answer_headers, answer)
        else:
            if fate == "cut off":
                self._begin(status, answer_headers, len(answer))
                self.wfile.write(answer[: len(answer) // 2])
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815 - names of the base class

    def _pass_on(self, body: bytes) -> Answer:
        upstream = http.client.HTTPConnection(self.server.upstream)
        try:  # the signature covers the host that the client asked, so it stays
            headers = {n: v for n, v in self.headers.items() if n.lower() != self.server.drops}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._begin(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: int, headers: list[tuple[str, str]], size: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        length = dict(headers).get("Content-Length") if self.command == "HEAD" else None
        self.send_header("content-length", length or str(size))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        pass


@contextmanager
def proxy(upstream: str, fate: Choose, drops: str = "") -> Iterator[Proxy]:
    """Run a proxy before `upstream` until the block ends."""
    with Proxy(upstream, fate, drops) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
