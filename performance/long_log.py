"""Measure a node on a long log, whose store answers at a limited bandwidth.

    python -m performance.long_log [--size 100] [--width 1000] [--bandwidth 50] [--memory-mib 256] [--fill 0]
                                    [--integers] [--no-whole]

The log of `--size` MB has messages of `--width` bytes, ten keys at a time, each left for a fresh one after
sixteen messages, as the workload does. With `--integers` they are small integers, and a key has 100 000. The
node's own compactor makes its index. Runs are not kept: the store makes each one anew when it is read, so a log
of any length needs no memory here. Everything else is real: a node process, its pipes, and answers of the store
that are held up as its bandwidth says.

For each first poll a node is started: of the newest message, of one in the middle, and of offset 0 of the first
key. Times run from the start of the process. Then one node reads the whole log back, in the order of its keys.
With `--fill`, another node takes so many MB of sends, 64 at a time, and compacts them.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.index import COMPACTED, Index, index_of
from leaderless.core.headlog.records import HEAD, Head, Run, Segment
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import (
    Cas,
    Entry,
    Get,
    Heading,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Put,
    StoreOp,
)
from leaderless.core.pace import Pace
from performance import show_table
from performance.child import INIT, KEYS, NODE, SENDS_PER_KEY, Body, Child, Registers, line
from simulation.driver import Driver

LIMITS = Limits()
IN_FLIGHT = 64
MB, MIB = 1_000_000, 1 << 20


class Shape(NamedTuple):
    """How many messages stand together, and what they are."""

    entries_of_segment: int = 4
    messages_of_entry: int = 2
    messages_of_key: int = SENDS_PER_KEY
    integers: bool = False

    @property
    def messages_of_segment(self) -> int:
        return self.entries_of_segment * self.messages_of_entry


INTEGERS = Shape(128, 8, 100_000, integers=True)  # a segment of them has as many bytes


class LongLog:
    """The registers of a long log; segments and runs are functions of their numbers.

    `width`: the bytes of a message.
    """

    def __init__(self, size_mb: float, width: int, shape: Shape = Shape()) -> None:  # noqa: B008 - a value
        self.width, self.shape = width, shape
        per_segment = shape.messages_of_segment
        self.sealed = int(size_mb * MB / (width * per_segment))
        self.messages = self.sealed * per_segment
        self.kept: dict[str, Any] = {}  # registers but for segments and runs
        self.index_bytes = 0  # of the largest update
        self._runs: dict[str, range] = {}  # the messages of each
        self._compact()

    def _compact(self) -> None:
        driver = Driver(self._apply)
        replica = Replica(driver.clock, "n9", [], LIMITS)
        base = self.sealed * self.shape.entries_of_segment
        replica.head = Head(Heading(version=1, by="n9", sealed=self.sealed, base=base), [])
        self.kept[HEAD] = replica.head.value
        driver.call(Compactor(driver.clock, replica, "n9.x", Pace()).consider())

    @property
    def index(self) -> Index:
        """What `compacted` holds."""
        return index_of(self.kept[COMPACTED])

    def value(self, register: str) -> Any:
        """What a register holds, None if it is missing."""
        if register in self._runs:
            return self._run(register)
        kind, _, number = register.partition("/")
        if kind == "segment" and number.isdecimal():
            return self._segment(int(number)).value
        return self.kept.get(register)

    def _apply(self, op: StoreOp) -> Outcome:
        """Carry out what the compactor asks; it is alone, and no answer is lost."""
        match op:
            case Get(key):
                value = self.value(key)
                return Missing() if value is None else Ok(_json(value))
            case Put():
                return Ok()  # of a tombstone: the segments are read once
            case Cas(key, old, new):
                if key == COMPACTED:
                    self.index_bytes = max(self.index_bytes, len(orjson.dumps([old, new])))
                if key.startswith("run/"):
                    self._runs[key] = self._messages_of(key)
                elif self.kept.get(key) == old:
                    self.kept[key] = _json(new)
                else:
                    return Mismatch()
                return Ok()

    def _messages_of(self, run: str) -> range:
        first, _, last = run.removeprefix("run/").partition("-")
        per_segment = self.shape.messages_of_segment
        return range(int(first) * per_segment, (int(last) + 1) * per_segment)

    def place(self, number: int) -> tuple[str, int]:
        """The key and the offset of a message."""
        turn, place = divmod(number, KEYS)
        generation, offset = divmod(turn, self.shape.messages_of_key)
        return f"{place}.{generation}", offset

    def message(self, number: int) -> str | int:
        return number if self.shape.integers else f"{number:0{self.width}}"

    def _blocks(self, numbers: range) -> dict[str, tuple[int, list[Any]]]:
        blocks: dict[str, tuple[int, list[Any]]] = {}
        for number in numbers:
            key, offset = self.place(number)
            blocks.setdefault(key, (offset, []))[1].append(self.message(number))
        return blocks

    def _segment(self, number: int) -> Segment:
        shape, base = self.shape, number * self.shape.entries_of_segment
        entries = []
        for slot in range(base, base + shape.entries_of_segment):
            numbers = range(slot * shape.messages_of_entry, (slot + 1) * shape.messages_of_entry)
            entries.append(Entry(f"n{slot % 5}.x/0", slot, self._blocks(numbers), {}))
        return Segment(base, entries)

    def _run(self, register: str) -> dict[str, Any]:
        numbers = self._runs[register]
        per_entry = self.shape.messages_of_entry
        base, end = numbers.start // per_entry, numbers.stop // per_entry
        return Run(base, end, self._blocks(numbers), {}, {}).value


def _json(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


class Node(Child):
    """A node behind a store of `bandwidth` bytes a second."""

    def __init__(
        self, bandwidth: float, memory_mib: float, registers: Registers | None = None
    ) -> None:
        self.started = time.perf_counter()
        super().__init__([*NODE, "--memory-mib", str(memory_mib)], registers=registers)
        self._bandwidth = bandwidth
        self.bytes = 0
        self.ask(INIT)

    def _write(self, lines: list[bytes]) -> None:
        answers = sum(len(each) for each in lines if b'"src":"lin-kv"' in each[:60])
        self.bytes += answers
        time.sleep(answers / self._bandwidth)
        super()._write(lines)
        self.written.clear()

    @property
    def peak_mib(self) -> float:
        """The largest resident memory of the process so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        [kib] = [row.split()[1] for row in status.splitlines() if row.startswith("VmHWM")]
        return int(kib) / 1024


class Reader(Node):
    """A node on a `LongLog`; what it writes is kept for itself."""

    def __init__(self, log: LongLog, bandwidth: float, memory_mib: float) -> None:
        self._log = log
        super().__init__(bandwidth, memory_mib)

    def _serve(self, body: Body) -> Body:
        register = body["key"]
        if register not in self._registers and (value := self._log.value(register)) is not None:
            if body["type"] == "read":
                self.calls += 1
                return {"type": "read_ok", "value": value, "in_reply_to": body["msg_id"]}
            self._registers[register] = (value,)
        return super()._serve(body)

    def poll(self, key: str, offset: int) -> list[list[Any]]:
        """The messages of a key from an offset on."""
        answer = self.ask({"type": "poll", "offsets": {key: offset}, "msg_id": 1})
        found: list[list[Any]] = answer.get("msgs", {}).get(key, [])
        return found


class Figures(NamedTuple):
    """What one node did: seconds, of them on a processor, calls of the store, bytes of its answers, memory."""

    seconds: float
    cpu_s: float
    calls: int
    bytes: int
    peak_mib: float

    @property
    def cells(self) -> list[str]:
        return [
            f"{self.seconds:.2f}",
            f"{self.cpu_s:.2f}",
            str(self.calls),
            f"{self.bytes / MB:.1f}",
            f"{self.peak_mib:.0f}",
        ]


def first_poll(log: LongLog, number: int, bandwidth: float, memory_mib: float) -> Figures:
    """Start a node and poll the message `number`, until it is there."""
    key, offset = log.place(number)
    node = Reader(log, bandwidth, memory_mib)
    while not (found := node.poll(key, offset)):
        pass
    figures = _figures(node)
    if found[0] != [offset, log.message(number)]:
        raise SystemExit(f"the node answers {found[0]} for message {number}")
    node.kill()
    return figures


def read_back(log: LongLog, bandwidth: float, memory_mib: float) -> Figures:
    """One node reads the whole log."""
    node, expected = Reader(log, bandwidth, memory_mib), 0
    of_keys = KEYS * log.shape.messages_of_key
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
    figures = _figures(node)
    node.kill()
    if expected != log.messages:
        raise SystemExit(f"{expected} messages of {log.messages} were read")
    return figures


def fill(size_mb: float, width: int, bandwidth: float, memory_mib: float) -> tuple[Figures, int]:
    """A node takes sends; returns also the bytes of the index in the end."""
    registers: Registers = {}
    node = Node(bandwidth, memory_mib, registers)
    count = int(size_mb * MB / width)
    for answer in node.ask_all(_sends(count, width), IN_FLIGHT):
        if answer["type"] != "send_ok":
            raise SystemExit(f"a send is answered {answer}")
    figures = _figures(node)
    node.kill()
    return figures, len(orjson.dumps(registers.get(COMPACTED)))


def _sends(count: int, width: int) -> Iterator[bytes]:
    for number in range(count):
        turn, place = divmod(number, KEYS)
        body = {"key": f"{place}.{turn // SENDS_PER_KEY}", "msg": f"{number:0{width}}"}
        yield line("c0", {"type": "send", "msg_id": number, **body})


def _figures(node: Node) -> Figures:
    seconds = time.perf_counter() - node.started
    return Figures(seconds, node.cpu_s(), node.calls, node.bytes, node.peak_mib)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--size", default=100.0, show_default=True, help="MB of messages")
@click.option("--width", default=1_000, show_default=True, help="bytes of a message")
@click.option(
    "--bandwidth", default=50.0, show_default=True, help="MB a second, of the store's answers"
)
@click.option("--memory-mib", default=256.0, show_default=True, help="of the node, see its --help")
@click.option(
    "--fill", "fill_mb", default=0.0, show_default=True, help="MB that another node takes"
)
@click.option("--integers", is_flag=True, help="messages are small integers; say --width 8")
@click.option("--whole/--no-whole", default=True, show_default=True, help="read the whole log back")
def main(
    *,
    size: float,
    width: int,
    bandwidth: float,
    memory_mib: float,
    fill_mb: float,
    integers: bool,
    whole: bool,
) -> None:
    log = LongLog(size, width, INTEGERS if integers else Shape())
    rate = bandwidth * MB
    listed = len(orjson.dumps(log.kept[COMPACTED]))
    click.echo(
        f"{log.messages} messages of {width} bytes; {len(log.index.listed)} runs and pages in the index, "
        f"{listed} bytes; its largest update had {log.index_bytes} bytes\n"
    )
    polls = {"newest": log.messages - 1, "in the middle": log.messages // 2, "oldest": 0}
    rows = [
        (name, *first_poll(log, number, rate, memory_mib).cells) for name, number in polls.items()
    ]
    if whole:
        rows.append(("the whole log", *read_back(log, rate, memory_mib).cells))
    if fill_mb:
        figures, index_bytes = fill(fill_mb, width, rate, memory_mib)
        rows.append((f"takes {fill_mb:g} MB, index {index_bytes} bytes", *figures.cells))
    show_table(("poll", "s", "CPU s", "calls of the store", "MB read", "peak MiB"), rows)


if __name__ == "__main__":
    main()
