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

A read of the head says which value the core has (`Get.known`). If that is what was seen last here, the store is
asked for a newer version only, and the same object is the answer. It must be the core that says it: a value
that came damaged, and fitted no head, is read again as a whole.

An answer that is not clear is `Unknown`, also a refusal, which says so, and an answer without JSON in it: to
the core it is always safe to look again. `trouble` tells people what the store said. Only a value that was
parsed is remembered.

A store that keeps the laws never shows a version again that it has refused. One that does (something between
changes ETags, or shows old states) would let a log try for ever, so it is named after `ROUNDS` times.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from typing import assert_never

import anyio
import orjson

from leaderless.core.coordination import Json, as_it_is
from leaderless.core.headlog.chain import GONE
from leaderless.core.headlog.records import HEAD, segment_name
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
from leaderless.core.shape import LOG_FORMAT, Shape
from leaderless.errors import Broken, OtherFormat
from leaderless.store.calls import Damaged, parsed
from leaderless.store.compression import compressed
from leaderless.store.port import Conflict, Found, Refused, Store, StoreError, Version

log: logging.Logger = logging.getLogger("leaderless")

KEYS_REMEMBERED = 1024
VALUES_REMEMBERED = 64  # of each key
FIXED = ("segment/", "run/", "page/")  # from what they hold nothing is ever compared and set
WHOLE_EVERY_S = 60.0  # so long a store is believed that says "not modified"
ROUNDS = 3  # how often a version may be refused, shown again, and refused again

_SHAPE = Shape()
_DONE, _MISSING, _MISMATCH = Ok(), Missing(), Mismatch()
_USELESS = Unknown(spent=1.0)  # it would say the same again
_REFUSED = Unknown(spent=1.0, refused=True)  # and nothing was changed


class ValueTwice(AssertionError):
    """A register holds a value that it held before: versions made of contents cannot tell the two apart."""


class Unlawful(Refused):
    """The store breaks a law, so it is unknown what it has done."""


def require_written(store: Store, shape: Shape) -> None:
    """Raise `OtherFormat` if the log in `store` has an earlier format: this program only reads it."""
    if shape.form < LOG_FORMAT:
        raise OtherFormat(
            f"the log at {store.url} has format {shape.form}, and is only read: stop older programs, then "
            f"`leaderless upgrade` makes it {LOG_FORMAT}"
        )


class Registers:
    """Carries out the core's store operations on `store`.

    `trouble`: what the store said last instead of a clear answer, and "" before the first; a clear answer of
    the same operation on the same register ends it. `other_format`: it was a register of another format.
    `shape`: of the log; one of an earlier format is not changed.
    """

    def __init__(self, store: Store, shape: Shape = _SHAPE) -> None:
        self._store = store
        self._shape = shape
        self._is_new = False  # it had no segment when it had no head
        self._memory: OrderedDict[str, _Remembered] = OrderedDict()
        self.trouble: str = ""
        self.other_format: OtherFormat | None = None
        self._troubled: tuple[type[StoreOp], str] | None = None

    async def carry_out(self, op: StoreOp) -> Outcome:
        """The outcome of one operation. Raises `ValueTwice`."""
        try:
            if not isinstance(op, Get):
                require_written(self._store, self._shape)
            outcome = await self.perform(op)
        except (StoreError, Broken, OtherFormat) as error:
            self._note(op.key, error)
            self.other_format = error if isinstance(error, OtherFormat) else None
            self._troubled = type(op), op.key
            match error:
                case Unlawful():
                    return _USELESS
                case Refused() | OtherFormat():
                    return _REFUSED
            return Unknown(damaged=isinstance(error, Damaged))
        if self._troubled == (type(op), op.key):
            self.trouble = ""
        return outcome

    async def perform(self, op: StoreOp) -> Outcome:
        """The outcome of one operation. Raises `ValueTwice`, and `StoreError` where it is not clear."""
        match op:
            case Get(key, known):
                read = await self._parsed(key, known)
                if read is None and key == HEAD:
                    await self._require_new()
                return _MISSING if read is None else Ok(read[1])
            case Put(key, value):
                self._memory.pop(key, None)
                await self._store.write(key, canonical(value))
                return _DONE
            case Cas():
                return await self._compare_and_set(op)
            case _:
                assert_never(op)

    async def _require_new(self) -> None:
        """Raise `Damaged` for a log without a head that has had one, unless the head comes meanwhile."""
        if not self._is_new and await self._store.read(segment_name(0)) is not None:
            raise Damaged(f"HeadNeverReturns: {GONE}")
        self._is_new = True

    async def _compare_and_set(self, cas: Cas) -> Outcome:
        key, new = cas.key, canonical(cas.new)
        if cas.old is None and cas.create:
            return _DONE if await self._created(cas, new) else _MISMATCH
        version = self._version_of(key, cas.old)
        if version is None:
            read = await self._parsed(key)
            if read is None:
                return _DONE if cas.create and await self._created(cas, new) else _MISSING
            found, value = read
            if canonical(value) != canonical(cas.old):
                return _MISMATCH
            version = found.version
        if await self._written(cas, new, self._store.compare_and_set(key, new, version)):
            return _DONE
        self._refused(key, version)
        return _MISMATCH

    async def _created(self, cas: Cas, value: bytes) -> bool:
        stored = (
            compressed(value) if self._shape.compresses and cas.key.startswith(FIXED) else value
        )
        return await self._written(cas, value, self._store.create(cas.key, stored))

    async def _written(self, cas: Cas, value: bytes, write: Awaitable[Version]) -> bool:
        """Whether a write took effect; else it met a conflict. Raises `ValueTwice`."""
        digest = _digest(value)
        was_held = digest in self._remembered(cas.key).earlier
        try:
            version = await write
        except Conflict:
            return False
        if was_held:
            raise ValueTwice(f"{cas.key} holds a value for the second time: {value[:200]!r}")
        self._remembered(cas.key).saw(digest, version, cas.new)
        return True

    async def _read(self, key: str) -> Found | None:
        """The object of a register. Raises `Damaged` when it is no JSON."""
        read = await self._parsed(key)
        return None if read is None else read[0]

    async def _parsed(self, key: str, known: Json = None) -> tuple[Found, Json] | None:
        """The object of a register, and the value in it; `known` and no bytes if it still holds that.

        Raises `Damaged`.
        """
        before = self._remembered(key)
        refused_before, last = before.refused, before.found_as(known)
        store, asked_at = self._store, anyio.current_time()
        is_due = asked_at >= before.whole_at + WHOLE_EVERY_S
        found = await (store.read_again(key, last) if last and not is_due else store.read(key))
        if found is None:
            return None
        is_known = last is not None and found.version == last.version
        value = known if is_known else parsed(key, found, as_it_is).value
        remembered = self._remembered(key)
        if not is_known and not key.startswith(FIXED):
            remembered.saw(_digest(found.value), found.version, value)
        if is_due:
            remembered.whole_at = asked_at
        remembered.shown |= found.version == refused_before
        return found, value

    def _refused(self, key: str, version: Version) -> None:
        """Note a conflict. Raises `Unlawful` when the store goes on showing what it does not take."""
        if self._remembered(key).refuse(version) >= ROUNDS:
            raise Unlawful(
                f"the store shows version {version!r}, and takes no update of it: something changes its ETags, "
                "or shows old states; `leaderless init` looks into it"
            )

    def _version_of(self, key: str, value: Json) -> Version | None:
        remembered = self._remembered(key)
        is_last = remembered.found_as(value) or remembered.digest == _digest(canonical(value))
        return remembered.version if is_last else None

    def _remembered(self, key: str) -> "_Remembered":
        remembered = self._memory.setdefault(key, _Remembered(keeps_value=key == HEAD))
        self._memory.move_to_end(key)
        if len(self._memory) > KEYS_REMEMBERED:
            self._memory.popitem(last=False)
        return remembered

    def _note(self, key: str, error: Exception) -> None:
        text = f"{key}: {error}"
        if text != self.trouble:  # not once for each try
            level = logging.ERROR if isinstance(error, Refused) else logging.INFO
            log.log(level, "the store gave no clear answer: %s", text)
        self.trouble = text


@dataclass(slots=True)
class _Remembered:
    """The values of one register that were seen: the last one's digest and version, and earlier digests.

    `keeps_value`: whether to keep the last value, too, for reads of a register that has it still.
    `refused`: the last version that met a conflict; `shown`: whether a read that began later showed it.
    `whole_at`: when a read or an update last showed what the object holds, in seconds; "not modified" does not.
    """

    keeps_value: bool
    value: Json = None
    digest: bytes = b""
    version: Version | None = None
    earlier: deque[bytes] = field(default_factory=lambda: deque(maxlen=VALUES_REMEMBERED))
    refused: Version | None = None
    shown: bool = False
    rounds: int = 0
    whole_at: float = -inf

    def saw(self, digest: bytes, version: Version, value: Json) -> None:
        if digest != self.digest:
            self.earlier.append(digest)
        self.digest, self.version = digest, version
        self.whole_at = anyio.current_time()
        self.value = value if self.keeps_value else None

    def found_as(self, value: Json) -> Found | None:
        """What a read found, without its bytes, if `value` is the very object that was seen last."""
        is_last = value is not None and value is self.value
        return Found(b"", self.version) if self.version and is_last else None

    def refuse(self, version: Version) -> int:
        """An update of `version` met a conflict; how often it was then shown and met one again."""
        if version != self.refused:
            self.refused, self.rounds = version, 0
        elif self.shown:
            self.rounds += 1
        self.shown, self.whole_at = False, -inf
        return self.rounds


def canonical(value: object) -> bytes:
    """The one text of a JSON value: names in order, so that equal values have equal texts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=16).digest()
