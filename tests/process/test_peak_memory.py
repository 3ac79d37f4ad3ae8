"""How much memory a node's process takes at most: 40 MiB above what it may keep of the log."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from performance.node_throughput import INIT, KEYS, NODE, SENDS_PER_KEY, Child, Registers, line

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMORY_MIB, BESIDE_MIB, MIB = 4, 40, 1 << 20


class Node(Child):
    """A node on registers, which outlive it."""

    def __init__(self, registers: Registers, *options: str) -> None:
        super().__init__([*NODE, "--memory-mib", str(MEMORY_MIB), *options], registers=registers)
        self.ask(INIT)

    def leave(self, lines: list[bytes]) -> None:
        super().leave(lines)
        self.written.clear()

    def end(self) -> None:
        # `getrusage` would say the parent's peak, if that was higher.
        status = Path(f"/proc/{self.pid}/status").read_text()
        [kib] = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        self.kill()
        assert int(kib) * 1024 <= (MEMORY_MIB + BESIDE_MIB) * MIB


@pytest.mark.parametrize(
    ("size_mb", "width", "integers"),
    [(2.4, 8, True), (20.0, 1_000, False)],
    ids=["small integers", "texts"],
)
def test_a_node_takes_no_more_than_it_may(size_mb: float, width: int, integers: bool) -> None:
    """Neither while a log is filled, nor while it is read back.

    An integer of eight bytes in a line takes forty in memory, and so it is counted.
    """
    registers: Registers = {}
    log: dict[str, list[int | str]] = {}
    count = int(size_mb * 1e6 / width)

    def sends() -> Iterator[bytes]:
        for number in range(count):
            generation = 0 if integers else number // KEYS // SENDS_PER_KEY
            key, msg = f"{number % KEYS}.{generation}", number if integers else f"{number:0{width}}"
            log.setdefault(key, []).append(msg)
            yield line("c0", {"type": "send", "msg_id": number, "key": key, "msg": msg})

    node = Node(registers, "--message-worth-ms", "0")  # nobody waits here to save a message
    for answer in node.ask_all(sends(), max(8, 512 // width)):
        assert answer["type"] == "send_ok", answer
    node.end()
    node = Node(registers)
    for key, messages in log.items():
        at = 0
        while at < len(messages):
            answer = node.ask({"type": "poll", "offsets": {key: at}, "msg_id": 1})
            for offset, msg in answer["msgs"].get(key, ()):
                assert (offset, msg) == (at, messages[at])
                at += 1
    node.end()
