"""How much memory a node takes at most, 40 MiB above what it may keep of the log, and a producer of files."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from performance.node_throughput import INIT, KEYS, NODE, SENDS_PER_KEY, Child, Registers, line

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMORY_MIB, BESIDE_MIB, MIB = 4, 40, 1 << 20
# Appends 58 MB; prints how many KiB it takes after its first append, and at most.
PRODUCER = """
import random, re, sys
from pathlib import Path
import anyio, pandas, leaderless

def kib(name):
    return re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]

async def main():
    async with leaderless.open_log(sys.argv[1], runs="parquet", peers=None) as log:
        await log.append("k", 0)
        print(kib("VmRSS"))

        async def load(task):
            for number in range(task, 65, 8):
                texts = [random.randbytes(500).hex() for _ in range(900)]
                await log.append_many(f"k{number % 16}", texts)

        async with anyio.create_task_group() as tasks:
            for task in range(8):
                tasks.start_soon(load, task)
    print(kib("VmHWM"))

anyio.run(main)
"""


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


def test_a_producer_of_files_takes_no_more_than_it_may(tmp_path: Path) -> None:
    """It had 187 MiB while each thread kept what it had freed."""
    command = [sys.executable, "-c", PRODUCER, f"sqlite:///{tmp_path}/log.db"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    before, most = map(int, told.stdout.split())
    assert most - before <= 150 * 1024
