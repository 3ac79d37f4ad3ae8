"""Objects on object storage: S3 and what speaks like it, Google Cloud Storage, Azure Blob Storage.

It needs conditional writes (`If-Match` with an ETag, `If-None-Match: *`) and strong consistency, which all
three have; `leaderless init` probes both. The library obstore makes the requests; its own retries are off.

What servers do beside the standard has a place of its own: errors in `bucket`, ETags in `etags`.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from leaderless.store.bucket import (
    CALLS,
    BucketFiles,
    cause_of,
    classified,
    delete_objects,
    first_line,
    is_of_obstore,
    listed,
    missing_keys,
    modified_in,
    require_bucket,
)
from leaderless.store.etags import Quotes, condition, learned, unless, version_of
from leaderless.store.options import Reach, StoreOptions
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    StoreError,
    Version,
    require_page,
)
from leaderless.store.probe import PROBES

T = TypeVar("T")
# What obstore calls our options.
S3 = {
    "endpoint": "endpoint",
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "region": "region",
}
AZURE = {"endpoint": "endpoint", "account_name": "access_key", "account_key": "secret_key"}


def open_bucket(scheme: str, bucket: str, options: StoreOptions, prefix: str = "") -> "ObjectStore":
    """The store in a bucket (on Azure: a container). `scheme`: "s3", "gs" or "az".

    `prefix`: where its caller keeps objects. Keys have it already; what the store tries stands below it, too.

    Raises `Refused` when the options make no sense; whether the bucket exists, the first request tells.
    """
    client: obstore.store.ClientConfig = {
        "timeout": timedelta(seconds=options.timeout_s),
        "connect_timeout": timedelta(seconds=options.timeout_s),
        "allow_http": (options.endpoint or "").startswith("http:"),
    }
    common: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    try:
        match scheme:
            case "s3":
                made: obstore.store.ObjectStore = S3Store(bucket, **_given(options, **S3), **common)
            case "gs":
                made = GCSStore(bucket, **common)
            case _:
                made = AzureStore(bucket, **_given(options, **AZURE), **common)
    except exceptions.BaseError as error:
        url = f"{scheme}://{bucket}"
        raise Refused(missing_keys(url, error) or f"{url}: {first_line(error)}") from error
    return ObjectStore(f"{scheme}://{bucket}", made, prefix)


def _given(options: StoreOptions, **names: str) -> dict[str, Any]:
    """Options under the names that obstore gives them, without those that are not set."""
    found = {name: getattr(options, ours) for name, ours in names.items()}
    return {name: value for name, value in found.items() if value is not None}


class ObjectStore:
    """Objects in a bucket, through a store of obstore. Calls run in threads, on asyncio and trio alike."""

    def __init__(self, url: str, store: "obstore.store.ObjectStore", prefix: str) -> None:
        self.url = url
        self.value_bytes_max = 1 << 30
        self.quotes: Quotes = Quotes()
        self.files: BucketFiles = BucketFiles(url, store)
        self._learning = anyio.Lock()
        self._probes = f"{prefix}/{PROBES}".lstrip("/")
        self._store = store
        self._threads = anyio.CapacityLimiter(CALLS)
        self._reach = Reach()

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        return await self.read_again(key, None)

    async def read_again(self, key: str, known: Found | None) -> Found | None:
        """See `leaderless.store.port.Store`; None: nothing is known."""

        def get() -> Found:
            try:
                answer = obstore.get(self._store, key, options=unless(known))
            except exceptions.NotModifiedError:
                if known is None:  # an answer to another question
                    raise
                return known
            version, written_at = version_of(answer.meta), modified_in(answer.meta)
            return Found(bytes(answer.bytes()), version, written_at)

        try:
            return await self._run(get)
        except FileNotFoundError as error:
            require_bucket(self.url, error)
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
            new = await self._put(key, value, condition(version, quotes))
        except Conflict:
            if quotes.sure or (await self._learned()).bare == quotes.bare:
                raise
            return await self._put(key, value, condition(version, self.quotes))
        self.quotes = quotes._replace(sure=True)
        return new

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        if keys:
            await self._run(partial(delete_objects, self.url, self._store, keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""

        def page() -> list[Listed]:
            found: list[Listed] = []
            pages = obstore.list(
                self._store, folder or None, offset=after or None, chunk_size=limit
            )
            for metas in pages:
                # No log writes an object without bytes. Consoles do, as marks of folders, and obstore strips
                # the slash at the end of a mark's key: it would stand out of its order.
                found += [listed(meta) for meta in metas if meta["size"]]
                if len(found) >= limit:
                    break
            return require_page(found[:limit], folder, after)

        try:
            return await self._run(page)
        except FileNotFoundError as error:
            require_bucket(self.url, error)
            return []

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""

    async def _learned(self) -> Quotes:
        """How ETags are sent; the first call finds out, with an object that no reader of a log lists.

        Raises `Refused` when conditional updates never succeed there, or always.
        """
        async with self._learning:
            if not self.quotes.sure:
                tried = f"{self._probes}/{secrets.token_hex(8)}"
                self.quotes = await learned(self.url, self._put, tried)
                with suppress(StoreError):  # such as a user who may not delete
                    await self.delete([tried])
        return self.quotes

    async def _put(self, key: str, value: bytes, mode: "obstore.PutMode") -> Version:
        def put() -> Version:
            return version_of(obstore.put(self._store, key, value, mode=mode, use_multipart=False))

        try:
            return await self._run(put, conditional=mode != "overwrite")
        except FileNotFoundError as error:
            require_bucket(self.url, error)
            if isinstance(mode, str):  # it needs nothing to be there
                raise Refused(
                    f"{self.url}: {first_line(error)}. A bucket has no such answer to this: check the "
                    "endpoint, and whether it serves this bucket"
                ) from error
            raise Conflict(f"{key} is missing") from error

    async def _run(self, call: Callable[[], T], *, conditional: bool = False) -> T:
        try:
            answer = await anyio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=self._threads
            )
        except BaseException as error:
            if not is_of_obstore(error):
                raise
            if text := missing_keys(self.url, error):
                # The store was not asked. A role that had them once may have them soon again.
                raise (OutcomeUnknown if self._reach.reached else Refused)(text) from error
            if cause := cause_of(error):
                raise self._reach.failed(cause, f"{self.url}: {first_line(error)}") from error
            meant = classified(self.url, error)
            if isinstance(meant, Conflict) and not conditional:
                meant = OutcomeUnknown(str(meant))  # an answer to another question
            raise meant from error
        self._reach.reached = True
        return answer
