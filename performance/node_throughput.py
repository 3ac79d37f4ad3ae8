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
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click
import orjson

from bench.services import respond_kv
from bench.watchers import process_cpu_s
from leaderless.core.strategies import DEFAULT, STRATEGIES
from performance.harness import ROOT, Measured, program, show_table, spread
from workloads.interface import Body

# ------------------------------------------------------------ a program on two pipes, and its traffic

NODE = [sys.executable, str(ROOT / "node.py")]
KEYS, SENDS_PER_KEY = 10, 16  # a full key is left for a fresh one, as the workload does

Registers = dict[str | bytes, tuple[Any]]  # cells as `bench.services` has them
INIT: Body = {"type": "init", "msg_id": 0, "node_id": "n0", "node_ids": ["n0"]}


def line(src: str, body: Body) -> bytes:
    """Encode a message to the child."""
    return orjson.dumps(
        {"id": 1, "src": src, "dest": "n0", "body": body}, option=orjson.OPT_APPEND_NEWLINE
    )


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


def served(registers: Registers, body: Body) -> Body:
    """The answer of `lin-kv` with these registers."""
    reply, changes = respond_kv(registers.get, body)
    registers |= changes
    return {**reply, "in_reply_to": body["msg_id"]}


class Driven:
    """A program under test and its traffic; a subclass takes its lines and says lines.

    `store` is the name of the simulated service (an unused name: none), `registers` its state.
    `messages` counts lines in and out.
    """

    def __init__(self, store: str = "lin-kv", registers: Registers | None = None) -> None:
        self._store = store
        self._registers = {} if registers is None else registers
        self.messages = 0

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """Give it lines, and take what it says next."""
        raise NotImplementedError

    def leave(self, lines: list[bytes]) -> None:
        """Give it the last lines, and take no answer."""
        if lines:
            self.turn(lines)

    def ask(self, body: Body) -> Body:
        """Send one request, and return the body of its answer."""
        [answer] = self.ask_all(iter([line("c0", body)]), 1)
        return answer

    def drive(self, requests: Iterator[bytes], in_flight: int, pause_s: float = 0) -> None:
        """Take the answers to all requests (see `ask_all`)."""
        for _ in self.ask_all(requests, in_flight, pause_s):
            pass

    def ask_all(
        self, requests: Iterator[bytes], in_flight: int, pause_s: float = 0
    ) -> Iterator[Body]:
        """The answers to requests, of which `in_flight` are under way; the store is served meanwhile.

        There is a pause of `pause_s` seconds before each turn.
        """
        out = list(islice(requests, in_flight))
        waiting = len(out)
        while waiting:
            if pause_s:
                time.sleep(pause_s)
            said, out = self.turn(out), []
            for message in map(orjson.loads, said):
                if message["dest"] == self._store:
                    out.append(line("lin-kv", served(self._registers, message["body"])))
                    continue
                following = [*islice(requests, 1)]
                out += following
                waiting += len(following) - 1
                yield message["body"]
        self.leave(out)  # what the store answered last


class Child(Driven):
    """A process on two pipes. `written` has all lines that were sent, until it is cleared."""

    def __init__(
        self, command: list[str], store: str = "lin-kv", registers: Registers | None = None
    ) -> None:
        super().__init__(store, registers)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        assert self._process.stdout
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._rest = b""
        self._unread: list[bytes] = []
        self.pid = self._process.pid
        self.written: list[bytes] = []

    def cpu_s(self) -> float:
        """Return the seconds of CPU that it has taken so far."""
        return process_cpu_s(self.pid)

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """Write lines, and wait for at least one chunk of answers."""
        self.leave(lines)
        chunk = b"".join(self._unread) or self._read_chunk()
        self._unread.clear()
        *said, self._rest = (self._rest + chunk).split(b"\n")
        self.messages += len(said)
        return said

    def leave(self, lines: list[bytes]) -> None:
        """Write lines, and keep what comes meanwhile for the next turn."""
        self.messages += len(lines)
        self.written += lines
        data = memoryview(b"".join(lines))
        while data:  # a child whose own pipe is full reads nothing until that is read
            readable, writable, _ = select.select([self._from], [self._to], [])
            if readable:
                self._unread.append(self._read_chunk())
            if writable:
                data = data[os.write(self._to, data[: select.PIPE_BUF]) :]

    def _read_chunk(self) -> bytes:
        chunk = os.read(self._from, 1 << 20)
        if not chunk:
            raise SystemExit(f"the child ended with status {self._process.wait()}")
        return chunk

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.communicate()


# ------------------------------------------------------------ what is measured


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


def measure(child: Child, lines: list[bytes], requests: int) -> tuple[Measured, list[bytes]]:
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


def turn(strategy: str, requests: int) -> tuple[Measured, Measured]:
    """One round with the node, and one with the limit."""
    lines = [*requests_of(requests)]
    node, written = measure(Child([*NODE, "--strategy", strategy]), lines, requests)
    limit, _ = measure(Child([sys.executable, "-c", LIMIT], store="nobody"), written, requests)
    return node, limit


@program(__doc__)
@click.option("--rounds", default=5)
@click.option("--requests", default=20_000)
@click.option("--strategy", type=click.Choice(sorted(STRATEGIES)), default=DEFAULT)
def main(*, rounds: int, requests: int, strategy: str) -> None:
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
