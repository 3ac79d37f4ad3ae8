"""Compare the speed of one node with the fastest possible Python program of its kind.

    python -m performance.node_throughput [--rounds 5] [--requests 20000] [--clients 64] [--strategy cas]

One node process is fed through pipes by a driver that plays 64 clients (half sends, half polls, ten
keys, a fresh key after sixteen sends, every poll at the reader's position) and the `lin-kv` service. The
limit is a loop that reads chunks, parses each line with orjson, answers it, and writes once a chunk. It gets
the same lines as the node, with the answers of the store, and answers each with a body of the same size. The
least node sends the messages of the strategy, and does nothing else (`performance.least_node`).

The three take turns. A message is a line in or out. CPU is that of the child alone, between first and last
request, without the driver and other load of the machine. Messages a second are measured on the wall clock,
which includes both. Ping-pong is one request at a time. A lone request comes after a pause, as with many nodes;
its CPU is mostly that of sleeping and waking. `cas` wakes twice for a request, the limit once.
"""

import random
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import click

from performance import show_table, spread
from performance.child import INIT, KEYS, NODE, SENDS_PER_KEY, Body, Child, line
from performance.least_node import LEAST

PING_PONGS = 500
PAUSE_S = 0.0003  # before a lone request: a node of 16 at 10 000 requests a second waits so long

LIMIT = """
import os, orjson
rest = b""
while chunk := os.read(0, 1 << 20):
    *lines, rest = (rest + chunk).split(b"\\n")
    out = []
    for line in lines:
        message = orjson.loads(line)
        body = message["body"]
        reply = {**body, "in_reply_to": body.get("msg_id")}
        message = {"src": message["dest"], "dest": message["src"], "body": reply}
        out.append(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
    data = b"".join(out)
    while data:
        data = data[os.write(1, data):]
"""


class Measured(NamedTuple):
    """One round: a figure for each of `LABELS`."""

    messages_per_s: float
    cpu_us: float
    request_cpu_us: float
    ping_pong_us: float
    lone_cpu_us: float


LABELS = (
    "messages/s",
    "CPU µs/message",
    "CPU µs/request",
    "ping-pong µs",
    "CPU µs/lone request",
)
LEAST_NODE = [sys.executable, "-m", "performance.least_node"]


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", default=5, show_default=True)
@click.option("--requests", default=20_000, show_default=True)
@click.option("--clients", default=64, show_default=True)
@click.option("--strategy", type=click.Choice([*LEAST]), default="cas", show_default=True)
def main(rounds: int, requests: int, clients: int, strategy: str) -> None:
    turns = []
    for _ in range(rounds):
        node = Child([*NODE, "--strategy", strategy])
        lines = [*requests_of(requests)]
        measured, written = measure(node, lines, clients, requests)
        least, _ = measure(Child([*LEAST_NODE, strategy]), lines, clients, requests)
        bare = Child([sys.executable, "-c", LIMIT], store="nobody")
        limit, _ = measure(bare, written, clients, requests)
        turns.append((measured, least, limit))
    click.echo(f"{requests} requests, {clients} in flight, {rounds} rounds: median (least to most)")
    titles = ("", f"node ({strategy})", "least node", "limit", "node / limit", "least / limit")
    show_table(titles, _rows(turns))


def measure(
    child: Child, lines: list[bytes], clients: int, requests: int
) -> tuple[Measured, list[bytes]]:
    """One round with one child, and all that was sent to it in it.

    `requests`: so many of `lines` are requests of clients, or stand for them.
    """
    child.ask(INIT)
    child.drive(requests_of(len(lines) // 10), clients)  # warm up
    messages, cpu_s, started = child.messages, child.cpu_s(), time.perf_counter()
    child.written = []
    child.drive(iter(lines), clients)
    wall_s, cpu_s = time.perf_counter() - started, child.cpu_s() - cpu_s
    messages, written = child.messages - messages, child.written
    started = time.perf_counter()
    child.drive(requests_of(PING_PONGS), 1)
    ping_pong_s = time.perf_counter() - started
    lone_started_s = child.cpu_s()
    child.drive(requests_of(PING_PONGS), 1, PAUSE_S)
    lone_s = child.cpu_s() - lone_started_s
    child.close()
    measured = Measured(
        messages_per_s=messages / wall_s,
        cpu_us=cpu_s / messages * 1e6,
        request_cpu_us=cpu_s / requests * 1e6,
        ping_pong_us=ping_pong_s / PING_PONGS * 1e6,
        lone_cpu_us=lone_s / PING_PONGS * 1e6,
    )
    return measured, written


def requests_of(count: int) -> Iterator[bytes]:
    """Half sends, half polls; a key is left for a fresh one when it is full, as the workload does."""
    chance = random.Random(count)
    sent = [0] * KEYS
    for number in range(count):
        place = chance.randrange(KEYS)
        generation, offset = divmod(sent[place], SENDS_PER_KEY)
        key = f"{count}.{place}.{generation}"
        body: Body = {"type": "send", "key": key, "msg": number, "msg_id": number}
        if chance.random() < 0.5:
            sent[place] += 1
        else:
            body = {"type": "poll", "offsets": {key: max(0, offset - 2)}, "msg_id": number}
        yield line(f"c{number % 64}", body)


def _rows(turns: list[tuple[Measured, Measured, Measured]]) -> Iterator[tuple[str, ...]]:
    sides = [zip(*side, strict=True) for side in zip(*turns, strict=True)]
    for label, node, least, limit in zip(LABELS, *sides, strict=True):
        form = ",.0f" if label == "messages/s" else ",.1f"
        figures = [spread(side, form) for side in (node, least, limit)]
        yield label, *figures, _ratio(label, node, limit), _ratio(label, least, limit)


def _ratio(label: str, some: tuple[float, ...], limit: tuple[float, ...]) -> str:
    """How many times as good the limit is."""
    pairs = zip(some, limit, strict=True)
    return spread((b / a if label == "messages/s" else a / b for a, b in pairs), ".2f")


if __name__ == "__main__":
    main()
