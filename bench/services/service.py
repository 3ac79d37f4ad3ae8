"""What a service is: a pure function of a state and a request.

A state is a map from keys to cells; a service reads it through a function and says what to change,
so that the wrapper decides how many states there are and which one a client sees.
"""

from collections.abc import Callable
from typing import Any

import orjson

Body = dict[str, Any]
Key = str | bytes
Read = Callable[[Key], Any]  # the cell of a key in some state, or None
Changes = dict[Key, Any]  # the cells that become different; empty when nothing changes
Service = Callable[[Read, Body], tuple[Body, Changes]]  # (state, request) -> reply, changes


def canonical_key(key: Any) -> Key:
    """A hashable stand-in for a JSON value, equal exactly when the values are: 1 is not "1", nor
    1.0.
    """
    return key if type(key) is str else orjson.dumps(key, option=orjson.OPT_SORT_KEYS)


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal. Python alone would take 1, 1.0 and true for the same."""
    if left != right:
        return False
    if type(left) is str:
        return True
    if orjson.dumps(left) == orjson.dumps(right):
        return True  # most values keep the order of their keys; sorting takes twice as long
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(left, option=sort) == orjson.dumps(right, option=sort)


def error(code: int, text: str) -> Body:
    """The body of an error reply."""
    return {"type": "error", "code": code, "text": text}


def unsupported(request: Body, known: str) -> Body:
    """The reply to a request of a type the service does not know (error 10)."""
    return error(10, f"unknown request type {request.get('type')!r}; this service knows {known}")
