"""Compare the speed of one node with the fastest possible Python program of its kind.

    python performance/node_throughput.py [--rounds 5] [--requests 20000] [--clients 64] [--strategy cas]

One node process is fed through pipes by a driver that plays 64 clients (half sends, half polls, ten
keys, a fresh key after sixteen sends, every poll at the reader's position) and the `lin-kv` service. The
limit is a loop that reads chunks, parses each line with orjson, answers it, and writes once a chunk.
Node and limit take turns. The limit gets the same lines as the node of its pair, with the answers of the
store, and answers each with a body of the same size. A message is a line in or out. CPU is that of the
child alone, between first and last request, without the driver and other load of the machine. Messages a
second are measured on the wall clock, which includes both. Ping-pong is one request at a time. A lone
request comes after a pause, as with many nodes; its CPU is mostly that of sleeping and waking.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
KEYS, SENDS_PER_KEY = 10, 16
PING_PONGS = 500
PAUSE_S = 0.0003  # before a lone request: a node of 16 at 10 000 requests a second waits so long
CPUCLOCK_SCHED = 2  # as clock_getcpuclockid(3) of glibc makes it

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
    """One round: messages a second; in microseconds CPU a message, ping-pong, CPU of a lone request."""

    messages_per_s: float
    cpu_us: float
    ping_pong_us: float
    lone_cpu_us: float


class Child:
    """A program under test and its traffic."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        assert self._process.stdout
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._registers: dict[str, Any] = {}
        self._rest = b""
        self.messages = 0
        self.told: list[bytes] = []

    def cpu_s(self) -> float:
        """CPU that the child has used, to the nanosecond: Linux gives each process a clock of its own."""
        return time.clock_gettime((~self._process.pid << 3) | CPUCLOCK_SCHED)

    def write(self, lines: list[bytes]) -> None:
        """Send messages in one write."""
        self.messages += len(lines)
        self.told += lines
        data = b"".join(lines)
        while data:
            data = data[os.write(self._to, data) :]

    def read(self) -> list[bytes]:
        """The next messages, at least one chunk's."""
        chunk = os.read(self._from, 1 << 20)
        if not chunk:
            raise SystemExit(f"the child ended with status {self._process.wait()}")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.messages += len(lines)
        return lines

    def drive(
        self, requests: Iterator[bytes], in_flight: int, store: str = "lin-kv", pause_s: float = 0
    ) -> None:
        """Keep `in_flight` requests under way until there are none left, serving `store` meanwhile.

        There is a pause of `pause_s` seconds before each write.
        """
        first = [line for line, _ in zip(requests, range(in_flight), strict=False)]
        waiting, out = len(first), first
        while waiting:
            if pause_s:
                time.sleep(pause_s)
            self.write(out)
            out = []
            for line in self.read():
                message = orjson.loads(line)
                if message["dest"] == store:
                    out.append(_line("lin-kv", self._store(message["body"])))
                    continue
                waiting -= 1
                if (request := next(requests, None)) is not None:
                    out.append(request)
                    waiting += 1

    def close(self) -> None:
        """End the child."""
        os.close(self._to)
        self._process.stdin = None
        self._process.communicate(timeout=10)

    def _store(self, body: dict[str, Any]) -> dict[str, Any]:
        reply = self._apply(body)
        reply["in_reply_to"] = body["msg_id"]
        return reply

    def _apply(self, body: dict[str, Any]) -> dict[str, Any]:
        key, registers = body["key"], self._registers
        if body["type"] == "cas" and key not in registers and body.get("create_if_not_exists"):
            registers[key] = body["to"]
            return {"type": "cas_ok"}
        if body["type"] == "write":
            registers[key] = body["value"]
            return {"type": "write_ok"}
        if key not in registers:
            return {"type": "error", "code": 20}
        if body["type"] == "read":
            return {"type": "read_ok", "value": registers[key]}
        if registers[key] != body["from"]:
            return {"type": "error", "code": 22}
        registers[key] = body["to"]
        return {"type": "cas_ok"}


def main() -> None:
    """Measure in alternating rounds and print medians with their spread."""
    options = _options()
    node = [sys.executable, str(ROOT / "node.py"), "--strategy", options.strategy]
    pairs = []
    for _ in range(options.rounds):
        measured, told = measure(node, list(_requests(options.requests)), options)
        limit, _ = measure([sys.executable, "-c", LIMIT], told, options, store="nobody")
        pairs.append((measured, limit))
    _show(pairs, options)


def measure(
    command: list[str], lines: list[bytes], options: argparse.Namespace, store: str = "lin-kv"
) -> tuple[Measured, list[bytes]]:
    """Run one round with one child; return its figures and the lines that it received."""
    child = Child(command)
    init = {"type": "init", "msg_id": 0, "node_id": "n0", "node_ids": ["n0"]}
    child.drive(iter([_line("c0", init)]), 1)
    child.drive(_requests(options.requests // 10), options.clients, store)  # warm up
    messages, cpu_s, started = child.messages, child.cpu_s(), time.perf_counter()
    child.told = []
    child.drive(iter(lines), options.clients, store)
    wall_s, cpu_s = time.perf_counter() - started, child.cpu_s() - cpu_s
    messages, told = child.messages - messages, child.told
    started = time.perf_counter()
    child.drive(_requests(PING_PONGS), 1, store)
    ping_pong_s = time.perf_counter() - started
    lone_started_s = child.cpu_s()
    child.drive(_requests(PING_PONGS), 1, store, PAUSE_S)
    lone_s = child.cpu_s() - lone_started_s
    child.close()
    measured = Measured(
        messages_per_s=messages / wall_s,
        cpu_us=cpu_s / messages * 1e6,
        ping_pong_us=ping_pong_s / PING_PONGS * 1e6,
        lone_cpu_us=lone_s / PING_PONGS * 1e6,
    )
    return measured, told


def _requests(count: int) -> Iterator[bytes]:
    """Half sends, half polls; a key is left for a fresh one when it is full, as the workload does."""
    chance = random.Random(count)
    sent = [0] * KEYS
    for number in range(count):
        place = chance.randrange(KEYS)
        generation, offset = divmod(sent[place], SENDS_PER_KEY)
        key = f"{count}.{place}.{generation}"
        body: dict[str, Any]
        if chance.random() < 0.5:
            body = {"type": "send", "key": key, "msg": number, "msg_id": number}
            sent[place] += 1
        else:
            body = {"type": "poll", "offsets": {key: max(0, offset - 2)}, "msg_id": number}
        yield _line(f"c{number % 64}", body)


def _line(src: str, body: dict[str, Any]) -> bytes:
    message = {"id": 1, "src": src, "dest": "n0", "body": body}
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--strategy", default="cas")
    return parser.parse_args()


def _show(pairs: list[tuple[Measured, Measured]], options: argparse.Namespace) -> None:
    table = Table(
        title=f"{options.requests} requests, {options.clients} in flight, {options.rounds} rounds: "
        "median (least to most)"
    )
    table.add_column("")
    for name in (f"node ({options.strategy})", "limit", "ratio of a pair"):
        table.add_column(name, justify="right")
    figures: list[tuple[str, Callable[[Measured], float], bool]] = [
        ("messages/s", lambda one: one.messages_per_s, True),
        ("CPU µs/message", lambda one: one.cpu_us, False),
        ("ping-pong µs", lambda one: one.ping_pong_us, False),
        ("CPU µs/lone request", lambda one: one.lone_cpu_us, False),
    ]
    for label, figure, more_is_better in figures:
        node, limit = ([figure(one) for one in side] for side in zip(*pairs, strict=True))
        ratios = [b / a if more_is_better else a / b for a, b in zip(node, limit, strict=True)]
        table.add_row(label, _spread(node, ",.1f"), _spread(limit, ",.1f"), _spread(ratios, ".2f"))
    Console().print(table)


def _spread(values: list[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
