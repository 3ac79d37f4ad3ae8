"""A key-value store.

    read  {key}                                   -> read_ok {value} | error 20 (no such key)
    write {key, value}                            -> write_ok
    cas   {key, from, to, create_if_not_exists?}  -> cas_ok | error 20 | error 22 (another value is
    there)

Keys and values are any JSON, compared by value. There is no delete. A cell is a tuple of one
value, so that a stored null differs from no value.
"""

from bench.services.service import Body, Changes, Read, canonical_key, error, same, unsupported

MISSING = "key does not exist"


def respond(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request on one state (see `bench.services.service.Service`)."""
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
    """Writing what is there already changes nothing, which seq-kv makes use of."""
    return {} if cell is not None and same(cell[0], value) else {key: (value,)}


def mismatch(current: object, request: Body) -> Body:
    """The reply to a cas that found another value (error 22)."""
    # Values can be large and conflicts frequent: the text of the error stays short.
    return error(22, f"current value {current!r:.80} is not {request.get('from')!r:.80}")
