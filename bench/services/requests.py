"""What each service does with a request: a pure function of a state and the request.

A state is a map from keys to cells. A function reads it through another and says what to change, so the wrapper
(`bench.services.consistency`) decides how many states there are and which one a client sees.

Key-value stores, `kv` and `lww-kv`:

    read  {key}                                   -> read_ok {value} | error 20 (no such key)
    write {key, value}                            -> write_ok
    cas   {key, from, to, create_if_not_exists?}  -> cas_ok | error 20 | error 22 (another value is there)

Keys and values are any JSON, compared by value. There is no delete. A cell of `kv` is a tuple of one value,
so that a stored null differs from no value. A cell of `lww-kv` is (timestamp, value), stamped by a Lamport
clock in the state's cell `CLOCK`; there a cas on a missing key is always error 20.

The timestamp oracle: `ts` -> `ts_ok {ts}`, counting up from 0. [facts: Maelstrom's service.clj]
"""

from collections.abc import Callable
from typing import Any

import orjson

Body = dict[str, Any]
Key = str | bytes
Read = Callable[[Key], Any]  # the cell of a key in some state, or None
Changes = dict[Key, Any]  # the cells that become different; empty when nothing changes
Service = Callable[[Read, Body], tuple[Body, Changes]]  # (state, request) -> reply, changes

MISSING = "key does not exist"
CLOCK: Key = b"clock"  # no JSON value encodes to this, so no client's key can be it
_NEXT_TIMESTAMP = "next"


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
    return {"type": "error", "code": code, "text": text}


def unsupported(request: Body, known: str) -> Body:
    """The reply to a request of a type the service does not know (error 10)."""
    return error(10, f"unknown request type {request.get('type')!r}; this service knows {known}")


def respond_kv(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request to a key-value store, on one state (a `Service`)."""
    key = canonical_key(request.get("key"))
    cell = read(key)
    match request.get("type"):
        case "read":
            if cell is None:
                return error(20, MISSING), {}
            return {"type": "read_ok", "value": cell[0]}, {}
        case "write":
            return {"type": "write_ok"}, _change(key, cell, request.get("value"))
        case "cas":
            if cell is None and not request.get("create_if_not_exists"):
                return error(20, MISSING), {}
            if cell is not None and not same(cell[0], request.get("from")):
                return mismatch(cell[0], request), {}
            return {"type": "cas_ok"}, _change(key, cell, request.get("to"))
        case _:
            return unsupported(request, "read, write, cas"), {}


def _change(key: str | bytes, cell: tuple[object] | None, value: object) -> Changes:
    """Writing the present value changes nothing; seq-kv relies on that."""
    return {} if cell is not None and same(cell[0], value) else {key: (value,)}


def mismatch(current: object, request: Body) -> Body:
    """The reply to a cas that found another value (error 22)."""
    # Values can be large and conflicts frequent: the text of the error stays short.
    return error(22, f"current value {current!r:.80} is not {request.get('from')!r:.80}")


def respond_lww_kv(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request to the key-value store of `lww-kv`, on one replica's state (a `Service`)."""
    key = canonical_key(request.get("key"))
    cell = read(key)
    clock = read(CLOCK) or 0
    match request.get("type"):
        case "read" if cell is not None:
            return {"type": "read_ok", "value": cell[1]}, {}
        case "write":
            return {"type": "write_ok"}, {key: (clock, request.get("value")), CLOCK: clock + 1}
        case "cas" if cell is not None:
            if not same(cell[1], request.get("from")):
                return mismatch(cell[1], request), {}
            return {"type": "cas_ok"}, {key: (clock, request.get("to")), CLOCK: clock + 1}
        case "read" | "cas":
            return error(20, MISSING), {}
        case _:
            return unsupported(request, "read, write, cas"), {}


def newest(left: Any, right: Any) -> Any:
    """Merge two replicas' cells of one key: the later timestamp wins, the left one when they are equal."""
    if isinstance(left, int):
        return max(left, right)
    return right if right[0] > left[0] else left


def respond_tso(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request to the timestamp oracle, on one state: hand out the next timestamp (a `Service`)."""
    if request.get("type") != "ts":
        return unsupported(request, "ts"), {}
    timestamp = read(_NEXT_TIMESTAMP) or 0
    return {"type": "ts_ok", "ts": timestamp}, {_NEXT_TIMESTAMP: timestamp + 1}
