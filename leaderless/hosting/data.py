"""Large values in objects of their own: `data/<name>`, written before the message that refers to it.

An object whose message never got into the log is an orphan; `vacuum` deletes it after a retention. Law
`DataBeforeReference`: a message gets into the log in an epoch that was known before its object was written, or
never. `leaderless.upkeep.maintenance` says what the law is for.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from leaderless.core.coordination import Misfit, as_it_is
from leaderless.core.decoding import KEY_BYTES_MAX, kept_text, require_keys
from leaderless.core.messages import Pairs
from leaderless.errors import Unfit
from leaderless.hosting.reads import Record
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.store.calls import (
    Damaged,
    broken_by,
    each_of,
    parsed,
    patiently,
    side_by_side,
)
from leaderless.store.compression import compressed, plain
from leaderless.store.port import Found, Listed, Store
from leaderless.store.values import (
    Json,
    Reference,
    Value,
    copied,
    encode_value,
    headers_of,
    message_of,
    parted,
    value_of,
    with_headers,
)

FOLDER = "data"


class Message(NamedTuple):
    """What the log itself holds of a value, and about its bytes."""

    json: Json
    size: int


class Large(NamedTuple):
    """A value that needs an object of its own: its text, the kind of that (`encode_value`), and headers."""

    text: bytes
    kind: str
    headers: Mapping[str, str]


Draft = Message | Large  # a value on its way into the log


def require_key(key: str) -> None:
    """Raise `Unfit` for what is no key."""
    if type(key) is not str:  # of a subclass, such as an enum, no JSON can be made
        raise Unfit(f"a key must be a str, not {type(key).__name__}")
    if len(key) <= KEY_BYTES_MAX and key.isascii():  # mostly
        return
    try:
        require_keys([key])
    except Misfit as misfit:
        raise Unfit(str(misfit)) from None


class Data:
    """Turns values into messages and back; values above `inline_bytes` become objects of `store`.

    `compresses`: whether these objects are compressed, where that makes them smaller.
    """

    def __init__(
        self,
        store: Store,
        inline_bytes: int,
        value_bytes: int,
        around: Surroundings = REAL,
        *,
        compresses: bool = False,
    ) -> None:
        self._store = store
        self._compresses = compresses
        self._around = around
        self.inline_bytes: int = inline_bytes
        self._value_bytes = value_bytes

    def draft(self, value: Value, headers: Mapping[str, str] | None = None) -> Draft:
        """A value as it goes into the log. Raises `Unfit`."""
        return self.draft_of(value, *encode_value(value), headers_of(headers) if headers else {})

    def draft_of(
        self, value: Value, text: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> Draft:
        """The same for a value of which `encode_value` has made this. Raises `Unfit`."""
        if len(text) <= self.inline_bytes:
            message = message_of(copied(value, text))
            return _headed(message, headers) if headers else Message(message, len(text))
        if len(text) > self._value_bytes:
            raise Unfit(f"a value may have {self._value_bytes} bytes here, not {len(text)}")
        return Large(text, kind, headers or {})

    async def messages(self, drafts: Sequence[Draft]) -> list[Message]:
        """The messages of values; a large one gets an object, and another one at each call.

        They may get into the log only in an epoch that was known before this call. Raises `Definite`,
        `Indefinite`.
        """
        small = [draft for draft in drafts if isinstance(draft, Message)]
        if len(small) == len(drafts):  # mostly
            return small
        large = [draft for draft in drafts if isinstance(draft, Large)]
        made = iter(await side_by_side([partial(self._write, draft) for draft in large]))
        return [next(made) if isinstance(draft, Large) else draft for draft in drafts]

    async def _write(self, large: Large) -> Message:
        name = f"{self._around.now():.0f}-{self._around.name()}"
        reference = Reference(name, len(large.text), large.kind)
        stored = compressed(large.text) if self._compresses else large.text
        await patiently(lambda: self._store.write(reference.key, stored))
        return _headed(reference.message, large.headers)

    async def records(self, key: str, pairs: Pairs) -> list[Record]:
        """The records of a key that these messages are, with their offsets. Raises as `values`."""
        parts = [parted(copied(pair[1])) for pair in pairs]
        values = await self.values([message for _, message in parts])
        return [
            Record(key, at, value, time[0] if time else None, headers)
            for (at, _, *time), (headers, _), value in zip(pairs, parts, values, strict=True)
        ]

    async def values(self, messages: Sequence[Json]) -> list[Value]:
        """The values of messages. Raises `Broken`, `Definite`, and of these `Unreachable`."""
        values = [value_of(message) for message in messages]
        large = [value for value in values if isinstance(value, Reference)]
        read = {reference: value async for reference, value in each_of(large, self._read)}
        return [read[value] if isinstance(value, Reference) else value for value in values]

    async def _read(self, reference: Reference) -> Value:
        return await patiently(partial(self._read_once, reference), reads=True)

    async def text_of(self, reference: Reference) -> bytes:
        """The text of a large value, see `Large`. Raises as `values`."""
        return await patiently(partial(self._text_once, reference), reads=True)

    async def _read_once(self, reference: Reference) -> Value:
        text = await self._text_once(reference)
        if reference.kind == "bytes":
            return text
        found = Found(text, "")
        value: Value = parsed(reference.key, found, as_it_is).value
        return value

    async def _text_once(self, reference: Reference) -> bytes:
        found = await self._store.read(reference.key)
        if found is None:
            raise broken_by(f"DataReadable: {reference.key} is missing, and a record refers to it")
        text = found.value
        if len(text) < reference.size:  # it was compressed
            try:
                text = plain(text, reference.size)
            except ValueError as error:
                raise Damaged(f"DataReadable: {reference.key}: {error}") from None
        if (size := len(text)) != reference.size:
            raise Damaged(f"DataReadable: {reference.key} has {size} bytes, not {reference.size}")
        return text


def _headed(message: Json, headers: Mapping[str, str]) -> Message:
    """The message of a value with headers. Raises `Unfit` for a value of too many levels."""
    whole = with_headers(message, headers)
    try:
        return Message(whole, len(kept_text(whole)))
    except TypeError as error:
        raise Unfit(f"a value with headers: {error}") from None


def are_large(drafts: Sequence[Draft]) -> bool:
    """Whether some of them need objects."""
    return any(isinstance(draft, Large) for draft in drafts)


def written_at(listed: Listed) -> float:
    """About when an object whose name begins with that was written, in seconds since 1970.

    A store without times leaves only the name, which has the clock of the process that wrote the object. A
    clock that is wrong costs room in the store, or an append that writes its value again: never a value.
    """
    if listed.modified is not None:
        return listed.modified
    return float(listed.key.rpartition("/")[2].partition("-")[0])
