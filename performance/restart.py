"""Measure how soon a killed node serves again.

    python performance/restart.py [--messages 100000] [--width 0] [--rounds 5]

One node fills a log through pipes (64 sends in flight, a fresh key after sixteen messages, as the
workload does), is killed, and started again with the same store: once compacted, and once with the
compaction refused, so that all sealed segments are there. Times run from the start of the process, with
that of the interpreter, to its first answer to a poll; `poll` runs from the request. Then the whole log
is read back and compared with the acknowledged messages.
"""

import os
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import click
import orjson
from node_throughput import ROOT, Child, _line
from rich.console import Console
from rich.table import Table

IN_FLIGHT = 64
KEYS, SENDS_PER_KEY = 10, 16
KEYS_A_POLL = 100
NODE = [sys.executable, str(ROOT / "node.py")]
INIT = {"type": "init", "msg_id": 0, "node_id": "n0", "node_ids": ["n0"]}

Body = dict[str, Any]
Log = dict[str, list[list[Any]]]  # key -> [[offset, msg], ...]


class Node(Child):
    """A node and its store; `acked` is what it acknowledged, `compact` whether it may compact."""

    def __init__(self, registers: dict[str, Any], compact: bool = True) -> None:
        super().__init__(NODE)
        self._registers = registers
        self._compact = compact
        self.calls = 0

    def ask(self, body: Body) -> Body:
        """One request, and its answer."""
        return next(self.ask_all(iter([body])))

    def ask_all(self, requests: Iterator[Body]) -> Iterator[Body]:
        """The answers to requests, of which IN_FLIGHT are under way."""
        out = [_line("c0", body) for body in islice(requests, IN_FLIGHT)]
        waiting = len(out)
        while waiting:
            self.told.clear()
            self.write(out)
            out = []
            for message in map(orjson.loads, self.read()):
                if message["dest"] == "lin-kv":
                    out.append(_line("lin-kv", self._store(message["body"])))
                    continue
                following = [_line("c0", body) for body in islice(requests, 1)]
                out += following
                waiting += len(following) - 1
                yield message["body"]

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def _apply(self, body: Body) -> Body:
        self.calls += 1
        if not self._compact and body["key"] == "claim/compaction":
            return {"type": "error", "code": 11}
        return super()._apply(body)


class Restart(NamedTuple):
    """Seconds from the process's start and from the request to the first answer; store calls until then."""

    start_s: float
    poll_s: float
    calls: int


def fill(count: int, width: int, compact: bool) -> tuple[dict[str, Any], Log]:
    """The registers that a node leaves behind after `count` messages of `width`, and what it acknowledged."""
    registers: dict[str, Any] = {}
    log: dict[str, dict[int, Any]] = {}
    node = Node(registers, compact)
    node.ask(INIT)
    for answer in node.ask_all(_send(number, width) for number in range(count)):
        sent = _send(answer["in_reply_to"], width)
        log.setdefault(sent["key"], {})[answer["offset"]] = sent["msg"]
    node.kill()
    return registers, {key: sorted(map(list, msgs.items())) for key, msgs in log.items()}


def _send(number: int, width: int) -> Body:
    turn, place = divmod(number, KEYS)
    key = f"{place}.{turn // SENDS_PER_KEY}"
    msg = f"{number:0{width}}" if width else number
    return {"type": "send", "key": key, "msg": msg, "msg_id": number}


def restart(registers: dict[str, Any], expected: Log) -> Restart:
    """Start a node on these registers, ask it, and check that it serves everything."""
    started = time.perf_counter()
    node = Node(registers, compact=False)
    node.ask(INIT)
    keys = [*expected]
    asked = time.perf_counter()
    first = node.ask({"type": "poll", "offsets": {keys[-1]: 0}, "msg_id": 1})
    answered, calls = time.perf_counter(), node.calls
    found: Log = first["msgs"]
    for place in range(0, len(keys), KEYS_A_POLL):
        offsets = dict.fromkeys(keys[place : place + KEYS_A_POLL], 0)
        found |= node.ask({"type": "poll", "offsets": offsets, "msg_id": 2})["msgs"]
    node.kill()
    if found != expected:
        raise SystemExit("the node that was started again does not serve what was acknowledged")
    return Restart(answered - started, answered - asked, calls)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--messages", default=100_000, show_default=True)
@click.option("--width", default=0, show_default=True, help="bytes of a message; 0: an integer")
@click.option("--rounds", default=5, show_default=True)
def main(messages: int, width: int, rounds: int) -> None:
    """Measure both logs in alternating rounds."""
    logs = {
        "compacted": fill(messages, width, compact=True),
        "segments": fill(messages, width, compact=False),
    }
    results: dict[str, list[Restart]] = {name: [] for name in logs}
    for _ in range(rounds):
        for name, (registers, log) in logs.items():
            results[name].append(restart(registers, log))
    table = Table(title=f"{messages} messages, {rounds} rounds: median (least to most)")
    for column in ("log", "registers", "MiB", "start to answer, s", "poll to answer, s", "calls"):
        table.add_column(column)
    for name, (registers, _) in logs.items():
        live = [value for value in registers.values() if value != {"deleted": True}]
        starts, polls, calls = zip(*results[name], strict=True)
        mib = len(orjson.dumps(live)) / (1 << 20)
        table.add_row(
            name, str(len(live)), f"{mib:.1f}", _spread(starts), _spread(polls), str(calls[0])
        )
    Console().print(table)


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


if __name__ == "__main__":
    main()
