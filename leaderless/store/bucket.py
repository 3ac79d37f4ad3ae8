"""Files in a bucket: large objects that are written once and read in ranges; and what errors of obstore mean.

S3 answers 409 when a conditional write meets another one under way, and obstore calls that "exists already":
here it is `OutcomeUnknown`, as every 5xx, 429, and an answer that is lost or makes no sense. Azure answers 409,
too, when a creation meets what exists; the code in the answer tells the two apart.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

import obstore
from obstore import exceptions

from leaderless.store.files import WHOLE_BYTES_MAX, Gone, Source, require_length
from leaderless.store.options import without_secrets
from leaderless.store.port import Conflict, Listed, OutcomeUnknown, Refused, StoreError

T = TypeVar("T")
CALLS = 64  # requests under way at once
_STATUS = re.compile(r"status code: (\d{3})")
_MAKE = {  # commands that make a bucket
    "s3": "aws s3 mb s3://{}",
    "gs": "gcloud storage buckets create gs://{}",
    "az": "az storage container create --name {}",
}
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_REFUSED = (400, 401, 403, 404, 405, 411, 413, 414, 501)
# Of one key in a deletion of many, whose answer has the status 200.
_DENIED = "(code: AccessDenied)"
_TOO_SLOW = "RequestTimeout"  # S3's code for a request that came in too slowly; its status is 400
# Without keys in the environment obstore asks the machine for those of its role, which only a cloud's has.
_NO_KEYS = re.compile(r"//169\.254\.169\.254/|Missing (Secret)?Access|Account must be specified")
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (~/.aws is not read)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, the path of a key file",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# What the system said of a connection that was not made, in obstore's dump of its own structures.
_CAUSE = re.compile(r'kind: Connect,.*(?:message|error): "(?:[^"]*: )?([^"]+)"', re.DOTALL)
_NO_PATH = "Could not parse path"  # obstore takes no such key, and asks nothing


class BucketFiles:
    """Files in a bucket, see `leaderless.store.files.Files`; each request waits for its answer."""

    def __init__(self, url: str, store: "obstore.store.ObjectStore") -> None:
        self._url = url
        self._store = store

    def put(self, path: str, source: Source) -> None:
        """See `Files`. A large one goes in parts, and appears when all are there."""
        size = len(source) if isinstance(source, bytes) else os.fstat(source.fileno()).st_size
        large = size > WHOLE_BYTES_MAX
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
        self._call(partial(delete_objects, self._url, self._store, paths))

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
            require_bucket(self._url, error)
            raise Gone(f"{self._url}: {first_line(error)}") from error
        except BaseException as error:
            if not is_of_obstore(error):
                raise
            raise classified(self._url, error) from error


def delete_objects(url: str, store: "obstore.store.ObjectStore", keys: Sequence[str]) -> None:
    """Delete objects; those that do not exist are passed over."""

    def delete(key: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(store, key)

    try:
        obstore.delete(store, [*keys])
    except FileNotFoundError as error:  # Azure stops at the first that is missing
        require_bucket(url, error)
        with ThreadPoolExecutor(CALLS) as threads:
            for _ in threads.map(delete, keys):
                pass  # it raises what a deletion has raised


def listed(meta: "obstore.ObjectMeta") -> Listed:
    """An object of a listing of obstore."""
    return Listed(meta["path"], meta["size"], modified_in(meta))


def modified_in(meta: "obstore.ObjectMeta") -> float | None:
    """When an object was written; obstore says 1970 where an answer says nothing."""
    return float(meta["last_modified"].timestamp()) or None


def is_of_obstore(error: BaseException) -> bool:
    """Whether an error came from obstore, or is a panic in it, which is no `Exception`."""
    known = isinstance(error, exceptions.BaseError | ValueError)
    return known or type(error).__name__ == "PanicException"


def classified(url: str, error: BaseException) -> StoreError:
    """What an error of obstore means: `Conflict`, `Refused` or `OutcomeUnknown`.

    A `ValueError` is a refusal only where obstore says that it has asked nothing.
    """
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else 0
    text = f"{url}: {first_line(error)}"
    if _NO_BUCKET.search(str(error)):
        return Refused(_no_bucket(url))
    if status == 412 or (isinstance(error, exceptions.PreconditionError) and status != 409):
        return Conflict(text)
    exists = isinstance(error, exceptions.AlreadyExistsError)
    if exists and (status != 409 or "BlobAlreadyExists" in str(error)):
        return Conflict(text)
    if status in (401, 403) or _DENIED in str(error):
        return Refused(
            f"{text}. Check the access key, its secret, and what it may do in the bucket"
        )
    unasked = isinstance(error, UnicodeEncodeError) or _NO_PATH in str(error)
    # A listing met somebody's key with an empty segment.
    is_listed = isinstance(error, exceptions.InvalidPathError)
    if unasked or is_listed or (status in _REFUSED and _TOO_SLOW not in str(error)):
        return Refused(text)
    return OutcomeUnknown(text)


def cause_of(error: BaseException) -> str:
    """Why a connection was not made, such as "Connection refused"; else an empty text."""
    return "".join(_CAUSE.findall(str(error)))


def missing_keys(url: str, error: BaseException) -> str:
    """Which variables to set, if an error of obstore says that it found no credentials; else an empty text."""
    if not _NO_KEYS.search(str(error)):
        return ""
    scheme = url.partition(":")[0]
    return f"{url}: no credentials were found. Set {_KEYS[scheme]}, or run on a machine whose role has them"


def require_bucket(url: str, error: Exception) -> None:
    """Raise `Refused` if an error says that the whole bucket is missing."""
    if _NO_BUCKET.search(str(error)):
        raise Refused(_no_bucket(url)) from error


def _no_bucket(url: str) -> str:
    scheme, _, name = url.partition("://")
    how = _MAKE[scheme].format(name)
    return (
        f"{url}: the bucket does not exist; make it first (`{how}`, at the same endpoint), "
        "or correct its name"
    )


def first_line(error: BaseException) -> str:
    """What an error says, without secrets and without obstore's dump of its own structures."""
    return " ".join(without_secrets(str(error)).partition("Debug source")[0].split())[:400]
