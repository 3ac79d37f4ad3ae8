"""A log in memory that S3 over HTTP shows to a program, and what becomes of each of its requests.

An ETag is the digest of what an object holds, as in S3: who writes one value twice is found (R25). Signatures are
not looked at. Keep-alive and `Content-Length` are known, chunks are not.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from leaderless.conformance.judge import Changes
from leaderless.store.memory import MemoryStore
from leaderless.store.port import PAGE, Found, Version

HEAD_BYTES = 1 << 16  # of a request
FAR = 1 << 30
PREFIX = "log/"
ENDED = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError)


class Fate(NamedTuple):
    """What becomes of a request: `applied` at once, or `later`, after so many others; then it ends.

    It `kills` who asked, or has the answer `status`: 0 breaks the connection, 200 is its own, which may be `cut`.
    """

    applied: bool = True
    status: int = 0
    later: int = 0
    kills: bool = False
    cut: bool = False


FATES = {
    "killed before": Fate(applied=False, kills=True),
    "killed after": Fate(kills=True),
    "lost before": Fate(applied=False),
    "lost after": Fate(),
    "late": Fate(applied=False, later=1),
    "very late": Fate(applied=False, later=FAR),
    "refused": Fate(applied=False, status=403),
    "throttled": Fate(applied=False, status=503),
    "cut off": Fate(status=200, cut=True),
    "overtaken": Fate(status=200),
}
REASONS = {403: b"<Error><Code>AccessDenied</Code></Error>", 503: b"<Error><Code>SlowDown</Code></Error>"}


class Sweep:
    """The fate of request `at`, from 0, of a call. `fired`: it came so far.

    `meanwhile` runs before that request; `kill` ends the program.
    """

    def __init__(
        self, fate: str, at: int, meanwhile: Callable[[], Awaitable[None]], kill: Callable[[], None]
    ) -> None:
        self.name, self.at = fate, at
        self.meanwhile, self.kill = meanwhile, kill
        self.seen: int = 0
        self.fired: str = ""
        self.is_over: bool = False

    def next(self, request: str) -> Fate:
        """The fate of the next request."""
        self.seen += 1
        if self.seen != self.at + 1:
            return Fate(status=200)
        self.fired = request
        return FATES[self.name]


class Bucket(MemoryStore):
    """The objects of one log, each change of which is judged."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.changes: Changes = Changes()
        self.request: str = "this library"

    def _keep(self, key: str, value: bytes) -> Version:
        version = super()._keep(key, value)
        self.changes.changed(key, value, self.request)
        return version

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        await super().delete(keys)
        for key in keys:
            self.changes.changed(key, None, self.request)

    def page(self, prefix: str, after: str) -> list[tuple[str, Found, float]]:
        """Objects whose names begin so, in order, after one."""
        keys = sorted(key for key in self._objects if key.startswith(prefix) and key > after)
        return [(key, *self._objects[key]) for key in keys[:PAGE]]


class Asked(NamedTuple):
    """A request of S3."""

    method: str
    key: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class Gate:
    """Shows a bucket by HTTP. `sweep`: the fates of the requests of a call; None: all pass."""

    def __init__(self) -> None:
        self.bucket: Bucket = Bucket("")
        self.sweep: Sweep | None = None
        self._late: list[tuple[int, Asked]] = []

    async def serve(self, stream: ByteStream) -> None:
        """Answer the requests of a connection."""
        async with stream:
            received = BufferedByteReceiveStream(stream)
            with suppress(*ENDED):
                while answer := await self._met(await _asked(stream, received)):
                    await stream.send(answer)

    async def _met(self, asked: Asked) -> bytes:
        """The answer to a request that has met its fate; b"": the connection breaks."""
        sweep, named = self.sweep, f"{asked.method} {asked.key or '(list)'}"
        if sweep is None:
            return await self._applied(asked, named)
        fate = sweep.next(named)
        if sweep.fired == named and sweep.seen == sweep.at + 1:
            await sweep.meanwhile()
        answer = await self._applied(asked, named) if fate.applied else _http(fate.status, REASONS.get(fate.status, b""))
        await self.arrive(sweep.seen)
        if fate.later:
            self._late.append((sweep.seen + fate.later, asked))
        if fate.kills:
            sweep.kill()
        if fate.cut and len(body := answer.partition(b"\r\n\r\n")[2]) > 1:
            return _http(200, body[: len(body) // 2], etag='"0"')
        return answer if fate.status else b""

    async def arrive(self, until: int = 2 * FAR) -> None:
        """Requests arrive that were late, after the answer number `until`."""
        for each in [each for each in self._late if each[0] <= until]:
            self._late.remove(each)
            await self._applied(each[1], f"a late {each[1].method} {each[1].key}")

    async def _applied(self, asked: Asked, named: str) -> bytes:
        self.bucket.request = named
        try:
            return await self._answer(asked)
        finally:
            self.bucket.request = "this library"

    async def _answer(self, asked: Asked) -> bytes:
        bucket, key, headers = self.bucket, asked.key, asked.headers
        found = await bucket.read(key)
        match asked.method:
            case "PUT" if "content-length" not in headers:
                return _http(411)
            case "PUT" if found and headers.get("if-none-match") == "*":
                return _http(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            case "PUT" if (wanted := headers.get("if-match")) and (
                found is None or wanted.strip('"') != _etag(found.value)
            ):
                return _http(412 if found else 404, b"<Error><Code>NoSuchKey</Code></Error>")
            case "PUT":
                await bucket.write(key, asked.body)
                return _http(200, etag=f'"{_etag(asked.body)}"')
            case "DELETE":
                await bucket.delete([key])
                return _http(204)
            case "POST":
                names = re.findall(r"<Key>(.*?)</Key>", asked.body.decode())
                await bucket.delete([unescape(name).removeprefix(PREFIX) for name in names])
                return _http(200, b"<DeleteResult></DeleteResult>")
            case _ if not key:
                return _http(200, self._listing(asked.query))
        if found is None:
            return _http(404, b"<Error><Code>NoSuchKey</Code></Error>")
        etag = f'"{_etag(found.value)}"'
        if headers.get("if-none-match") == etag:
            return _http(304, etag=etag)
        modified = formatdate(found.modified, usegmt=True)
        return _http(200, found.value, etag=etag, last_modified=modified)

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        [prefix], [after], [token] = (
            query.get(name, [""]) for name in ("prefix", "start-after", "continuation-token")
        )
        after = max(token, after).removeprefix(PREFIX)
        page = self.bucket.page(prefix.removeprefix(PREFIX), after)
        rows = [
            f"<Contents><Key>{escape(PREFIX + key)}</Key><Size>{len(found.value)}</Size>"
            f"<ETag>{_etag(found.value)}</ETag><LastModified>{_iso(modified)}</LastModified></Contents>"
            for key, found, modified in page
        ]
        more = len(page) == PAGE
        rest = f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"
        if more:
            rest += f"<NextContinuationToken>{escape(PREFIX + page[-1][0])}</NextContinuationToken>"
        return f"<ListBucketResult>{rest}{''.join(rows)}</ListBucketResult>".encode()


def _etag(value: bytes) -> str:
    return md5(value, usedforsecurity=False).hexdigest()


def _iso(modified: float) -> str:
    return datetime.fromtimestamp(modified, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _http(status: int, body: bytes = b"", **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    rows = [f"{name}: {value}\r\n" for name, value in named.items()]
    length = "" if status in (204, 304) else f"content-length: {len(body)}\r\n"
    return f"HTTP/1.1 {status} -\r\n{''.join(rows)}{length}\r\n".encode() + body


async def _asked(stream: ByteStream, received: BufferedByteReceiveStream) -> Asked:
    """The next request of a connection."""
    text = (await received.receive_until(b"\r\n\r\n", HEAD_BYTES)).decode("latin-1")
    first, *lines = text.split("\r\n")
    method, target, _ = first.split()
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    if headers.get("expect"):
        await stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await received.receive_exactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    key = unquote(parts.path).lstrip("/").partition("/")[2]
    return Asked(method, key.removeprefix(PREFIX), parse_qs(parts.query, True), headers, body)
