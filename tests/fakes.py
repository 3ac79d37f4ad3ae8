"""`lin-kv`, written a second time from its description, independent of the bench.

`tests/contract` holds the bench's service and this one to the same cases. A mistake that both the bench and
the node's port had made alike would show there. So nothing here is shared with `bench.services`.
"""

from typing import Any

import orjson

Body = dict[str, Any]


class LinKv:
    """The linearizable register service, naively: a request body in, a reply body out."""

    def __init__(self) -> None:
        self.registers: dict[str, Any] = {}

    def handle(self, body: Body) -> Body:
        """The reply to one request, its `in_reply_to` included."""
        return {**self._apply(body), "in_reply_to": body["msg_id"]}

    def _apply(self, body: Body) -> Body:
        key, registers = body["key"], self.registers
        match body["type"]:
            case "write":
                registers[key] = body["value"]
                return {"type": "write_ok"}
            case "cas" if key not in registers and body.get("create_if_not_exists"):
                registers[key] = body["to"]
                return {"type": "cas_ok"}
            case _ if key not in registers:
                return {"type": "error", "code": 20, "text": "no such key"}
            case "read":
                return {"type": "read_ok", "value": registers[key]}
            case "cas" if _same(registers[key], body["from"]):
                registers[key] = body["to"]
                return {"type": "cas_ok"}
            case "cas":
                return {"type": "error", "code": 22, "text": "it holds something else"}
        raise AssertionError(f"no operation of lin-kv: {body}")


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; Python alone takes 1, 1.0 and true for the same."""
    texts = (orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in (left, right))
    return left == right and next(texts) == next(texts)
