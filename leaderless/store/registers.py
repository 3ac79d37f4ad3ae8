"""The core's registers on a store: compares of values become compares of versions.

The core says `Cas(key, old, new)` with values; a store compares versions. So this adapter remembers, for each
key, the version of the value that it saw last. If that value is `old`, its version is compared. Otherwise the
object is read first, and compared here.

It needs that no register which is compared and set ever holds one value twice: an object store may derive
the version from the content, and then a late compare-and-set from the first time would succeed the second
time. Why ours never do: `version` in the head counts its changes; `epoch`, `cursor` and the runs in `compacted`
only grow; a claim raises `epoch` when it is taken and `beat` while it is held; a committed offset only rises.
Segments and runs are created, and then at most overwritten by a tombstone, from which nothing is compared.
`ValueTwice` asserts it: a compare-and-set succeeded with a value that the register was seen to hold before the
compare-and-set was sent. What is seen while its answer is under way may be its own effect, and what came after.

An answer that is not clear is `Unknown`, also a refusal: to the core it is always safe to look again.
`trouble` tells people what the store said.
"""

import logging
from collections import OrderedDict, deque
from hashlib import blake2b
from typing import Any, assert_never

import orjson

from leaderless.core.messages import (
    Cas,
    Get,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Put,
    StoreOp,
    Unknown,
)
from leaderless.store.port import Conflict, Found, Refused, Store, StoreError, Version

log = logging.getLogger("leaderless")

KEYS_REMEMBERED = 1024
VALUES_REMEMBERED = 64  # of each key

_DONE, _MISSING, _MISMATCH, _UNKNOWN = Ok(), Missing(), Mismatch(), Unknown()
_REFUSED = Unknown(spent=1.0)  # it would say the same again


class ValueTwice(AssertionError):
    """A register holds a value that it held before: versions made of contents cannot tell the two apart."""


class Registers:
    """Carries out the core's store operations on `store`.

    `distinct`: whether registers must never hold one value twice, which is asserted.
    `trouble`: what the store said last instead of a clear answer, and "" before the first; a clear answer of
    the same operation on the same register ends it.
    """

    def __init__(self, store: Store, *, distinct: bool = True) -> None:
        self._store = store
        self._distinct = distinct
        self._memory: OrderedDict[str, _Remembered] = OrderedDict()
        self.trouble = ""
        self._troubled: tuple[type[StoreOp], str] | None = None

    async def carry_out(self, op: StoreOp) -> Outcome:
        """The outcome of one operation. Raises `ValueTwice`."""
        try:
            outcome = await self.perform(op)
        except StoreError as error:
            self._note(op.key, error)
            self._troubled = type(op), op.key
            return _REFUSED if isinstance(error, Refused) else _UNKNOWN
        if self._troubled == (type(op), op.key):
            self.trouble = ""
        return outcome

    async def perform(self, op: StoreOp) -> Outcome:
        """The outcome of one operation. Raises `ValueTwice`, and `StoreError` where it is not clear."""
        match op:
            case Get(key):
                found = await self._read(key)
                return _MISSING if found is None else Ok(orjson.loads(found.value))
            case Put(key, value):
                self._memory.pop(key, None)
                await self._store.write(key, canonical(value))
                return _DONE
            case Cas():
                return await self._compare_and_set(op)
            case _:
                assert_never(op)

    async def _compare_and_set(self, cas: Cas) -> Outcome:
        key, old, new = cas.key, canonical(cas.old), canonical(cas.new)
        if cas.old is None and cas.create and await self._created(key, new):
            return _DONE
        version = self._version_of(key, old)
        if version is None:
            found = await self._read(key)
            if found is None:
                return _DONE if cas.create and await self._created(key, new) else _MISSING
            if canonical(orjson.loads(found.value)) != old:
                return _MISMATCH
            version = found.version
        was_held = self._was_held(key, new)
        try:
            self._took(key, new, await self._store.compare_and_set(key, new, version), was_held)
        except Conflict:
            return _MISMATCH
        return _DONE

    async def _created(self, key: str, value: bytes) -> bool:
        was_held = self._was_held(key, value)
        try:
            self._took(key, value, await self._store.create(key, value), was_held)
        except Conflict:
            return False
        return True

    async def _read(self, key: str) -> Found | None:
        found = await self._store.read(key)
        if found:
            self._remembered(key).saw(_digest(found.value), found.version)
        return found

    def _was_held(self, key: str, value: bytes) -> bool:
        return _digest(value) in self._remembered(key).earlier

    def _took(self, key: str, value: bytes, version: Version, was_held: bool) -> None:
        if self._distinct and was_held:
            raise ValueTwice(f"{key} holds a value for the second time: {value[:200]!r}")
        self._remembered(key).saw(_digest(value), version)

    def _version_of(self, key: str, value: bytes) -> Version | None:
        remembered = self._remembered(key)
        return remembered.version if remembered.digest == _digest(value) else None

    def _remembered(self, key: str) -> "_Remembered":
        remembered = self._memory.setdefault(key, _Remembered())
        self._memory.move_to_end(key)
        if len(self._memory) > KEYS_REMEMBERED:
            self._memory.popitem(last=False)
        return remembered

    def _note(self, key: str, error: StoreError) -> None:
        text = f"{key}: {error}"
        if text != self.trouble:  # not once for each try
            level = logging.ERROR if isinstance(error, Refused) else logging.INFO
            log.log(level, "the store gave no clear answer: %s", text)
        self.trouble = text


class _Remembered:
    """The values of one register that were seen: the last one's digest and version, and earlier digests."""

    __slots__ = ("digest", "earlier", "version")

    def __init__(self) -> None:
        self.digest = b""
        self.version: Version | None = None
        self.earlier: deque[bytes] = deque(maxlen=VALUES_REMEMBERED)

    def saw(self, digest: bytes, version: Version) -> None:
        if digest != self.digest:
            self.earlier.append(digest)
        self.digest, self.version = digest, version


def canonical(value: Any) -> bytes:
    """The one text of a JSON value: names in order, so that equal values have equal texts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=16).digest()
