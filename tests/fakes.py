"""Stand-ins for what surrounds a node: the `lin-kv` service, and how tests make a session."""

from collections.abc import Callable
from typing import Any

import orjson

from leaderless.core.machine import Machine
from leaderless.core.messages import Note
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, Options, Strategy
from leaderless.runtime.session import Session, log_note

Body = dict[str, Any]
StrategyMaker = Callable[[Context], Strategy]
STORE_TIMEOUT_S = 1.0
LINEARIZABLE = Options(freshness_s=0.0)


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


def new_session(
    strategy: str | StrategyMaker = "cas",
    incarnation: int = 1,
    options: Options = LINEARIZABLE,
    *,
    strict: bool = True,
) -> Session:
    """A session that has not seen `init` yet; `strategy` is a name or makes one.

    A broken invariant raises if `strict`; otherwise it is logged, as in a real node.
    """
    make = STRATEGIES[strategy] if isinstance(strategy, str) else strategy

    def start(identity: Identity) -> Machine:
        clock = Clock()
        made = make(Context(identity, clock, options))
        return Machine(made, STORE_TIMEOUT_S, clock, calls_from=1_000_000 * incarnation)

    return Session(start, f"i{incarnation}", note=_raise_if_broken if strict else log_note)


def _raise_if_broken(note: Note) -> None:
    assert not note.broken, note.text
