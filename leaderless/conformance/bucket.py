"""A log in memory that S3 over HTTP shows to a program, and what becomes of each of its requests.

An ETag is the digest of what an object holds, as in S3. Signatures are not looked at.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha1
from secrets import token_hex
from socket import SHUT_RDWR
from threading import Thread
from typing import Any, cast
from xml.sax.saxutils import escape, unescape

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from leaderless.conformance.judge import Changes
from leaderless.conformance.rows import FATES, NEVER, Sweep
from leaderless.store.memory import MemoryStore
from leaderless.store.names import FORMAT
from leaderless.store.port import PAGE, Version

KEYS = {"access_key": "kit", "secret_key": "kit", "region": "us-east-1"}
ERRORS = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 503: "SlowDown"}


SILENT = type(
    "Silent", (WSGIRequestHandler,), {"log": lambda *_: None}
)  # writes no line for a request


class Judged(MemoryStore):
    """The objects of one log, each change of which `changes` judges, as one that is made `by` a request."""

    changes: Changes
    by: str = "this library"

    def _keep(self, key: str, value: bytes) -> Version:
        self.changes.changed(key, value, self.by)
        return super()._keep(key, value)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        await super().delete(keys)
        for key in keys:
            self.changes.changed(key, None, self.by)


class Bucket:
    """A bucket with one log after the other, where the program finds each at `place`.

    Others are gone: a program may let go of them late. Each request is served when the one before it
    has met its fate. `kill` ends the program.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self._loop, self._kill, self._turn = asyncio.get_running_loop(), kill, asyncio.Lock()
        self._sweep = Sweep()
        self._late: list[tuple[int, Request]] = []
        self._server = make_server(
            "127.0.0.1", 0, self._serve, threaded=True, request_handler=SILENT
        )
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.close = self._server.shutdown

    @asynccontextmanager
    async def holding(self, objects: Mapping[str, bytes]) -> AsyncIterator[None]:
        """Hold a log of these objects, from now on."""
        self._folder = f"{token_hex(8)}/"
        self.store = cast(Judged, Judged.named(self._folder))
        for key, value in objects.items():
            MemoryStore._keep(self.store, key, value)
        self.store.changes = self.changes = Changes(objects[FORMAT])
        endpoint = f"http://127.0.0.1:{self._server.port}"
        self.place = {"store": f"s3://kit/{self._folder[:-1]}", "endpoint": endpoint, **KEYS}
        yield

    @asynccontextmanager
    async def meeting(self, sweep: Sweep) -> AsyncIterator[None]:
        """Requests meet the fates of a sweep meanwhile; at the end those that are late arrive."""
        self._sweep = sweep
        yield
        async with self._turn:
            self._sweep = Sweep()
            await self._arrive(2 * NEVER)

    def _serve(self, environ: Any, start: Any) -> Iterable[bytes]:
        asked = Request(environ)
        asked.get_data()
        answer = asyncio.run_coroutine_threadsafe(self._met(asked), self._loop).result()
        if answer is None:
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
        return (answer or Response())(environ, start)

    async def _met(self, asked: Request) -> Response | None:
        """The answer to a request that has met its fate; None: the connection breaks."""
        async with self._turn:
            names, sweep = _names(asked), self._sweep
            if not f"{names[0]}/".startswith(self._folder):
                return refused(403)
            sweep.seen += 1
            fate = FATES["overtaken"]
            if sweep.seen == sweep.at + 1:
                fate, sweep.fired = FATES[sweep.name], f"{asked.method} {names[0]}"
                await sweep.meanwhile()
            answer = await self._applied(asked) if fate.applied else refused(fate.status or 500)
            await self._arrive(sweep.seen)
            if fate.later:
                self._late.append((sweep.seen + fate.later, asked))
            if fate.kills:
                self._kill()
            if fate.cut and answer.status_code == 200:
                answer.data = answer.data[: len(answer.data) // 2]
                answer.set_etag("half")
            return answer if fate.status else None

    async def _arrive(self, until: int) -> None:
        for each in [each for each in self._late if each[0] <= until]:
            self._late.remove(each)
            await self._applied(each[1])

    async def _applied(self, asked: Request) -> Response:
        names = [name.removeprefix(self._folder) for name in _names(asked)]
        found, answer = await self.store.read(names[0]), Response()
        etag = sha1(found.value).hexdigest() if found else ""
        self.store.by = f"{asked.method} {', '.join(names)}"
        if asked.method in ("POST", "DELETE"):
            await self.store.delete(names)
        elif asked.method == "PUT":
            is_other = asked.if_match and not asked.if_match.contains(etag)
            if is_other or (asked.if_none_match and found):
                return refused(412 if found else 404)
            await self.store.write(names[0], asked.get_data())
            answer.set_etag(sha1(asked.get_data()).hexdigest())
        elif "list-type" in asked.args:
            answer.data = await self._listing(asked.args)
        elif found:
            answer.data = found.value
            answer.last_modified = datetime.fromtimestamp(found.modified or 0, UTC)
            answer.set_etag(etag)
            answer.make_conditional(asked, True, len(found.value))
        else:
            answer = refused(404)
        self.store.by = "this library"
        return answer

    async def _listing(self, asked: Mapping[str, str]) -> str:
        """A page of the names that begin with `prefix`, behind another one."""
        after = max(asked.get("start-after", ""), asked.get("continuation-token", ""))
        listed = await self.store.list_objects("", after.removeprefix(self._folder), NEVER)
        rows = [
            f"<Contents><Key>{escape(self._folder + key)}</Key><Size>{size}</Size><LastModified>"
            f"{datetime.fromtimestamp(modified or 0, UTC).isoformat()}</LastModified></Contents>"
            for key, size, modified in listed
            if f"{self._folder}{key}".startswith(asked.get("prefix", ""))
        ]
        more = [f"<IsTruncated>{str(len(rows) > PAGE).lower()}</IsTruncated>"]
        for last in rows[PAGE - 1 : -1][:1]:
            token = last.removeprefix("<Contents><Key>").partition("</Key>")[0]
            more += [f"<NextContinuationToken>{token}</NextContinuationToken>"]
        return f"<ListBucketResult>{''.join(rows[:PAGE] + more)}</ListBucketResult>"

    def age(self) -> None:
        """All objects are two hours older."""
        self.store.ahead_s += 7200

    def judge(self) -> None:
        """All is judged already."""


def _names(asked: Request) -> list[str]:
    """What a request asks for: an object, a folder, or objects to delete; each as FOLDER/NAME."""
    path = asked.path.strip("/").partition("/")[2]
    deleted = re.findall("<Key>(.*?)</Key>", asked.get_data(as_text=True))
    return [path] if path else [*map(unescape, deleted)] or [asked.args.get("prefix", "")]


def refused(status: int) -> Response:
    """What is said of a request that was not carried out."""
    return Response(f"<Error><Code>{ERRORS.get(status)}</Code></Error>", status)
