"""What may become of requests to the store, beside the faults of the bench.

    late         some are carried out up to so many seconds late; their nodes have given them up long before
    refused      some, or all for a while, are answered with an error that says nothing of the register
    too large    a value above a limit is never stored, as etcd refuses one above 1.5 MB
    bandwidth    requests and answers of a node share a pipe that carries so many bytes a second

A late request is carried out once, at the moment of its answer: the store stays linearizable. One that is
answered with a definite error is not carried out. One with an indefinite error is carried out or not, with
equal odds. Lateness and errors end with the main phase; limit and bandwidth are the store's own.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

import orjson

from bench.loop import Loop
from bench.nemesis.requests import Fate, meet
from bench.services import Body, Consistency, Serve, error
from simulation.hosts import NS
from simulation.life import BUCKET
from simulation.oracle import require
from simulation.scenario import Scenario
from simulation.side_clients import AUDITED
from workloads.interface import ERRORS

LATE_SHARE = 0.03
ERROR_SHARE = 0.1  # of the requests, when errors come one by one
TOO_LARGE = 12
REFUSED_A_SECOND_MAX = 400  # of one node, beside what its clients ask for
OF_A_CURSOR = 10  # a program asks, and asks again, for each key of an auditor


class StoreTrouble:
    """The store of a run as its nodes meet it: a `Consistency`, and the `Serve` for it.

    `begin` starts what ends with the main phase. `last_ns` is when the last late request is carried out.
    """

    def __init__(self, scenario: Scenario, store: Consistency, loop: Loop, random: Random) -> None:
        self._scenario = scenario
        self._store = store
        self._loop = loop
        self._random = random
        self._until_ns = 0
        self._refusing_ns = range(0)
        self._free_ns: dict[str, int] = {}  # client -> when its pipe is free
        self._refused: Counter[tuple[str, int]] = Counter()  # by node and second
        self._bytes = 0  # of the value in the newest request
        self.last_ns = 0

    def begin(self) -> None:
        """The main phase begins."""
        now_ns, length_ns = self._loop.now_ns(), int(self._scenario.time_limit_s * NS)
        self._until_ns = now_ns + length_ns
        start_ns = now_ns + int(self._random.random() * length_ns / 2)
        end_ns = min(start_ns + int(self._scenario.refusing_s * NS), self._until_ns)
        self._refusing_ns = range(start_ns, end_ns)

    def handle(self, client: str, request: Body) -> Body:
        """The reply to a request, carried out or refused."""
        limit = self._scenario.store_value_kib * 1024
        if limit or self._scenario.store_kib_per_s:
            self._bytes = len(orjson.dumps(request.get("to", request.get("value"))))
        if limit and self._bytes > limit:
            return error(TOO_LARGE, f"a value may have {limit} bytes, not {self._bytes}")
        if not self._refuses():
            return self._store.handle(client, request)
        code = self._scenario.refusal_code
        self._count(client)
        _, definite = ERRORS.get(code, ("", False))
        if not definite and self._random.random() < 0.5:
            self._store.handle(client, request)
        return error(code, "the store says so")

    def around(self, serve: Serve) -> Serve:
        """Serves as `serve` does, but some requests late, and all through the pipe of their client."""

        def served(
            client: str, execute: Callable[[], Body], answer: Callable[[Body], object]
        ) -> None:
            late_s = self._scenario.store_late_s
            if late_s and self._in_force and self._random.random() < LATE_SHARE:
                late_ns = int(self._random.random() * late_s * NS)
                self.last_ns = max(self.last_ns, self._loop.now_ns() + late_ns)
                meet(self._loop, Fate(late_ns), execute, answer)
            elif self._scenario.store_kib_per_s:
                serve(client, execute, lambda reply: self._answer(client, reply, answer))
            else:
                serve(client, execute, answer)

        return served

    @property
    def _in_force(self) -> bool:
        return self._loop.now_ns() < self._until_ns

    def _refuses(self) -> bool:
        scenario = self._scenario
        if not scenario.refusal_code or not self._in_force:
            return False
        if scenario.refusing_s:
            return self._loop.now_ns() in self._refusing_ns
        return self._random.random() < ERROR_SHARE

    def _count(self, client: str) -> None:
        """A node does not ask a store that refuses as fast as it answers."""
        second = self._loop.now_ns() // NS
        self._refused[client, second] += 1
        most = REFUSED_A_SECOND_MAX + 4 * self._scenario.rate
        if self._scenario.store == BUCKET:
            most += OF_A_CURSOR * len(AUDITED) * self._scenario.auditors
        text = f"{client} was refused {most:g} times in a second, and asks on"
        require(self._refused[client, second] <= most, "StoreSpared", text)

    def _answer(self, client: str, reply: Body, answer: Callable[[Body], object]) -> None:
        now_ns = self._loop.now_ns()
        size = self._bytes + len(orjson.dumps(reply))
        taken_ns = int(size / (self._scenario.store_kib_per_s * 1024) * NS)
        self._free_ns[client] = max(now_ns, self._free_ns.get(client, 0)) + taken_ns
        self._loop.call_at(self._free_ns[client], answer, reply)
