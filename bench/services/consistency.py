"""How consistent a service looks: wrappers that choose the state on which a request runs."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from bench.services.requests import Body, Changes, Key, Read, Service

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
        self._state: dict[Key, Any] = {}

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
        self._oldest: dict[Key, Any] = {}
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

        def read(key: Key) -> Any:
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
        self._replicas: list[dict[Key, Any]] = [{} for _ in range(EVENTUAL_REPLICAS)]

    def handle(self, _client: str, request: Body) -> Body:
        source, target, chosen = self._random.choices(self._replicas, k=3)
        if source is not target:
            self._gossip(source, target)
        reply, changes = self._service(chosen.get, request)
        chosen.update(changes)
        return reply

    def _gossip(self, source: dict[Key, Any], target: dict[Key, Any]) -> None:
        for key, cell in source.items():
            target[key] = self._merge(cell, target[key]) if key in target else cell
