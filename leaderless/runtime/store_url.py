"""Where a node keeps the log: Maelstrom's `lin-kv`, or a store that a URL names.

Keys of a store stand in no argument, because every user of a machine can read those of a process. They come
from the environment, under the names that the stores' own tools have.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderless.runtime.settings import LIN_KV
from leaderless.store.options import StoreOptions, without_secrets
from leaderless.store.urls import URLS

OPTIONS = ("endpoint", "region")
_FOR_NODES = "\n".join(line for line in URLS.splitlines() if not line.startswith("memory:"))
STORES = f"{LIN_KV:<27} the service of the bench, by messages (default)\n{_FOR_NODES}"
_IN_ENVIRONMENT = (
    "stands in the environment, not on the command line, which every user of the machine can read: "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ETCDCTL_USER and ETCDCTL_PASSWORD"
)


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A real store for a node: its URL, and how to reach it."""

    url: str
    options: StoreOptions


def store_place_of(url: str, given: Sequence[str], timeout_s: float) -> StorePlace | None:
    """The place that `--store` and each `--store-option` name; None for `lin-kv`.

    `timeout_s`: how long one request may take. Raises `ValueError`, whose text says what to write instead.
    """
    named = _named(given)
    if url == LIN_KV:
        if named:
            raise ValueError("--store-option needs --store")
        return None
    if url.startswith("memory:"):
        raise ValueError(
            "--store memory: nodes are processes, and each would have a store of its own. "
            "Use sqlite:///FILE"
        )
    if without_secrets(url) != url:
        raise ValueError(
            f"--store {without_secrets(url)}: what stands before '@' {_IN_ENVIRONMENT}"
        )
    options = StoreOptions(
        endpoint=named.get("endpoint"), region=named.get("region"), timeout_s=timeout_s
    )
    return StorePlace(url, options)


def _named(given: Sequence[str]) -> dict[str, str]:
    named = {}
    for each in given:
        name, is_given, value = each.partition("=")
        if "key" in name or "user" in name or "password" in name or "secret" in name:
            raise ValueError(f"--store-option {name}: a secret {_IN_ENVIRONMENT}")
        if name not in OPTIONS or not is_given:
            raise ValueError(f"--store-option {each}: write NAME=VALUE, of {', '.join(OPTIONS)}")
        named[name] = value
    return named
