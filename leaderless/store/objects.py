"""Objects on object storage: S3 and what speaks like it, Google Cloud Storage, Azure Blob Storage.

It needs conditional writes (`If-Match` with an ETag, `If-None-Match: *`) and strong consistency, which all
three have; `leaderless init` probes both. The library obstore makes the requests; its own retries are off.

What servers do that is not in the standard:

- S3 answers 409 when a conditional write meets another one under way, and obstore calls that "exists
  already": here it is `OutcomeUnknown`, as every 5xx, 429, and lost answer.
- The ETag is in quotes in every answer, and so it must be in `If-Match`. Ceph's gateway (16) answers 412
  always to that, and understands it without quotes. So before the first success a 412 may not be a conflict:
  an object of its own, which nobody else changes, then tells which way works (`_learn`).
- Azure answers 409, too, when a creation meets what exists; the code in the answer tells the two apart.
- An ETag may be made of the content alone; see `leaderless.store.registers`.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread
import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from leaderless.store.files import WHOLE_BYTES_MAX, Gone
from leaderless.store.options import StoreOptions
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    StoreError,
    Version,
)

T = TypeVar("T")
CALLS = 64  # requests under way at once
ATTEMPTS = 4  # to get a clear answer about how ETags are sent

_STATUS = re.compile(r"status code: (\d{3})")
NO_BUCKET = "the bucket does not exist; make it first, or correct its name"
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_REFUSED = (400, 401, 403, 404, 405, 411, 413, 414, 501)


def open_bucket(scheme: str, bucket: str, options: StoreOptions) -> "ObjectStore":
    """The store in a bucket (on Azure: a container). `scheme`: "s3", "gs" or "az".

    Raises `Refused` when the options make no sense; whether the bucket exists, the first request tells.
    """
    client: dict[str, Any] = {
        "timeout": timedelta(seconds=options.timeout_s),
        "connect_timeout": timedelta(seconds=options.timeout_s),
    }
    if options.endpoint and options.endpoint.startswith("http:"):
        client["allow_http"] = True
    common: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    try:
        match scheme:
            case "s3":
                made: Any = S3Store(bucket, **_s3(options), **common)
            case "gs":
                made = GCSStore(bucket, **common)
            case _:
                made = AzureStore(bucket, **_azure(options), **common)
    except exceptions.BaseError as error:
        raise Refused(f"{scheme}://{bucket}: {_first_line(error)}") from error
    return ObjectStore(f"{scheme}://{bucket}", made)


def _s3(options: StoreOptions) -> dict[str, Any]:
    given = {
        "endpoint": options.endpoint,
        "access_key_id": options.access_key,
        "secret_access_key": options.secret_key,
        "region": options.region,
    }
    return {name: value for name, value in given.items() if value is not None}


def _azure(options: StoreOptions) -> dict[str, Any]:
    given = {
        "endpoint": options.endpoint,
        "account_name": options.access_key,
        "account_key": options.secret_key,
    }
    return {name: value for name, value in given.items() if value is not None}


class Quotes(NamedTuple):
    """How a server wants an ETag in `If-Match`: as it gave it, in quotes, or bare.

    `sure`: a conditional write has succeeded so.
    """

    bare: bool = False
    sure: bool = False

    def form(self, etag: str) -> str:
        """The ETag as it is sent."""
        return etag.strip('"') if self.bare else etag


class ObjectStore:
    """Objects in a bucket, through a store of obstore. Calls run in threads, on asyncio and trio alike."""

    def __init__(self, url: str, store: Any) -> None:
        self.url = url
        self.value_bytes_max = 1 << 30
        self.quotes = Quotes()
        self.files = BucketFiles(url, store)
        self._learning = anyio.Lock()
        self._store = store
        self._threads = anyio.CapacityLimiter(CALLS)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""

        def get() -> Found:
            answer = obstore.get(self._store, key)
            written_at = answer.meta["last_modified"].timestamp()
            return Found(bytes(answer.bytes()), _version(answer.meta), written_at)

        try:
            return await self._run(get)
        except FileNotFoundError as error:
            _require_bucket(error)
            return None

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put(key, value, "overwrite")

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put(key, value, "create")

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        quotes = self.quotes
        try:
            new = await self._put(key, value, _condition(version, quotes))
        except Conflict:
            if quotes.sure or (await self._learned(key)).bare == quotes.bare:
                raise
            return await self._put(key, value, _condition(version, self.quotes))
        self.quotes = quotes._replace(sure=True)
        return new

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        if keys:
            await self._run(partial(_delete, self._store, keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""

        def page() -> list[Listed]:
            listed: list[Listed] = []
            pages = obstore.list(
                self._store, folder or None, offset=after or None, chunk_size=limit
            )
            for metas in pages:
                listed += [_listed(meta) for meta in metas]
                if len(listed) >= limit:
                    break
            return listed[:limit]

        try:
            return await self._run(page)
        except FileNotFoundError as error:
            _require_bucket(error)
            return []

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""

    async def _learned(self, key: str) -> Quotes:
        """How ETags are sent; the first call finds out, with an object beside `key`.

        Raises `Refused` when conditional updates never succeed there, or always.
        """
        async with self._learning:
            if not self.quotes.sure:
                beside = f"{key}.probe-{secrets.token_hex(8)}"
                self.quotes = await self._learn(beside)
                with suppress(OutcomeUnknown):
                    await self.delete([beside])
        return self.quotes

    async def _learn(self, key: str) -> Quotes:
        for quotes in (Quotes(bare=False, sure=True), Quotes(bare=True, sure=True)):
            if await self._succeeds(key, quotes):
                await self._require_conflict(key, quotes)
                return quotes
        raise Refused(_lacks(self.url, "never lets a conditional update through"))

    async def _succeeds(self, key: str, quotes: Quotes) -> bool:
        """Whether an update of the newest version does, after as many tries as a clear answer takes."""
        for _ in range(ATTEMPTS):
            with suppress(OutcomeUnknown):
                version = await self.write(key, secrets.token_bytes(8))
                try:
                    await self._put(key, secrets.token_bytes(8), _condition(version, quotes))
                except Conflict:
                    return False
                return True
        raise OutcomeUnknown(f"{self.url} gave no clear answer to conditional updates")

    async def _require_conflict(self, key: str, quotes: Quotes) -> None:
        """Raise `Refused` if an update of an old version succeeds."""
        for _ in range(ATTEMPTS):
            with suppress(OutcomeUnknown):
                stale = await self.write(key, secrets.token_bytes(8))
                await self.write(key, secrets.token_bytes(8))
                break
        else:
            raise OutcomeUnknown(f"{self.url} gave no clear answer to writes")
        for _ in range(ATTEMPTS):
            try:
                await self._put(key, b"", _condition(stale, quotes))
            except Conflict:
                return
            except OutcomeUnknown:
                continue
            raise Refused(_lacks(self.url, "overwrites a newer version: it ignores If-Match"))
        raise OutcomeUnknown(f"{self.url} gave no clear answer to conditional updates")

    async def _put(self, key: str, value: bytes, mode: Any) -> Version:
        def put() -> Version:
            return _version(obstore.put(self._store, key, value, mode=mode, use_multipart=False))

        try:
            return await self._run(put, conditional=mode != "overwrite")
        except FileNotFoundError as error:
            _require_bucket(error)
            raise Conflict(f"{key} is missing") from error

    async def _run(self, call: Callable[[], T], *, conditional: bool = False) -> T:
        try:
            return await anyio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=self._threads
            )
        except (exceptions.BaseError, ValueError) as error:
            meant = classified(self.url, error)
            if isinstance(meant, Conflict) and not conditional:
                meant = OutcomeUnknown(str(meant))  # an answer to another question
            raise meant from error


class BucketFiles:
    """Files in a bucket, see `leaderless.store.files.Files`; each request waits for its answer."""

    def __init__(self, url: str, store: Any) -> None:
        self._url = url
        self._store = store

    def put(self, path: str, source: Path | bytes) -> None:
        """See `Files`. A large one goes in parts, and appears when all are there."""
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        how: dict[str, Any] = {"mode": "create", "use_multipart": False}
        if size > WHOLE_BYTES_MAX:
            how = {"use_multipart": True}
        with suppress(Conflict):
            self._call(lambda: obstore.put(self._store, path, source, **how))

    def size(self, path: str) -> int:
        """See `Files`."""
        return int(self._call(lambda: obstore.head(self._store, path))["size"])

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        content = self._call(
            lambda: obstore.get_range(self._store, path, start=start, length=length)
        )
        return bytes(content)

    def delete(self, paths: Sequence[str]) -> None:
        """See `Files`."""
        for first in range(0, len(paths), PAGE):
            some = [*paths[first : first + PAGE]]
            self._call(partial(_delete, self._store, some))

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `Files`."""
        pages = iter(self._call(lambda: obstore.list(self._store, folder)))
        while page := self._call(lambda: next(pages, None)):
            yield from map(_listed, page)

    def location(self, path: str) -> str:
        """See `Files`."""
        return f"{self._url}/{path}"

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except FileNotFoundError as error:
            _require_bucket(error)
            raise Gone(f"{self._url}: {_first_line(error)}") from error
        except (exceptions.BaseError, ValueError) as error:
            raise classified(self._url, error) from error


def _delete(store: Any, keys: Sequence[str]) -> None:
    """Delete objects; those that do not exist are passed over."""

    def delete(key: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(store, key)

    try:
        obstore.delete(store, [*keys])
    except FileNotFoundError as error:  # Azure stops at the first that is missing
        _require_bucket(error)
        with ThreadPoolExecutor(CALLS) as threads:
            for _ in threads.map(delete, keys):
                pass  # it raises what a deletion has raised


def _condition(version: Version, quotes: Quotes) -> dict[str, str]:
    etag, _, generation = version.partition("\n")
    condition = {"e_tag": quotes.form(etag)}
    return condition | {"version": generation} if generation else condition


def _version(meta: Any) -> Version:
    """The ETag; on Google's storage, which compares generations, that too."""
    etag, generation = meta.get("e_tag"), meta.get("version")
    if not etag:
        raise ValueError("the store gives no ETags, so it cannot compare and set")
    return f"{etag}\n{generation}" if generation else str(etag)


def _listed(meta: Any) -> Listed:
    return Listed(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _require_bucket(error: Exception) -> None:
    if _NO_BUCKET.search(str(error)):
        raise Refused(NO_BUCKET) from error


def _lacks(url: str, what: str) -> str:
    return f"{url} {what}. A log needs conditional writes; use another store"


def classified(url: str, error: Exception) -> StoreError:
    """What an error of obstore means: `Conflict`, `Refused` or `OutcomeUnknown`."""
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else 0
    text = f"{url}: {_first_line(error)}"
    if _NO_BUCKET.search(str(error)):
        return Refused(NO_BUCKET)
    if status == 412 or (isinstance(error, exceptions.PreconditionError) and status != 409):
        return Conflict(text)
    exists = isinstance(error, exceptions.AlreadyExistsError)
    if exists and (status != 409 or "BlobAlreadyExists" in str(error)):
        return Conflict(text)
    if status in (401, 403):
        return Refused(
            f"{text}. Check the access key, its secret, and what it may do in the bucket"
        )
    if status in _REFUSED or isinstance(error, ValueError):
        return Refused(text)
    return OutcomeUnknown(text)


def _first_line(error: Exception) -> str:
    """What an error says, without obstore's dump of its own structures."""
    return " ".join(str(error).partition("Debug source")[0].split())[:400]
