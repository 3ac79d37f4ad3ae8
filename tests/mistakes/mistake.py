"""Runs a node of `table.toml` on the bench, on a clock that makes waits short: 5 s take a quarter of one."""

import os
import re
import shutil
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.commands import test as test_command
from bench.commands.main import main
from bench.loop import RealLoop
from bench.verdict import kept

TABLE = Path(__file__).with_name("table.toml")
LEARNER = Path(__file__).parents[1] / "nodes" / "learner.py"
PAGE = Path(__file__).parents[2] / "docs" / "bench" / "what-the-bench-said.md"
FLAGS = ("--nodes=n0", "--rate=20", "--time-limit=1", "--recovery-time=0", "--seed=1")
PYTHON = f"#!{sys.executable} -SE\nfrom learner import *\n"
JAVASCRIPT = "#!/usr/bin/env node\n"
ANYTHING = "…"
CLOCK = 20  # times as fast as that of the nodes, while these wait
WAITING = ("S", "Z")  # states of a process: it sleeps, or it has ended [proc(5)]
_LOOK_NS = 5_000_000
_NS = 1_000_000_000


@dataclass(frozen=True)
class Mistake:
    """A wrong node: because of what is it wrong (the end of a sentence), and what the bench `said`."""

    because: str
    said: str
    do: str = ""
    python: str | None = None
    javascript: str | None = None
    file: str = ""
    workload: str = "echo"
    flags: Sequence[str] = ()
    mode: int = 0o755

    @property
    def content(self) -> str:
        """The file of its program."""
        if self.python is not None:
            return PYTHON + self.python
        return self.file if self.javascript is None else JAVASCRIPT + self.javascript

    def is_told_by(self, output: str) -> bool:
        """Whether this is what the bench said."""
        parts = map(re.escape, " ".join(self.said.split()).split(ANYTHING))
        return bool(re.search(".*?".join(parts), " ".join(output.split())))


class FastLoop(RealLoop):
    """A real loop whose clock runs faster while all nodes wait, so that no busy machine lets one be late."""

    def __init__(self) -> None:
        super().__init__()
        self._real_ns = self._shown_ns = 0
        self._speed = 1

    def now_ns(self) -> int:
        passed_ns, self._real_ns = super().now_ns() - self._real_ns, super().now_ns()
        self._shown_ns += passed_ns + (self._speed - 1) * min(passed_ns, _LOOK_NS)
        return self._shown_ns

    def _wait(self) -> Any:
        now_ns = self.now_ns()
        self._speed = CLOCK if all_wait() else 1
        wait_ns = (self._heap[0][0] - now_ns) / self._speed if self._heap else _LOOK_NS
        return self._selector.select(0 if self._soon else max(0, min(wait_ns, _LOOK_NS)) / _NS)


def all_wait() -> bool:
    """Whether each process that this one has started waits for something, such as a message. Linux tells."""
    started = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    children = started.read_text().split() if started.exists() else []
    stats = (Path(f"/proc/{child}/stat").read_text().rpartition(")")[2] for child in children)
    return all(each.split()[0] in WAITING for each in stats)


def mistakes() -> Mapping[str, Sequence[Mistake]]:
    """The table, by what goes wrong first."""
    table = tomllib.loads(TABLE.read_text())
    return {name: [Mistake(**each) for each in rows] for name, rows in table.items()}


def told(mistake: Mistake, folder: Path) -> str:
    """What the bench says of the node. The folder gets the program and the run."""
    program = folder / "node"
    program.write_bytes(mistake.content.encode())
    program.chmod(mistake.mode)
    shutil.copy(LEARNER, folder)
    flags = [each.replace("NODE", str(program)) for each in mistake.flags]
    words = [
        "test",
        "-w",
        mistake.workload,
        "--bin",
        str(program),
        "--store",
        str(folder / "store"),
    ]
    with (
        redirect_stdout(StringIO()) as output,
        redirect_stderr(output),
        patch.object(sys, "argv", ["maelstrom", *words, *FLAGS, *flags]),
        patch.object(test_command, "RealLoop", FastLoop),
        patch.object(kept, "draw"),  # half a second
        patch.dict(os.environ, {"COLUMNS": "1000", "MAELSTROM": ""}),
        suppress(SystemExit),
    ):
        main()
    return output.getvalue()
