"""Files in a bucket: large objects that are written once and read in ranges."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import obstore

from leaderless.store.bucket_errors import classified, first_line, is_of_obstore, require_bucket
from leaderless.store.files import WHOLE_BYTES_MAX, Gone, Source, require_length
from leaderless.store.port import PAGE, Conflict, Listed

T = TypeVar("T")
CALLS = 64  # requests under way at once


class BucketFiles:
    """Files in a bucket, see `leaderless.store.files.Files`; each request waits for its answer."""

    def __init__(self, url: str, store: "obstore.store.ObjectStore") -> None:
        self._url = url
        self._store = store

    def put(self, path: str, source: Source) -> None:
        """See `Files`. A large one goes in parts, and appears when all are there."""
        large = _size_of(source) > WHOLE_BYTES_MAX
        put = partial(obstore.put, self._store, path, source, use_multipart=large)
        with suppress(Conflict):
            self._call(lambda: put(mode=None if large else "create"))

    def size(self, path: str) -> int:
        """See `Files`."""
        return int(self._call(lambda: obstore.head(self._store, path))["size"])

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        content = self._call(
            lambda: obstore.get_range(self._store, path, start=start, length=length)
        )
        return require_length(bytes(content), length, f"{self._url}/{path}")

    def delete(self, paths: Sequence[str]) -> None:
        """See `Files`."""
        for first in range(0, len(paths), PAGE):
            some = [*paths[first : first + PAGE]]
            self._call(partial(delete_objects, self._store, some))

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `Files`."""
        pages = iter(self._call(lambda: obstore.list(self._store, folder)))
        while page := self._call(lambda: next(pages, None)):
            yield from map(listed, page)

    def location(self, path: str) -> str:
        """See `Files`."""
        return f"{self._url}/{path}"

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except FileNotFoundError as error:
            require_bucket(error)
            raise Gone(f"{self._url}: {first_line(error)}") from error
        except BaseException as error:
            if not is_of_obstore(error):
                raise
            raise classified(self._url, error) from error


def _size_of(source: Source) -> int:
    if isinstance(source, bytes):
        return len(source)
    status = source.stat() if isinstance(source, Path) else os.fstat(source.fileno())
    return status.st_size


def delete_objects(store: "obstore.store.ObjectStore", keys: Sequence[str]) -> None:
    """Delete objects; those that do not exist are passed over."""

    def delete(key: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(store, key)

    try:
        obstore.delete(store, [*keys])
    except FileNotFoundError as error:  # Azure stops at the first that is missing
        require_bucket(error)
        with ThreadPoolExecutor(CALLS) as threads:
            for _ in threads.map(delete, keys):
                pass  # it raises what a deletion has raised


def listed(meta: "obstore.ObjectMeta") -> Listed:
    """An object of a listing of obstore."""
    return Listed(meta["path"], meta["size"], modified_in(meta))


def modified_in(meta: "obstore.ObjectMeta") -> float | None:
    """When an object was written; obstore says 1970 where an answer says nothing."""
    return float(meta["last_modified"].timestamp()) or None
