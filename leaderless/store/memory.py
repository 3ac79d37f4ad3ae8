"""The store port in memory: for tests, simulations, and as the shortest definition of what a store does."""

from typing import Any, assert_never

import orjson

from leaderless.core.messages import Cas, Get, Mismatch, Missing, Ok, Outcome, Put, StoreOp


class MemoryStore:
    """Linearizable registers of JSON values.

    They are kept as text: so they are compared by value, in which 1, 1.0 and true differ as they do not in
    Python, and a value that a caller changes afterwards stays what it was.
    """

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    @property
    def registers(self) -> dict[str, Any]:
        """A copy of what the registers hold."""
        return {key: orjson.loads(text) for key, text in self._texts.items()}

    def apply(self, op: StoreOp) -> Outcome:
        """Carry out one operation at once."""
        texts = self._texts
        match op:
            case Get(key):
                return Ok(orjson.loads(texts[key])) if key in texts else Missing()
            case Put(key, value):
                texts[key] = _text(value)
                return Ok()
            case Cas(key, old, new, create):
                if key in texts and texts[key] != _text(old):
                    return Mismatch()
                if key not in texts and not create:
                    return Missing()
                texts[key] = _text(new)
                return Ok()
            case _:
                assert_never(op)


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
