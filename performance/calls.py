"""Count the Python calls that a message costs a node: a figure that no other load of the machine changes.

    python -m performance.calls [--requests 4000] [--strategy cas]

A session, without its process, gets the traffic of `performance.node_throughput`, from 64 clients and from one
that waits for each answer. A message is a line in or out. A call is what Python enters as a frame, so each time
that a generator goes on counts, and so do those of `NamedTuple`. Calls of C functions do not count.
"""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import FrameType

import click
import orjson

from bench.services.requests import respond_kv
from leaderless.core.machine import Machine
from leaderless.core.strategies import DEFAULT, STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, Options
from leaderless.runtime.session import Session
from performance import show_table
from performance.child import INIT, Registers, line
from performance.node_throughput import requests_of

TURN_S = 0.0005  # between two turns of the node's loop
TITLES = ("strategy", "in flight", "messages", "calls a message")


class Counted:
    """A session whose calls are counted; `now` is its time in seconds."""

    def __init__(self, strategy: str) -> None:
        self._session = Session(partial(machine_of, strategy), "counted")
        self._registers: Registers = {}
        self.now = 0.0
        self.calls = self.messages = 0
        self.turn([line("c0", INIT)])

    def drive(self, requests: Iterator[bytes], in_flight: int) -> None:
        """Take the answers to all requests, of which so many are under way."""
        lines = [*islice(requests, in_flight)]
        waiting = len(lines)
        while waiting or lines:
            sent, lines = self.turn(lines), []
            for message in map(orjson.loads, sent):
                if message["dest"] == "lin-kv":
                    lines.append(self._serve(message["body"]))
                else:
                    following = [*islice(requests, 1)]
                    lines += following
                    waiting += len(following) - 1

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """What the node's loop does with what it has read: the lines that it writes."""
        self.now += TURN_S
        sys.setprofile(self._count)
        self._session.receive_all(lines, self.now)
        sent = self._session.take()
        sys.setprofile(None)
        written = sent.splitlines()
        self.messages += len(lines) + len(written)
        return written

    def _count(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event == "call"

    def _serve(self, body: dict[str, object]) -> bytes:
        reply, changes = respond_kv(self._registers.get, body)
        self._registers |= changes
        return line("lin-kv", {**reply, "in_reply_to": body["msg_id"]})


def machine_of(strategy: str, identity: Identity) -> Machine:
    """The machine of a node with this strategy."""
    clock = Clock()
    return Machine(STRATEGIES[strategy](Context(identity, clock, Options())), clock=clock)


def calls_a_message(strategy: str, in_flight: int, requests: int) -> tuple[float, int]:
    """The calls that a message takes, and of how many messages that is the mean."""
    counted = Counted(strategy)
    counted.drive(requests_of(requests // 10), in_flight)  # warm up
    counted.calls = counted.messages = 0
    counted.drive(requests_of(requests), in_flight)
    return counted.calls / counted.messages, counted.messages


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--requests", default=4_000, show_default=True)
@click.option(
    "--strategy", type=click.Choice(sorted(STRATEGIES)), multiple=True, default=["cas", DEFAULT]
)
def main(requests: int, strategy: tuple[str, ...]) -> None:
    def rows() -> Iterator[tuple[str, ...]]:
        for name in strategy:
            for in_flight in (64, 1):
                calls, messages = calls_a_message(name, in_flight, requests)
                yield name, str(in_flight), str(messages), f"{calls:.1f}"

    show_table(TITLES, rows())


if __name__ == "__main__":
    main()
