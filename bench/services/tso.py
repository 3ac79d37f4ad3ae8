"""A timestamp oracle: `ts` -> `ts_ok {ts}`, counting up from 0."""

from bench.services.service import Body, Changes, Read, unsupported

_NEXT = "next"


def respond(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request on one state: hand out the next timestamp."""
    if request.get("type") != "ts":
        return unsupported(request, "ts"), {}
    timestamp = read(_NEXT) or 0
    return {"type": "ts_ok", "ts": timestamp}, {_NEXT: timestamp + 1}
