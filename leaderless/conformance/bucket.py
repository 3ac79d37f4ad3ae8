"""A log in memory that S3 over HTTP shows to a program, and what becomes of each of its requests.

An ETag is the digest of what an object holds, as in S3. Signatures are not looked at. Requests may follow each
other on one connection; their bodies have a `Content-Length`, and no chunks.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from leaderless.conformance.judge import Changes
from leaderless.store.memory import MemoryStore
from leaderless.store.names import FORMAT
from leaderless.store.port import PAGE, Version

HEAD_BYTES = 1 << 16  # of a request
FAR = 1 << 30
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
ENDED = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError)
SENSELESS = (anyio.DelimiterNotFound, ValueError)  # what was sent is no request


class Ending(NamedTuple):
    """What becomes of a request: `applied` at once, or `later`, after so many others; then it ends.

    It `kills` who asked, or is answered by `status`: 0 breaks the connection, 200 is its own answer, or half
    of it (`cut`).
    """

    applied: bool = True
    status: int = 0
    later: int = 0
    kills: bool = False
    cut: bool = False


FATES = {
    "killed before": Ending(applied=False, kills=True),
    "killed after": Ending(kills=True),
    "lost before": Ending(applied=False),
    "lost after": Ending(),
    "late": Ending(applied=False, later=1),
    "very late": Ending(applied=False, later=FAR),
    "refused": Ending(applied=False, status=403),
    "throttled": Ending(applied=False, status=503),
    "cut off": Ending(status=200, cut=True),
    "overtaken": Ending(status=200),
}
REASONS = {
    403: b"<Error><Code>AccessDenied</Code></Error>",
    503: b"<Error><Code>SlowDown</Code></Error>",
}


@dataclass
class Sweep:
    """The fate of request `at`, from 0, of a call, called `name` in `FATES`. `fired`: it came so far.

    `meanwhile` runs before that request; `kill` ends the program. `seen`: requests. `is_over`: the call is.
    """

    name: str
    at: int
    kill: Callable[[], None]
    meanwhile: Callable[[], Awaitable[None]] | None = None
    seen: int = 0
    fired: str = ""
    is_over: bool = False

    async def next(self, request: str) -> Ending:
        """The fate of the next request."""
        self.seen += 1
        if self.seen != self.at + 1:
            return Ending(status=200)
        self.fired = request
        if self.meanwhile:
            await self.meanwhile()
        return FATES[self.name]


class Bucket(MemoryStore):
    """The objects of one log, each change of which is judged."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.place: str = name
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

    def place_object(self, key: str, value: bytes) -> None:
        """Let it hold an object before a program comes."""
        super()._keep(key, value)
        if key == FORMAT:
            self.changes.changed(key, value, self.request)


class Asked(NamedTuple):
    """A request of S3, of an object of the log at `place`."""

    method: str
    place: str
    key: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class Gate:
    """Shows `bucket` by HTTP, at a place of its name. Others are gone: a program may let go of them late.

    Each request is served when the one before it has met its fate.
    """

    def __init__(self) -> None:
        self.bucket: Bucket = Bucket("")
        self._sweep: Sweep | None = None
        self._turn = anyio.Lock()
        self._late: list[tuple[int, Asked]] = []

    async def serve(self, stream: ByteStream) -> None:
        """Answer the requests of a connection."""
        async with stream:
            received = BufferedByteReceiveStream(stream)
            with suppress(*ENDED, *SENSELESS):
                while answer := await self._met(await _asked(stream, received)):
                    await stream.send(answer)

    async def _met(self, asked: Asked) -> bytes:
        """The answer to a request that has met its fate; b"": the connection breaks."""
        async with self._turn:
            named = f"{asked.method} {asked.key or '(list)'}"
            if asked.place != self.bucket.place:
                return _http(403, REASONS[403])
            if self._sweep is None:
                return await self._applied(asked, named)
            return await self._fated(self._sweep, asked, named)

    async def _fated(self, sweep: Sweep, asked: Asked, named: str) -> bytes:
        fate = await sweep.next(named)
        said = REASONS.get(fate.status, b"")
        answer = await self._applied(asked, named) if fate.applied else _http(fate.status, said)
        await self._arrive(sweep.seen)
        if fate.later:
            self._late.append((sweep.seen + fate.later, asked))
        if fate.kills:
            sweep.kill()
        if fate.cut and answer.startswith(b"HTTP/1.1 200"):
            body = answer.partition(b"\r\n\r\n")[2]
            return _http(200, body[: len(body) // 2], etag='"0"') if body else answer
        return answer if fate.status else b""

    async def meet(self, sweep: Sweep | None) -> None:
        """Requests meet the fates of a sweep from now on; None: none, and those that are late arrive."""
        async with self._turn:
            self._sweep = sweep
            await self._arrive(2 * FAR)

    async def _arrive(self, until: int) -> None:
        for each in [each for each in self._late if each[0] <= until]:
            self._late.remove(each)
            await self._applied(each[1], f"a late {each[1].method} {each[1].key}")

    async def _applied(self, asked: Asked, named: str) -> bytes:
        self.bucket.request = named
        try:
            answer = await self._answer(asked)
        finally:
            self.bucket.request = "this library"
        head, end, _ = answer.partition(b"\r\n\r\n")
        return head + end if asked.method == "HEAD" else answer

    async def _answer(self, asked: Asked) -> bytes:
        bucket, found = self.bucket, await self.bucket.read(asked.key)
        etag = _etag(found.value) if found else ""
        match asked.method:
            case "PUT":
                return await self._put(asked, etag)
            case "POST" | "DELETE":
                names = _deleted(asked.body) or [f"/{asked.key}"]
                await bucket.delete([name.partition("/")[2] for name in names])
                return _http(200, b"<DeleteResult></DeleteResult>")
        if not asked.key:
            return _http(200, await self._listing(asked.query))
        if found is None:
            return _http(404, b"<Error><Code>NoSuchKey</Code></Error>")
        if asked.headers.get("if-none-match") == etag:
            return _http(304, etag=etag)
        modified = formatdate(found.modified, usegmt=True)
        part = _RANGE.fullmatch(asked.headers.get("range", ""))
        if part is None:
            return _http(200, found.value, etag=etag, last_modified=modified)
        size = len(found.value)
        first = int(part[1]) if part[1] else size - int(part[2])
        last = min(int(part[2]), size - 1) if part[1] and part[2] else size - 1
        said = f"bytes {first}-{last}/{size}"
        body = found.value[first : last + 1]
        return _http(206, body, etag=etag, last_modified=modified, content_range=said)

    async def _put(self, asked: Asked, etag: str) -> bytes:
        is_new, version = "if-none-match" in asked.headers, asked.headers.get("if-match")
        if (is_new and etag) or (version and version != etag):
            return _http(412 if etag else 404, b"<Error><Code>PreconditionFailed</Code></Error>")
        if "content-length" not in asked.headers:
            return _http(411)
        await self.bucket.write(asked.key, asked.body)
        return _http(200, etag=_etag(asked.body))

    async def _listing(self, query: dict[str, list[str]]) -> bytes:
        within = f"{self.bucket.place}/"
        [folder], [after], [token] = (
            query.get(name, [""]) for name in ("prefix", "start-after", "continuation-token")
        )
        page = await self.bucket.list_objects(
            folder.removeprefix(within).strip("/"), max(token, after).removeprefix(within)
        )
        rows = [
            f"<Contents><Key>{escape(within + key)}</Key><Size>{size}</Size>"
            f"<LastModified>{_iso(modified)}</LastModified></Contents>"
            for key, size, modified in page
        ]
        more = "true" if len(page) == PAGE else "false"
        token = escape(within + page[-1].key) if page else ""
        rows += [f"<IsTruncated>{more}</IsTruncated><KeyCount>{len(page)}</KeyCount>"]
        rows += (
            [f"<NextContinuationToken>{token}</NextContinuationToken>"] if more == "true" else []
        )
        return f"<ListBucketResult>{''.join(rows)}</ListBucketResult>".encode()


def _etag(value: bytes) -> str:
    return f'"{md5(value, usedforsecurity=False).hexdigest()}"'


def _iso(modified: float | None) -> str:
    return datetime.fromtimestamp(modified or 0, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


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
    path, query = unquote(parts.path).lstrip("/").partition("/")[2], parse_qs(parts.query, True)
    place, _, key = (path or [*query.get("prefix", []), *_deleted(body), ""][0]).partition("/")
    return Asked(method, place, key if path else "", query, headers, body)


def _deleted(body: bytes) -> list[str]:
    """The names in a request that deletes many objects."""
    return [unescape(name.decode()) for name in re.findall(rb"<Key>(.*?)</Key>", body)]
