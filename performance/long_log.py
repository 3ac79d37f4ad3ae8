"""Measure a node on a long log, whose store answers at a limited bandwidth.

    python -m performance.long_log [--size 100] [--width 1000] [--bandwidth 50] [--memory-mib 256]
                                    [--integers] [--no-whole]

One node takes `--size` MB of sends of `--width` bytes, a few at a time, and compacts them: ten keys at a time,
each left for a fresh one after sixteen messages, as the workload does. With `--integers` messages are small
integers, and a key has 100 000; say `--width 8`. The registers stay in this process. All else is real: node
processes, their pipes, and answers of the store that are held up as its bandwidth (MB a second) says, but for
the first node.

For each first poll a node is started: of the newest message, of one in the middle, and of offset 0 of the first
key. Times run from the start of the process. Then, unless `--no-whole`, one node reads the whole log back, in
the order of its keys.
"""

import time
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import click

from performance.child import INIT, KEYS, NODE, SENDS_PER_KEY, Child, Registers, line
from performance.harness import MB, peak_mb, program, show_table

# For a node that takes a log: nobody waits here to save a message.
EAGER = (
    "--message-worth-ms",
    "0",
)
INTEGERS_PER_KEY = 100_000
MIB = 1 << 20


class Figures(NamedTuple):
    """What one node did: seconds, of them on a processor, calls of the store, bytes of its answers, memory."""

    seconds: float
    cpu_s: float
    calls: int
    bytes: int
    peak_mib: float

    @property
    def cells(self) -> list[str]:
        """As a row of the table has them."""
        times = f"{self.seconds:.2f}", f"{self.cpu_s:.2f}"
        return [*times, str(self.calls), f"{self.bytes / MB:.1f}", f"{self.peak_mib:.0f}"]


class LongLog:
    """The messages of a log, each of `width` bytes, and the registers that hold it."""

    def __init__(self, size_mb: float, width: int, *, integers: bool = False) -> None:
        self.width, self.integers = width, integers
        self.messages = int(size_mb * MB / width)
        self.messages_of_key = INTEGERS_PER_KEY if integers else SENDS_PER_KEY
        self.registers: Registers = {}

    def place(self, number: int) -> tuple[str, int]:
        """The key and the offset of a message."""
        turn, place = divmod(number, KEYS)
        generation, offset = divmod(turn, self.messages_of_key)
        return f"{place}.{generation}", offset

    def message(self, number: int) -> str | int:
        """The message of a number."""
        return number if self.integers else f"{number:0{self.width}}"

    def sends(self) -> Iterator[bytes]:
        """All of it, as requests."""
        for number in range(self.messages):
            body = {"key": self.place(number)[0], "msg": self.message(number)}
            yield line("c0", {"type": "send", "msg_id": number, **body})


class Node(Child):
    """A node on the registers of a log, behind a store of `bandwidth` bytes a second."""

    def __init__(
        self, log: LongLog, bandwidth: float, memory_mib: float, options: Sequence[str] = ()
    ) -> None:
        self.started = time.perf_counter()
        command = [*NODE, "--memory-mib", str(memory_mib), *options]
        super().__init__(command, registers=log.registers)
        self._bandwidth = bandwidth
        self.bytes = 0
        self.ask(INIT)

    def leave(self, lines: list[bytes]) -> None:
        """Send lines, those of the store as fast as it may; nothing is kept."""
        answers = sum(len(each) for each in lines if b'"src":"lin-kv"' in each[:60])
        self.bytes += answers
        time.sleep(answers / self._bandwidth)
        super().leave(lines)
        self.written.clear()

    def poll(self, key: str, offset: int) -> list[list[Any]]:
        """The messages of a key from an offset on."""
        answer = self.ask({"type": "poll", "offsets": {key: offset}, "msg_id": 1})
        found: list[list[Any]] = answer.get("msgs", {}).get(key, [])
        return found

    def end(self) -> Figures:
        """What it did until now."""
        seconds, peak_mib = time.perf_counter() - self.started, peak_mb(self.pid) * MB / MIB
        figures = Figures(seconds, self.cpu_s(), self.store_calls, self.bytes, peak_mib)
        self.kill()
        return figures


def take(log: LongLog, memory_mib: float) -> Figures:
    """A node takes all messages, and writes them into the registers."""
    node = Node(log, inf, memory_mib, EAGER)
    for answer in node.ask_all(log.sends(), max(8, 512 // log.width)):
        if answer["type"] != "send_ok":
            raise SystemExit(f"a send is answered {answer}")
    return node.end()


def first_poll(log: LongLog, number: int, bandwidth: float, memory_mib: float) -> Figures:
    """Start a node and poll the message `number`, until it is there."""
    key, offset = log.place(number)
    node = Node(log, bandwidth, memory_mib)
    while not (found := node.poll(key, offset)):
        pass
    if found[0] != [offset, log.message(number)]:
        raise SystemExit(f"the node answers {found[0]} for message {number}")
    return node.end()


def read_back(log: LongLog, bandwidth: float, memory_mib: float) -> Figures:
    """One node reads the whole log."""
    node, expected = Node(log, bandwidth, memory_mib), 0
    of_keys = KEYS * log.messages_of_key
    for first in range(0, log.messages, of_keys):
        for place in range(KEYS):
            numbers = range(first + place, min(log.messages, first + of_keys), KEYS)
            key, found = f"{place}.{first // of_keys}", 0
            while found < len(numbers):
                for offset, msg in node.poll(key, found):
                    if (offset, msg) != (found, log.message(numbers[found])):
                        raise SystemExit(
                            f"the node answers {offset}, {msg!s:.20} for {found} of {key}"
                        )
                    found += 1
            expected += found
    if expected != log.messages:
        raise SystemExit(f"{expected} messages of {log.messages} were read")
    return node.end()


@program
def main(
    *,
    size: float = 100.0,
    width: int = 1_000,
    bandwidth: float = 50.0,
    memory_mib: float = 256.0,
    integers: bool = False,
    no_whole: bool = False,
) -> None:
    log, rate = LongLog(size, width, integers=integers), bandwidth * MB
    click.echo(f"{log.messages} messages of {width} bytes\n")

    def rows() -> Iterator[list[str]]:
        yield ["takes them", *take(log, memory_mib).cells]
        polls = {"newest": log.messages - 1, "in the middle": log.messages // 2, "oldest": 0}
        for name, number in polls.items():
            yield [name, *first_poll(log, number, rate, memory_mib).cells]
        if not no_whole:
            yield ["the whole log", *read_back(log, rate, memory_mib).cells]

    show_table(("poll", "s", "CPU s", "calls of the store", "MB read", "peak MiB"), rows())


if __name__ == "__main__":
    main()
