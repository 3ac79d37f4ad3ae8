"""Plays a transcript of a network of three nodes, a service and a client.

    > network [latency=10] [lenient]      nodes n0, n1 and n2, the service lin-kv, the client c0
    > send c0 n0                        a message of type `hello` is sent
    > writes n0 n1 [77]                 a node writes such a message, with an id of its own
    > line n0 TEXT                      a node writes a line, with Python's escapes
    > pass 10                           milliseconds pass
    > cut n1 n0                         n1 does not hear n0 any more, until `heal`
    > remove n1                         a node is down; `add n1`: it is started again
    > leave c0                          a client has gone
    > counts                            messages of clients, between servers, and lines that were dropped
    > journal                           what has happened so far

Below a command stands what arrives, and after how many milliseconds.
"""

import io
from collections.abc import Callable
from random import Random
from typing import Any

import orjson

from bench.failure import RunFailure
from bench.loop import VirtualLoop
from bench.nemesis.links import LinkFault, LinkFaults
from bench.net import Departure, Hearing, Network
from runs.writing import Journal
from tests.datadriven.commands import unescaped
from tests.datadriven.runner import Player, chosen_of, json_of
from tests.passing import pass_until

MS = 1_000_000


class Rig:
    """A network of three nodes, a service and a client; what each has received: src, dest, type, time in ns."""

    def __init__(
        self,
        latency_ms: int = 0,
        *,
        lenient: bool = False,
        has_latency: bool = True,
        **in_force: LinkFault,
    ) -> None:
        self.loop = VirtualLoop()
        self.file = io.BytesIO()
        self.journal = Journal(self.file)
        hearing = Hearing(lenient=lenient)
        self.net = Network(self.loop, self.journal, lambda: latency_ms * MS, hearing=hearing)
        faults = LinkFaults(("n0", "n1", "n2"), has_latency, Random(1))
        faults.in_force.update(in_force)
        self.net.copies_ns = faults.delays_ns
        self.received: list[tuple[str, str, str, int]] = []
        for name in ("n0", "n1", "n2", "c0", "lin-kv"):
            self.net.add(name, self.collector(name))

    def collector(self, name: str) -> Callable[..., Any]:
        def deliver(src: str, body: dict[str, Any], wire: bytes) -> None:
            message = orjson.loads(wire)
            assert (message["src"], message["dest"], message["body"]) == (src, name, body)
            self.received.append((src, name, body["type"], self.loop.now_ns()))

        return deliver

    def pass_time(self, until_ms: int) -> None:
        pass_until(self.loop, until_ms * MS)

    def times(self, src: str, dest: str, count: int = 1) -> list[int]:
        """Send so many messages at once; after how many ms copies arrived."""
        start_ns = self.loop.now_ns()
        for _ in range(count):
            self.net.send(src, dest, {"type": "hello"})
        pass_until(self.loop, start_ns + 10_000 * MS)
        arrived = [at for *link, _, at in self.received if link == [src, dest] and at >= start_ns]
        return [(at - start_ns) // MS for at in arrived]

    def line(self, src: str, dest: str, **more: int) -> bytes:
        return orjson.dumps({"src": src, "dest": dest, "body": {"type": "hello"}} | more)

    def events(self) -> list[Any]:
        self.journal.flush()
        return [orjson.loads(line) for line in self.file.getvalue().splitlines()]


class Networks(Player):
    """Carries commands out on one network."""

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        if name == "network":
            self._rig = Rig(int(chosen_of(words).get("latency", 0)), lenient="lenient" in words)
            return []
        before = len(self._rig.received)
        try:
            told = getattr(self, f"_{name}")(*words)
        except RunFailure as failure:
            told = [line for line in str(failure).splitlines()[:3] if line]
        arrived = self._rig.received[before:]
        return [
            *(told or []),
            *(f"{src} -> {dest} at {at // MS} ms" for src, dest, _, at in arrived),
        ]

    def _send(self, src: str, dest: str) -> None:
        self._rig.net.send(src, dest, {"type": "hello"})

    def _writes(self, src: str, dest: str, number: str = "") -> None:
        more = {"id": int(number)} if number else {}
        self._rig.net.send_line(src, self._rig.line(src, dest, **more))

    def _line(self, src: str, *text: str) -> None:
        self._rig.net.send_line(src, unescaped(" ".join(text)).encode("latin-1"))

    def _pass(self, milliseconds: str) -> None:
        self._rig.pass_time(int(milliseconds))

    def _cut(self, node: str, sender: str) -> None:
        self._rig.net.partition({node: {sender}})

    def _heal(self) -> None:
        self._rig.net.heal()

    def _remove(self, node: str) -> None:
        self._rig.net.remove(node)

    def _add(self, node: str) -> None:
        self._rig.net.add(node, self._rig.collector(node))

    def _leave(self, client: str) -> None:
        self._rig.net.leave(client, Departure(0))

    def _counts(self) -> list[str]:
        net = self._rig.net
        counted = {"clients": net.clients, "servers": net.servers}
        told = [
            f"{who}: {each.sent} sent, {each.received} received" for who, each in counted.items()
        ]
        return [*told, *(f"{node}: {lines} dropped" for node, lines in net.hearing.dropped.items())]

    def _journal(self) -> list[str]:
        return [
            " ".join(filter(None, (each["type"], each.get("by"), json_of(each["message"]))))
            for each in self._rig.events()
        ]
