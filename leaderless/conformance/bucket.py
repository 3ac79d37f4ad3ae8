"""A log in memory that S3 over HTTP shows to a program, and what becomes of each of its requests.

An ETag is the digest of what an object holds, as in S3. Signatures are not looked at. Requests may follow each
other on one connection; their bodies have a `Content-Length`, and no chunks.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from email import message_from_bytes
from email.utils import formatdate
from hashlib import md5
from secrets import token_hex
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from leaderless.conformance.judge import Changes
from leaderless.conformance.rows import FATES, NEVER, Sweep
from leaderless.store.memory import MemoryStore
from leaderless.store.names import FORMAT
from leaderless.store.port import PAGE

KEYS = {"access_key": "kit", "secret_key": "kit", "region": "us-east-1"}
FOLDER = "log/"  # of the log in the bucket
ERRORS = {
    403: "AccessDenied",
    404: "NoSuchKey",
    411: "MissingContentLength",
    412: "PreconditionFailed",
    503: "SlowDown",
}
# A connection ended, or brings what is no request.
ENDED = (
    asyncio.CancelledError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
    OSError,
    ValueError,
)
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


# A request: method; names of objects, or of a folder, without the bucket; query, headers and body.
Asked = tuple[str, list[str], Mapping[str, str], Any, bytes]
Answered = tuple[int, bytes, Mapping[str, object]]  # status, body and headers


class Bucket(MemoryStore):
    """The objects of a log. Each request is served when the one before it has met its fate.

    `place`: where a program finds it. `kill`: ends the program. `changes`: judges each change.
    """

    ahead_s: float
    place: Mapping[str, str]
    changes: Changes
    kill: Callable[[], None]

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.store: MemoryStore = self
        self._turn, self._sweep, self._by = asyncio.Lock(), Sweep(), "this library"
        self._late: list[tuple[int, Asked]] = []

    def _changed(self, key: str, value: bytes | None) -> None:
        self.changes.changed(key, value, self._by)

    def age(self) -> None:
        """All objects are two hours older."""
        self.ahead_s += 7200.0

    def judge(self) -> None:
        """All is judged."""

    async def meet(self, sweep: Sweep) -> None:
        """Requests meet the fates of a sweep from now on; those that are late arrive."""
        async with self._turn:
            self._sweep = sweep
            await self._arrive(2 * NEVER)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(*ENDED), closing(writer):
            while True:
                method, target, _ = (await reader.readuntil(b"\r\n")).decode().split()
                headers = message_from_bytes(await reader.readuntil(b"\r\n\r\n"))
                if headers.get("Expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await reader.readexactly(int(headers.get("Content-Length", 0)))
                url = urlsplit(target)
                query = dict(parse_qsl(url.query))
                path = unquote(url.path).strip("/").partition("/")[2]
                deleted = [] if path else re.findall("<Key>(.*?)</Key>", body.decode())
                names = [path] if path else [*map(unescape, deleted)] or [query.get("prefix", "")]
                async with self._turn:
                    status, said, more = await self._met((method, names, query, headers, body))
                named = {"Content-Length": len(said), **more}.items()
                head = "".join(f"{name}: {value}\r\n" for name, value in named)
                sent = b"" if method == "HEAD" else said
                writer.write(f"HTTP/1.1 {status} -\r\n{head}\r\n".encode() + sent)

    async def _met(self, asked: Asked) -> Answered:
        """The answer to a request that has met its fate. Raises `OSError`: the connection breaks."""
        sweep, name = self._sweep, "overtaken"
        sweep.seen += 1
        if sweep.seen == sweep.at + 1:
            name, sweep.fired = sweep.name, f"{asked[0]} {asked[1][0]}"
            await sweep.meanwhile()
        applied, later, kills, status, is_cut = FATES[name]
        found, body, more = await self._applied(asked) if applied else refused(status)
        await self._arrive(sweep.seen)
        if later:
            self._late.append((sweep.seen + later, asked))
        if kills:
            self.kill()
        if not status:
            raise OSError("the answer is lost")
        if is_cut and found == 200 and body:
            return 200, body[: len(body) // 2], {"ETag": '"0"'}
        return found, body, more

    async def _arrive(self, until: int) -> None:
        for each in [each for each in self._late if each[0] <= until]:
            self._late.remove(each)
            await self._applied(each[1])

    async def _applied(self, asked: Asked) -> Answered:
        method, names, query, headers, body = asked
        keys = [name.removeprefix(FOLDER) for name in names]
        found = await self.read(keys[0])
        etag = _etag(found.value) if found else ""
        if method == "PUT":
            is_other = headers.get("If-Match", etag) != etag
            if (
                is_other
                or (found and "If-None-Match" in headers)
                or "Content-Length" not in headers
            ):
                return refused((412 if found else 404) if "Content-Length" in headers else 411)
        if method in ("PUT", "POST", "DELETE"):
            self._by = f"{method} {', '.join(names)}"
            await (self.write(keys[0], body) if method == "PUT" else self.delete(keys))
            self._by = "this library"
            gone = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
            said = "" if method == "PUT" else f"<DeleteResult>{gone}</DeleteResult>"
            return 200, said.encode(), {"ETag": _etag(body)}
        if "list-type" in query:
            return 200, await self._listing(query), {}
        if not found:
            return refused(404)
        more = {"ETag": etag, "Last-Modified": formatdate(found.modified, usegmt=True)}
        if headers.get("If-None-Match") == etag:
            return 304, b"", more
        part = _RANGE.fullmatch(headers.get("Range", ""))
        if not part:
            return 200, found.value, more
        first = int(part[1]) if part[1] else -int(part[2])
        span = slice(first, int(part[2]) + 1 if part[1] and part[2] else None)
        first, end, _ = span.indices(len(found.value))
        more["Content-Range"] = f"bytes {first}-{end - 1}/{len(found.value)}"
        return 206, found.value[span], more

    async def _listing(self, query: Mapping[str, str]) -> bytes:
        """A page of the names that begin with `prefix`, behind another one."""
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        rows = [
            f"<Contents><Key>{escape(FOLDER + key)}</Key><Size>{size}</Size><LastModified>"
            f"{datetime.fromtimestamp(modified or 0, UTC).isoformat()}</LastModified></Contents>"
            for key, size, modified in await self.list_objects(
                "", after.removeprefix(FOLDER), NEVER
            )
            if f"{FOLDER}{key}".startswith(query.get("prefix", ""))
        ]
        more = [f"<IsTruncated>{str(len(rows) > PAGE).lower()}</IsTruncated>"]
        for last in rows[PAGE - 1 : -1][:1]:
            token = last.removeprefix("<Contents><Key>").partition("</Key>")[0]
            more += [f"<NextContinuationToken>{token}</NextContinuationToken>"]
        return f"<ListBucketResult>{''.join(rows[:PAGE] + more)}</ListBucketResult>".encode()


def _etag(value: bytes) -> str:
    return f'"{md5(value, usedforsecurity=False).hexdigest()}"'


def refused(status: int) -> Answered:
    """What is said of a request that was not carried out."""
    return status, f"<Error><Code>{ERRORS.get(status)}</Code></Error>".encode(), {}


@asynccontextmanager
async def in_bucket(
    objects: Mapping[str, bytes], kill: Callable[[], None]
) -> AsyncIterator[Bucket]:
    """A bucket with a log of these objects."""
    bucket = cast(Bucket, Bucket.named(token_hex(8)))
    bucket.changes, bucket.kill = Changes(objects[FORMAT]), kill
    for key, value in objects.items():
        await bucket.write(key, value)
    bucket.changes = Changes(objects[FORMAT])  # it judges what comes behind that
    with closing(await asyncio.start_server(bucket.serve, "127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        bucket.place = {"store": f"s3://kit/{FOLDER[:-1]}", "endpoint": endpoint} | KEYS
        yield bucket
