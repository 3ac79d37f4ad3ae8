"""Which store a URL names."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

from leaderless.store.options import StoreOptions
from leaderless.store.port import Refused, Store
from leaderless.store.wrapped import Within

__all__ = ["URLS", "open_store"]

URLS = """\
memory:NAME                 in this process, gone with it
sqlite:///FILE              one file, many processes of one machine (sqlite:////FILE: from the root)
s3://BUCKET/PREFIX          S3, or what speaks like it at an endpoint
gs://BUCKET/PREFIX          Google Cloud Storage
az://CONTAINER/PREFIX       Azure Blob Storage
etcd://HOST:PORT/PREFIX     etcd"""


def open_store(url: str, options: StoreOptions | None = None) -> Store:
    """The store that `url` names (see `URLS`), reached by `options`.

    Raises `Refused`: the URL names none, its package is not installed, or it cannot be opened. A store that is
    reached over a network is asked nothing yet.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _OPENERS:
        raise Refused(f"{without_secrets(url)!r} names no store; these do:\n{URLS}")
    known = options or StoreOptions()
    if known.endpoint and not known.endpoint.startswith(("http://", "https://")):
        shown = without_secrets(known.endpoint)
        raise Refused(f"the endpoint must begin with http:// or https://, not {shown!r}")
    return _OPENERS[scheme](url, known)


def without_secrets(url: str) -> str:
    """A URL without the user and the password in it."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _memory(url: str, _options: StoreOptions) -> Store:
    from leaderless.store.memory import MemoryStore

    return MemoryStore.named(url.partition(":")[2])


def _sqlite(url: str, _options: StoreOptions) -> Store:
    from leaderless.store.sqlite import SqliteStore

    path = url.removeprefix("sqlite:///")
    if path in (url, ""):
        raise Refused(
            f"{url!r} names no file: write sqlite:///FILE, or sqlite:////FILE from the root"
        )
    return SqliteStore(Path(path))


def _bucket(url: str, options: StoreOptions) -> Store:
    parts = urlsplit(url)
    if not parts.netloc or "@" in parts.netloc:
        raise Refused(
            f"{without_secrets(url)!r}: write {parts.scheme}://BUCKET/PREFIX, without keys"
        )
    module = _imported("leaderless.store.objects", "obstore", "s3")
    prefix = _prefix(parts.path)
    return _within(module.open_bucket(parts.scheme, parts.netloc, options, prefix), prefix)


def _etcd(url: str, options: StoreOptions) -> Store:
    parts = urlsplit(url)
    if not parts.hostname:
        raise Refused(f"{without_secrets(url)!r}: write etcd://HOST:PORT/PREFIX")
    module = _imported("leaderless.store.etcd", "httpx", "etcd")
    return _within(module.EtcdStore(parts, options), _prefix(parts.path))


def _prefix(path: str) -> str:
    prefix = unquote(path).strip("/")
    if any(segment in ("", ".", "..") for segment in prefix.split("/") if prefix):
        raise Refused(f"{path!r} is no prefix: a segment of it is empty, '.' or '..'")
    return prefix


def _within(store: Store, prefix: str) -> Store:
    return Within(store, prefix) if prefix else store


def _imported(module: str, package: str, extra: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise Refused(
            f"this store needs the package {package}: pip install 'leaderless[{extra}]'"
        ) from None


_OPENERS: dict[str, Callable[[str, StoreOptions], Store]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "s3": _bucket,
    "gs": _bucket,
    "az": _bucket,
    "etcd": _etcd,
}
