"""Large values in objects of their own: `data/<name>`, written before the message that refers to it.

An object whose message never got into the log is an orphan; `vacuum` deletes it after a retention.
"""

from collections.abc import Sequence
from functools import partial

import orjson

from leaderless.errors import Broken, Unfit
from leaderless.library.surroundings import REAL, Surroundings
from leaderless.store.calls import patiently, side_by_side
from leaderless.store.port import Store
from leaderless.store.values import Json, Reference, Value, message_of, text_of, value_of

READ_AT_ONCE = 16
DATA_STALLED_S = 300.0  # between an object and its append; half the least retention of `vacuum`


class Data:
    """Turns values into messages and back; values above `inline_bytes` become objects of `store`."""

    def __init__(
        self, store: Store, inline_bytes: int, value_bytes: int, around: Surroundings = REAL
    ) -> None:
        self._store = store
        self._around = around
        self._inline_bytes = inline_bytes
        self._value_bytes = value_bytes

    def inline(self, value: Value) -> tuple[Json, int] | None:
        """The message for a value that needs no object of its own, and its size. Raises `Unfit`."""
        text, _ = text_of(value)
        return self.inline_of(value, len(text))

    def inline_of(self, value: Value, size: int) -> tuple[Json, int] | None:
        """The same for a value whose text is known to have `size` bytes."""
        return (message_of(value), size) if size <= self._inline_bytes else None

    async def message(self, value: Value) -> tuple[Json, int]:
        """The message for a value, and its size. Raises `Unfit`, `Definite`, `Indefinite`."""
        text, kind = text_of(value)
        if len(text) <= self._inline_bytes:
            return message_of(value), len(text)
        if len(text) > self._value_bytes:
            raise Unfit(f"a value may have {self._value_bytes} bytes here, not {len(text)}")
        name = f"{self._around.now():.0f}-{self._around.name()}"  # `vacuum` reads the time of it
        reference = Reference(name, len(text), kind)
        await patiently(lambda: self._store.write(reference.key, text))
        return reference.message, len(orjson.dumps(reference.message))

    async def values(self, messages: Sequence[Json]) -> list[Value]:
        """The values of messages. Raises `Broken`, `Definite`, `Indefinite`."""
        values = [value_of(message) for message in messages]
        large = [value for value in values if isinstance(value, Reference)]
        read: dict[Reference, Value] = {}
        for start in range(0, len(large), READ_AT_ONCE):
            some = large[start : start + READ_AT_ONCE]
            found = await side_by_side([partial(self._read, reference) for reference in some])
            read |= dict(zip(some, found, strict=True))
        return [read[value] if isinstance(value, Reference) else value for value in values]

    async def _read(self, reference: Reference) -> Value:
        found = await patiently(lambda: self._store.read(reference.key))
        if found is None or len(found.value) != reference.size:
            raise Broken(f"the value of a message is not there as it was: {reference.key}")
        if reference.kind == "bytes":
            return found.value
        read: Value = orjson.loads(found.value)
        return read
