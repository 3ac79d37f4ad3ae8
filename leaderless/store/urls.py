"""Which store a URL names."""

import os
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import SplitResult, unquote, urlsplit

from leaderless.store.clouds import GOOGLE, Paced
from leaderless.store.options import URLS, StoreOptions, install, without_secrets
from leaderless.store.port import Refused, Store
from leaderless.store.wrapped import Within

__all__ = ["URLS", "open_store"]

# Variables that name an endpoint, as the tools of each store look for one.
ENDPOINTS: dict[str, tuple[str, ...]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
# Variables that obstore sends in headers, where a line break ends in a panic of its own.
SENT: dict[str, tuple[str, ...]] = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ),
    "az": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ALIKE = 0.5  # `difflib` gives this to schemes that differ in one of two letters


def open_store(url: str, options: StoreOptions | None = None) -> Store:
    """The store that `url` names (see `URLS`), reached by `options`.

    An endpoint that `options` do not have comes from the environment (`ENDPOINTS`).

    Raises `Refused`: the URL names none, its package is not installed, or it cannot be opened.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _OPENERS:
        raise Refused(_no_store(without_secrets(url)))
    if _CONTROL.search(url) or set(url) & set("?#"):
        raise Refused(
            f"{without_secrets(url)!r}: the URL of a store has no '?', no '#' and no control character; "
            "in a prefix write %3F and %23"
        )
    known = options or StoreOptions()
    if not known.endpoint:
        named = (os.environ.get(name) for name in ENDPOINTS.get(scheme, ()))
        known = replace(known, endpoint=next(filter(None, named), None))
    sent = asdict(known) | {name: os.environ.get(name) for name in SENT.get(scheme, ())}
    for name, value in sent.items():
        if isinstance(value, str) and _CONTROL.search(value):
            raise Refused(f"{name} has a control character, such as a line break at its end")
    if known.endpoint:
        _require_endpoint(known.endpoint)
    return _OPENERS[scheme](url, known)


def _no_store(url: str) -> str:
    """That a URL names no store, which one may have been meant, and which there are."""
    scheme, colon, rest = url.partition(":")
    if colon:
        meant = [f"{near}:{rest}" for near in get_close_matches(scheme, _OPENERS, 1, ALIKE)]
    else:
        meant = [f"sqlite:///{url}"] if url else []
    hint = f"Did you mean {meant[0]}? " if meant else ""
    known = ", ".join(line.split()[0] for line in URLS.splitlines())
    return f"{url!r} names no store. {hint}These do: {known}"


def _require_endpoint(url: str) -> None:
    login, _, host = url.rpartition("@")
    if login:  # it is not shown, whatever form it has
        raise Refused(
            f"the endpoint at {host!r} must have no user and no password: keys stand in the environment, or "
            "in arguments of their own"
        )
    if not url.startswith(("http://", "https://")):
        raise Refused(f"the endpoint must begin with http:// or https://, not {url!r}")
    if not _split(url).hostname or " " in url:
        raise Refused(f"the endpoint {url!r} names no host")


def _split(url: str) -> SplitResult:
    """The parts of a URL. Raises `Refused` if it has none, or no number for a port."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise Refused(
            f"{without_secrets(url)!r} is no URL: its host or port makes no sense"
        ) from None
    return parts


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
    parts = _split(url)
    if not parts.netloc or set(parts.netloc) & set("@ "):
        raise Refused(
            f"{without_secrets(url)!r}: write {parts.scheme}://BUCKET/PREFIX, without keys"
        )
    module = _imported("leaderless.store.objects", "obstore", "s3")
    prefix = _prefix(parts.path)
    bucket = module.open_bucket(parts.scheme, parts.netloc, options, prefix)
    return _within(Paced(bucket, GOOGLE.every_s) if parts.scheme == "gs" else bucket, prefix)


def _etcd(url: str, options: StoreOptions) -> Store:
    parts = _split(url)
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
        raise Refused(f"this store needs the package {package}: {install(extra)}") from None


_OPENERS: dict[str, Callable[[str, StoreOptions], Store]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "s3": _bucket,
    "gs": _bucket,
    "az": _bucket,
    "etcd": _etcd,
}
