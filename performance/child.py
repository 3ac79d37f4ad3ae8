"""A program under test on two pipes, and the traffic of clients and of `lin-kv` that it gets."""

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

from bench.services.requests import respond_kv
from bench.watchers import process_cpu_s
from performance.harness import ROOT

NODE = [sys.executable, str(ROOT / "node.py")]
KEYS, SENDS_PER_KEY = 10, 16  # a full key is left for a fresh one, as the workload does

Body = dict[str, Any]
Registers = dict[str | bytes, tuple[Any]]  # cells as `bench.services.requests` has them
INIT: Body = {"type": "init", "msg_id": 0, "node_id": "n0", "node_ids": ["n0"]}


def line(src: str, body: Body) -> bytes:
    """A message to the child."""
    message = {"id": 1, "src": src, "dest": "n0", "body": body}
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


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
    `messages` counts lines in and out, `store_calls` those calls.
    """

    def __init__(self, store: str = "lin-kv", registers: Registers | None = None) -> None:
        self._store = store
        self._registers = {} if registers is None else registers
        self.messages = self.store_calls = 0

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """Give it lines, and take what it says next."""
        raise NotImplementedError

    def leave(self, lines: list[bytes]) -> None:
        """Give it the last lines."""
        raise NotImplementedError

    def ask(self, body: Body) -> Body:
        """One request, and its answer."""
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
                    self.store_calls += 1
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
        """CPU that it has taken."""
        return process_cpu_s(self.pid)

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """See `Driven`."""
        self.leave(lines)
        return self._read()

    def leave(self, lines: list[bytes]) -> None:
        """See `Driven`."""
        self.messages += len(lines)
        self.written += lines
        data = memoryview(b"".join(lines))
        while data:  # a child whose own pipe is full reads nothing until that is read
            readable, writable, _ = select.select([self._from], [self._to], [])
            if readable:
                self._unread.append(self._read_chunk())
            if writable:
                data = data[os.write(self._to, data[: select.PIPE_BUF]) :]

    def _read(self) -> list[bytes]:
        """The next messages, at least one chunk's."""
        chunk = b"".join(self._unread) or self._read_chunk()
        self._unread.clear()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.messages += len(lines)
        return lines

    def _read_chunk(self) -> bytes:
        chunk = os.read(self._from, 1 << 20)
        if not chunk:
            raise SystemExit(f"the child ended with status {self._process.wait()}")
        return chunk

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.communicate()
