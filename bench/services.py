"""Services that nodes can build on: `lin-kv`, `seq-kv`, `lww-kv`, `lin-tso`.

What a service does with a request is a pure function of a state and the request. How consistent it looks is a
wrapper round it, which chooses that state. [facts: Maelstrom's service.clj]

A state is a map from keys to cells. A function reads it through another and says what to change, so the wrapper
decides how many states there are and which one a client sees.

Key-value stores, `kv` and `lww-kv`:

    read  {key}                                   -> read_ok {value} | error 20 (no such key)
    write {key, value}                            -> write_ok
    cas   {key, from, to, create_if_not_exists?}  -> cas_ok | error 20 | error 22 (another value is there)

Keys and values are any JSON, compared by value. There is no delete. A cell of `kv` is a tuple of one value,
so that a stored null differs from no value. A cell of `lww-kv` is (timestamp, value), stamped by a Lamport
clock in the state's cell `CLOCK`; there a cas on a missing key is always error 20.

The timestamp oracle: `ts` -> `ts_ok {ts}`, counting up from 0.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol

import orjson

from bench.net import Deliver, Network

Body = dict[str, Any]
CellKey = str | bytes
Read = Callable[[CellKey], Any]  # the cell of a key in some state, or None
Changes = dict[CellKey, Any]  # the cells that become different; empty when nothing changes
Service = Callable[[Read, Body], tuple[Body, Changes]]  # (state, request) -> reply, changes

MISSING = "key does not exist"
CLOCK: CellKey = b"clock"  # no JSON value encodes to this, so no client's key can be it
_NEXT_TIMESTAMP = "next"


def canonical_key(key: Any) -> CellKey:
    """A hashable stand-in for a JSON value, equal exactly when the values are: 1 is not "1", nor
    1.0.
    """
    return key if type(key) is str else orjson.dumps(key, option=orjson.OPT_SORT_KEYS)


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal. Python alone would take 1, 1.0 and true for the same."""
    sort = orjson.OPT_SORT_KEYS
    is_equal: bool = left == right  # mostly decides alone
    return is_equal and orjson.dumps(left, option=sort) == orjson.dumps(right, option=sort)


def error(code: int, text: str) -> Body:
    return {"type": "error", "code": code, "text": text}


def unsupported(request: Body, known: str) -> Body:
    """The reply to a request of a type the service does not know (error 10)."""
    return error(10, f"unknown request type {request.get('type')!r}; this service knows {known}")


def respond_kv(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request to a key-value store, on one state (a `Service`)."""
    key = canonical_key(request.get("key"))
    cell = read(key)

    def put(value: object) -> Changes:
        """Writing the present value changes nothing; seq-kv relies on that."""
        return {} if cell is not None and same(cell[0], value) else {key: (value,)}

    return _respond(request, cell, put, creates=bool(request.get("create_if_not_exists")))


def respond_lww_kv(read: Read, request: Body) -> tuple[Body, Changes]:
    """One request to the key-value store of `lww-kv`, on one replica's state (a `Service`)."""
    key = canonical_key(request.get("key"))
    cell, clock = read(key), read(CLOCK) or 0

    return _respond(
        request, cell, lambda value: {key: (clock, value), CLOCK: clock + 1}, creates=False
    )


def _respond(
    request: Body, cell: Any, put: Callable[[object], Changes], *, creates: bool
) -> tuple[Body, Changes]:
    """The reply of a key-value store. A `cell` ends with the value; a cas of a missing key may create it."""
    match request.get("type"):
        case "write":
            return {"type": "write_ok"}, put(request.get("value"))
        case "read" if cell is not None:
            return {"type": "read_ok", "value": cell[-1]}, {}
        case "cas" if cell is not None and not same(cell[-1], request.get("from")):
            # Values can be large and conflicts frequent: the text of the error stays short.
            text = f"current value {cell[-1]!r:.80} is not {request.get('from')!r:.80}"
            return error(22, text), {}
        case "cas" if cell is not None or creates:
            return {"type": "cas_ok"}, put(request.get("to"))
        case "read" | "cas":
            return error(20, MISSING), {}
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


# ---------------------------------------------------------------- consistency


SEQUENTIAL_WINDOW = 32
EVENTUAL_REPLICAS = 2


class Consistency(Protocol):
    """A service as clients meet it."""

    def handle(self, client: str, request: Body, /) -> Body:
        """The reply to a client's request; it may change the state."""


class Linearizable:
    """Every request runs on the newest state."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._state: dict[CellKey, Any] = {}

    def handle(self, _client: str, request: Body) -> Body:
        reply, changes = self._service(self._state.get, request)
        if changes:
            self._state.update(changes)
        return reply


class Sequential:
    """A request that changes nothing may run on one of the last 32 states; others run on the newest.

    A request draws the number of a state, from the last number of its client (0 at first) up to the newest.
    States stand in a ring: state i at place i % 32. A client within 32 changes of the newest state gets the
    state that it drew, so it moves forward only. For one that is further behind the ring may hold a later
    state at that place. The client's number stays the one that was drawn, so its next request may go back.
    The ring is stored as its oldest state and the changes since.
    """

    def __init__(self, service: Service, random: Random) -> None:
        self._service = service
        self._random = random
        self._oldest: dict[CellKey, Any] = {}
        self._oldest_index = 0
        self._changes: deque[Changes] = deque()
        self._drawn: dict[str, int] = {}  # client -> the number that it drew last

    def handle(self, client: str, request: Body) -> Body:
        newest = self._oldest_index + len(self._changes)
        index = self._random.randint(self._drawn.get(client, 0), newest)
        reply, changes = self._service(self._state(index), request)
        if changes:
            reply, changes = self._service(self._state(newest), request)
            index = newest
        if changes:
            index = newest + 1
            self._append(changes)
        self._drawn[client] = index
        return reply

    def _append(self, changes: Changes) -> None:
        self._changes.append(changes)
        if len(self._changes) == SEQUENTIAL_WINDOW:
            self._oldest.update(self._changes.popleft())
            self._oldest_index += 1

    def _state(self, index: int) -> Read:
        """What the ring holds at the place of this state, as a function from key to cell."""
        since = list(self._changes)[: (index - self._oldest_index) % SEQUENTIAL_WINDOW]

        def read(key: CellKey) -> Any:
            for changes in reversed(since):
                if key in changes:
                    return changes[key]
            return self._oldest.get(key)

        return read


class Eventual:
    """Two replicas: each request first merges one random replica into another, then runs on a third draw.

    `merge(left, right)` joins two cells of one key.
    """

    def __init__(self, service: Service, merge: Callable[[Any, Any], Any], random: Random) -> None:
        self._service = service
        self._merge = merge
        self._random = random
        self._replicas: list[dict[CellKey, Any]] = [{} for _ in range(EVENTUAL_REPLICAS)]

    def handle(self, _client: str, request: Body) -> Body:
        source, target, chosen = self._random.choices(self._replicas, k=3)
        if source is not target:
            for key, cell in source.items():
                target[key] = self._merge(cell, target[key]) if key in target else cell
        reply, changes = self._service(chosen.get, request)
        chosen.update(changes)
        return reply


# ---------------------------------------------------------------- services on the network


# (client, executes the request, sends the answer): does both, perhaps late (`bench.nemesis.requests`).
Serve = Callable[[str, Callable[[], Body], Callable[[Body], object]], object]


def default_services(random: Callable[[str], Random]) -> dict[str, Consistency]:
    """The services of every run by name; each that draws has its own stream of randomness."""
    return {
        "lin-kv": Linearizable(respond_kv),
        "seq-kv": Sequential(respond_kv, random("seq-kv")),
        "lww-kv": Eventual(respond_lww_kv, newest, random("lww-kv")),
        "lin-tso": Linearizable(respond_tso),
    }


def connect(
    network: Network,
    services: Mapping[str, Consistency],
    serve: Mapping[str, Serve] | None = None,
) -> None:
    """Attach the services to the network. Each answers at once, unless `serve` has a function for it."""
    for name in services:
        network.add(name, _answerer(network, name, services, (serve or {}).get(name, _at_once)))


def _at_once(_client: str, execute: Callable[[], Body], answer: Callable[[Body], object]) -> None:
    answer(execute())


def _answerer(
    network: Network, name: str, services: Mapping[str, Consistency], serve: Serve
) -> Deliver:
    service = services[name]

    def deliver(src: str, body: dict[str, Any], _wire: bytes) -> None:
        if src in services:
            return  # a node wrote in a service's name; answering would never end

        def execute() -> Body:
            reply = service.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            return reply

        serve(src, execute, lambda reply: network.send(name, src, reply))

    return deliver
