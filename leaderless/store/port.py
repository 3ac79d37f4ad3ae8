"""The store port: what a log needs of a place that keeps objects.

An object has a key and a value of bytes. Every write gives it a new *version*, an opaque text of the store.
Laws, which `tests/contract/test_stores.py` holds for every implementation: operations on one key are
linearizable, also across processes; of racing conditional writes at most one succeeds; a listing shows every
write that ended before it began, in the order of the keys' UTF-8 bytes. It may leave out objects without
bytes: consoles make such marks of folders.

A version need not be new when the content is not: many object stores derive the ETag from the content. So an
object that is compared and set must never hold one value twice (`leaderless.store.registers`).

Errors say what may have happened. `Conflict` and `Refused`: nothing was changed. `OutcomeUnknown`: it may have
happened, or may still happen. An answer that makes no sense is no answer, so it is `OutcomeUnknown`, too. An
implementation never tries a conditional write again by itself: after a success whose answer was lost, the
second try would look like a conflict.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

Version = str
PAGE = 1000  # keys in one listing, and in one deletion, as object stores allow


class Found(NamedTuple):
    """An object's value and version, and when it was written (see `Listed`)."""

    value: bytes
    version: Version
    modified: float | None = None


class Listed(NamedTuple):
    """An object in a listing.

    `size`: in bytes, None where the store does not say.
    `modified`: when it was written last, in seconds since 1970 by the clock of the store, None where the store
    does not say.
    """

    key: str
    size: int | None
    modified: float | None


class StoreError(Exception):
    """A store did not do what it was asked; the text says why and what to do."""


class Conflict(StoreError):
    """The object has another version, or exists already, or is missing. Nothing was changed."""


class Refused(StoreError):
    """The store does not do this, and would not if it were asked again. Nothing was changed."""


class OutcomeUnknown(StoreError):
    """No answer, or one that leaves it open: it may have happened, or may still happen."""


class Store(Protocol):
    """A place for objects. Every method may raise `Refused` and `OutcomeUnknown`.

    `url` names it without secrets. `value_bytes_max`: of one object.
    """

    @property
    def url(self) -> str: ...

    @property
    def value_bytes_max(self) -> int: ...

    async def read(self, key: str) -> Found | None:
        """The newest value; None when there is no such object."""
        ...

    async def read_again(self, key: str, known: Found) -> Found | None:
        """As `read`; `known` itself, without its value being sent, if the object still has that version."""
        ...

    async def write(self, key: str, value: bytes) -> Version:
        """Write, whatever is there; returns the new version."""
        ...

    async def create(self, key: str, value: bytes) -> Version:
        """Write what does not exist yet. Raises `Conflict` when it exists."""
        ...

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """Write if the object still has `version`. Raises `Conflict` when it has not."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete up to `PAGE` objects; those that do not exist are passed over."""
        ...

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """The first `limit` (up to `PAGE`) objects whose key begins with `folder/` and comes after `after`.

        The folder "" has all objects.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections and files. Operations under way may end as `OutcomeUnknown`."""
        ...


def require_page(page: list[Listed], folder: str, after: str) -> list[Listed]:
    """A page of a listing. Raises `OutcomeUnknown` when it is none of this folder after this key, in order."""
    keys = [each.key for each in page]
    within = f"{folder}/" if folder else ""
    for before, key in zip([after, *keys], keys, strict=False):
        if not (key.startswith(within) and before.encode() < key.encode()):
            raise OutcomeUnknown(
                f"{key!r} is no answer to a listing of {folder!r} after {before!r}"
            )
    return page


async def replaced(store: Store, key: str, value: bytes, version: Version | None) -> Version | None:
    """Write an object if it still has `version`, None: if it is missing; returns the new version.

    None: it was changed before.
    """
    try:
        if version is None:
            return await store.create(key, value)
        return await store.compare_and_set(key, value, version)
    except Conflict:
        return None


async def all_of(store: Store, folder: str = "") -> AsyncIterator[Listed]:
    """Every object of a folder, in order, page by page."""
    after = ""
    while page := await store.list_objects(folder, after):
        for listed in page:
            yield listed
        after = page[-1].key
