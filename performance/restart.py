"""Measure how soon a killed node serves again.

    python -m performance.restart [--messages 100000] [--width 0] [--rounds 5]

One node fills a log through pipes (64 sends in flight, a fresh key after sixteen messages, as the
workload does), is killed, and started again with the same store: once compacted, and once with the
compaction refused, so that all sealed segments are there. Times run from the start of the process, with
that of the interpreter, to its first answer to a poll; `poll` runs from the request. Then the whole log
is read back and compared with the acknowledged messages.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import orjson

from performance import show_table, spread
from performance.child import INIT, KEYS, NODE, SENDS_PER_KEY, Body, Child, Registers, line

IN_FLIGHT = 64
KEYS_A_POLL = 100
DELETED = ({"deleted": True},)

Log = dict[str, list[list[Any]]]  # key -> [[offset, msg], ...]


class Node(Child):
    """A node whose store refuses the claim of a compaction."""

    def refuses(self, body: Body) -> bool:
        return bool(body["key"] == "claim/compaction")


class Restart(NamedTuple):
    """Seconds from the process's start and from the request to the first answer; store calls until then."""

    start_s: float
    poll_s: float
    calls: int


def fill(count: int, width: int, kind: type[Child]) -> tuple[Registers, Log]:
    """The registers that a node leaves behind after `count` messages of `width`, and what it acknowledged."""
    registers: Registers = {}
    log: dict[str, dict[int, Any]] = {}
    node = kind(NODE, registers=registers)
    node.ask(INIT)
    requests = (line("c0", _send(number, width)) for number in range(count))
    for answer in node.ask_all(requests, IN_FLIGHT):
        node.written.clear()
        sent = _send(answer["in_reply_to"], width)
        log.setdefault(sent["key"], {})[answer["offset"]] = sent["msg"]
    node.kill()
    return registers, {key: sorted(map(list, msgs.items())) for key, msgs in log.items()}


def _send(number: int, width: int) -> Body:
    turn, place = divmod(number, KEYS)
    key = f"{place}.{turn // SENDS_PER_KEY}"
    msg = f"{number:0{width}}" if width else number
    return {"type": "send", "key": key, "msg": msg, "msg_id": number}


def restart(registers: Registers, expected: Log) -> Restart:
    """Start a node on these registers, ask it, and check that it serves everything."""
    started = time.perf_counter()
    node = Node(NODE, registers=registers)
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
    kinds = {"compacted": Child, "segments": Node}
    logs = {name: fill(messages, width, kind) for name, kind in kinds.items()}
    results: dict[str, list[Restart]] = {name: [] for name in logs}
    for _ in range(rounds):
        for name, (registers, log) in logs.items():
            results[name].append(restart(registers, log))
    click.echo(f"{messages} messages, {rounds} rounds: median (least to most)\n")
    titles = ("log", "registers", "MiB", "start to answer, s", "poll to answer, s", "calls")
    show_table(titles, ([name, *cells(logs[name][0], each)] for name, each in results.items()))


def cells(registers: Registers, restarts: Sequence[Restart]) -> list[str]:
    live = [cell for cell in registers.values() if cell != DELETED]
    starts, polls, calls = zip(*restarts, strict=True)
    mib = len(orjson.dumps(live)) / (1 << 20)
    times = (spread(starts, ".3f"), spread(polls, ".3f"))
    return [str(len(live)), f"{mib:.1f}", *times, str(calls[0])]


if __name__ == "__main__":
    main()
