"""Compare the speed of one node with the fastest possible Python program of its kind.

    python -m performance.node_throughput [--rounds 5] [--requests 20000] [--strategy cas]

One node process is fed through pipes by a driver that plays 64 clients (half sends, half polls, ten
keys, a fresh key after sixteen sends, every poll at the reader's position) and the `lin-kv` service. The
limit is a loop that reads chunks, parses each line with orjson, answers it, and writes once a chunk. It gets
the same lines as the node, with the answers of the store, and answers each with a body of the same size.

The two take turns. A message is a line in or out. CPU is that of the child alone, between first and last
request, without the driver and other load of the machine. A lone request comes after a pause, as with many
nodes; its CPU is mostly that of sleeping and waking. A start is the CPU from exec to `init_ok`, interpreter
included; bytecode is compiled first, as `make setup` and every install do.
"""

import compileall
import sys
from collections.abc import Iterator
from typing import Annotated

import click

from leaderless.core.strategies import DEFAULT, STRATEGIES
from performance.child import INIT, NODE, Child, requests_of
from performance.harness import ROOT, Figures, program, show_table, spread

CLIENTS = 64
LONE = 500
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


def measure(child: Child, lines: list[bytes], requests: int) -> tuple[Figures, list[bytes]]:
    """One round with one child, and all that was sent to it in it.

    `requests`: so many of `lines` are requests of clients, or stand for them.
    """
    child.ask(INIT)
    start_s = child.cpu_s()
    child.drive(requests_of(len(lines) // 10), CLIENTS)  # warm up
    messages, cpu_s = child.messages, child.cpu_s()
    child.written = []
    child.drive(iter(lines), CLIENTS)
    messages, cpu_s, written = child.messages - messages, child.cpu_s() - cpu_s, child.written
    lone_s = child.cpu_s()
    child.drive(requests_of(LONE), 1, PAUSE_S)
    lone_s = child.cpu_s() - lone_s
    child.kill()
    of = {"message": cpu_s / messages, "request": cpu_s / requests, "lone request": lone_s / LONE}
    return {f"CPU µs/{name}": 1e6 * s for name, s in (of | {"start": start_s}).items()}, written


def turn(strategy: str, requests: int) -> tuple[Figures, Figures]:
    """One round with the node, and one with the limit."""
    lines = [*requests_of(requests)]
    node, written = measure(Child([*NODE, "--strategy", strategy]), lines, requests)
    limit, _ = measure(Child([sys.executable, "-c", LIMIT], store="nobody"), written, requests)
    return node, limit


@program
def main(
    *,
    rounds: int = 5,
    requests: int = 20_000,
    strategy: Annotated[str, click.Choice(sorted(STRATEGIES))] = DEFAULT,
) -> None:
    compileall.compile_dir(str(ROOT / "leaderless"), quiet=1)
    turns = [turn(strategy, requests) for _ in range(rounds)]

    def rows() -> Iterator[list[str]]:
        for label in turns[0][0]:
            pairs = [(node[label], limit[label]) for node, limit in turns]
            sides = (spread(side, ".1f") for side in zip(*pairs, strict=True))
            yield [label, *sides, spread((node / limit for node, limit in pairs), ".2f")]

    click.echo(f"{requests} requests, {CLIENTS} in flight, {rounds} rounds: median (least to most)")
    show_table(("", f"node ({strategy})", "limit", "node / limit"), rows())


if __name__ == "__main__":
    main()
