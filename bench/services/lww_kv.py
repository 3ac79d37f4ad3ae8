"""The key-value store of `lww-kv`: a cell is (timestamp, value), stamped by a Lamport clock.

Like `kv`, but a cas on a missing key is always error 20. The clock is the state's cell `CLOCK`.
"""

from typing import Any

from bench.services.kv import MISSING, mismatch
from bench.services.service import Body, Changes, Key, Read, canonical_key, error, same, unsupported

CLOCK: Key = b"clock"  # no JSON value encodes to this, so no client's key can be it


def respond(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request on one replica's state."""
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
    """Merge two replicas' cells of one key: the later timestamp wins, the left one when they are
    equal.
    """
    if isinstance(left, int):
        return max(left, right)
    return right if right[0] > left[0] else left
