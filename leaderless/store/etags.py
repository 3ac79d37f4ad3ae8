"""How ETags stand for versions in a bucket, and how a server wants them back.

A server gives the ETag in quotes in every answer, and so it must be in `If-Match`. Ceph's gateway (16) answers
412 always to that, and understands it without quotes. So before the first success a 412 may not be a conflict:
an object of its own, which nobody else changes, then tells which way works (`learned`).

An ETag may be made of the content alone; see `leaderless.store.registers`.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from leaderless.store.port import Conflict, Found, OutcomeUnknown, Refused, Version

if TYPE_CHECKING:  # these are no more than types
    from obstore import GetOptions, PutMode, UpdateVersion

ATTEMPTS = 4  # to get a clear answer about how ETags are sent


class Quotes(NamedTuple):
    """How a server wants an ETag in `If-Match`: as it gave it, in quotes, or bare.

    `sure`: a conditional write has succeeded so.
    """

    bare: bool = False
    sure: bool = False

    def form(self, etag: str) -> str:
        """The ETag as it is sent."""
        return etag.strip('"') if self.bare else etag


def condition(version: Version, quotes: Quotes) -> "UpdateVersion":
    """The mode of obstore for a write that needs this version."""
    etag, _, generation = version.partition("\n")
    needed: UpdateVersion = {"e_tag": quotes.form(etag)}
    return {**needed, "version": generation} if generation else needed


def unless(known: Found | None) -> "GetOptions":
    """The options of obstore for a read that needs no answer if the object is still `known`.

    The ETag goes as it came. A server that understands another form alone sends the object, as for any read.
    """
    return {"if_none_match": known.version.partition("\n")[0]} if known else {}


def version_of(meta: Mapping[str, object]) -> Version:
    """The ETag; on Google's storage, which compares generations, that too.

    Raises `OutcomeUnknown` for an answer without one: a write took effect, but nobody can say as what.
    """
    etag, generation = meta.get("e_tag"), meta.get("version")
    if not isinstance(etag, str) or not etag.strip('"'):
        raise OutcomeUnknown("an answer has no ETag, without which nothing can be compared and set")
    return f"{etag}\n{generation}" if generation else etag


async def learned(
    url: str, put: Callable[[str, bytes, "PutMode"], Awaitable[Version]], key: str
) -> Quotes:
    """How a server wants ETags, found out with an object `key` that nobody else changes.

    `put` writes an object of the bucket `url`; its errors are those of the store port. Raises `Refused` when
    conditional updates never succeed there, or always; `OutcomeUnknown` when no answer was clear.
    """

    async def takes(quotes: Quotes, writes: int) -> bool:
        """Whether an update of the version that the first of some writes gave succeeds."""
        for _ in range(ATTEMPTS):
            with suppress(OutcomeUnknown):
                values = (secrets.token_bytes(8) for _ in range(writes))
                first, *_ = [await put(key, value, "overwrite") for value in values]
                try:
                    await put(key, secrets.token_bytes(8), condition(first, quotes))
                except Conflict:
                    return False
                return True
        raise OutcomeUnknown(f"{url} gave no clear answer to conditional updates")

    for quotes in (Quotes(bare=False, sure=True), Quotes(bare=True, sure=True)):
        if await takes(quotes, 1):
            if await takes(quotes, 2):
                raise Refused(lacks(url, "overwrites a newer version: it ignores If-Match"))
            return quotes
    raise Refused(lacks(url, "never lets a conditional update through"))


def lacks(url: str, what: str) -> str:
    """Say which law a store breaks."""
    return f"{url} {what}. A log needs conditional writes; use another store"
