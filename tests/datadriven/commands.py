"""Plays a transcript of commands: of `leaderless` on one log in memory, of `./maelstrom`, or of a shell.

    > produce k '{"a": 1}' --json   a command and its arguments, as a shell splits them, with Python's escapes
    > produce-batch k < 1\\n2        what it reads from stdin

Those of `./maelstrom` stand in a folder of their own, and no run is made:

    > test --bin node --rate 9      a command
    > ends 1 [7-2]                  from now on runs end so, all or those from this seed or of this workload
    > real                          a real tool is there; `named /nowhere`: MAELSTROM
    > run 'nodes=3.2' invalid unseen send_p50_ms=4     runs of a sweep end so that have this title (and this
                                  repetition), with anomalies and figures; `all`: all others, from now on
    > folders results             what is in a folder
    > bring valid-3-nodes         a run of `tests.stores` is here, under its name
    > history a.edn 'ok add 1, ok read [1]'     a history: what its clients did, see `operations`
    > node echo_wrong             a node of `tests/nodes`, with its kit, stands in the folder
    > write nodes.txt TEXT          a file beside `node`; `show nodes.txt`
    > git add lib.js                as git does it

Those of `sh` begin in an empty folder:

    > say "$INIT" | node --log-level error    lines from c1 with these bodies, to a node as a process
    > for loop in asyncio trio; do node --backend $loop < /dev/null; done

Below a command stand what it writes, a line for each run of `test` with its options that are no defaults, the
program that it becomes, and its exit status if it is not 0. Runs of a sweep take 15 s; at one that is `stopped`
somebody types Ctrl-C.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from bench.commands import demo as demo_command
from bench.commands import sweep as sweep_command
from bench.commands import test as test_command
from bench.commands.main import main as maelstrom
from bench.options import TestOptions
from bench.sweep import making
from bench.sweep.jobs import Job
from bench.terminal import Console
from leaderless.cli import main as leaderless
from runs.sweeps import VALID, Row
from tests.datadriven.runner import NOTHING, Player, chosen_of
from tests.programs import ROOT, need
from tests.stores import STORES

HIDDEN_LINES = ("Usage: ", "Try 'maelstrom ", "Traceback")
TIME = re.compile(r'(?<= time=)"[^"]*"|(?<=timestamp=)"[^"]*"|20\d{6}T\d{6}\.\d{6}')
NOT_TOLD = re.compile(  # how long one took, or waits; who committed
    r"((?:\b(?:request|time).ms|\bby|\blag_s|lag_seconds\{.*\}|(?:bytes|requests)_\w+_total)\W+)\d[\w.@-]*"
)
OF_A_LOG = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ ")  # when something happened
HIDDEN = ("bin", "start_spread_ms")
HANGS_S = 60.0
PRELUDE = f"""
INIT='{{"type":"init","msg_id":1,"node_id":"n0","node_ids":["n0"]}}'
ROOT={ROOT}
python() {{ {sys.executable} "$@"; }}
node() {{ python {ROOT}/node.py "$@"; }}
say() {{ for body; do printf '{{"src":"c1","dest":"n0","body":%s}}\\n' "$body"; done; }}
"""


def unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape")


class Commands(Player):
    """Runs commands of `leaderless`."""

    main: Callable[[list[str]], int | None] = staticmethod(leaderless)

    def command(self, command: str) -> list[str]:
        text, _, given = command.partition(" < ")
        name, *words = map(unescaped, shlex.split(text))
        own: Callable[..., list[str] | None] | None = getattr(self, f"_{name}", None)
        return (own(*words) if own else self.told([name, *words], unescaped(given))) or [NOTHING]

    def told(self, words: list[str], given: str) -> list[str]:
        """What a command writes, and how it ends."""
        written = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with ExitStack() as stack:
            for each in (redirect_stdout(written), redirect_stderr(written), *self.patches(given)):
                stack.enter_context(each)
            try:
                status: Any = self.main(words)
            except SystemExit as ended:
                status = ended.code
        written.seek(0)
        lines = [self.shown(line) for line in written.read().splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith(HIDDEN_LINES)]
        return [*lines, *([f"exit status {status}"] if status else [])]

    def patches(self, given: str) -> Sequence[AbstractContextManager[Any]]:
        """What is other than in earnest; `given`: what the command reads."""
        stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
        store = f"memory:{id(self)}"
        return patch.object(sys, "stdin", stdin), patch.dict(os.environ, LEADERLESS_STORE=store)

    def shown(self, line: str) -> str:
        """A line that was written, without what differs each time."""
        return NOT_TOLD.sub(r"\1...", line.replace(f"memory:{id(self)}", "memory:log"))


class Shell(Player):
    """Runs commands of a shell."""

    def play(self, text: str) -> str:
        with tempfile.TemporaryDirectory() as self._folder:
            return super().play(text)

    def command(self, command: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-c", PRELUDE + command],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        status = [f"exit status {done.returncode}"] if done.returncode else []
        errors = [OF_A_LOG.sub("", line) for line in done.stderr.splitlines()]
        return [*done.stdout.splitlines(), *errors, *status] or [NOTHING]


class Benches(Commands):
    """Runs commands of `./maelstrom` in a folder of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._environment = {"COLUMNS": "1000", "MAELSTROM": ""}
        self._statuses: dict[str, str] = {}  # of runs, by seed or workload; "": all others
        self._ended: dict[str, tuple[str, ...]] = {"all": (VALID,)}  # runs of a sweep, by title

    def play(self, text: str) -> str:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            Path("node").touch(mode=0o755)
            return super().play(text).replace(folder, "FOLDER").replace(str(ROOT), "PROJECT")

    def main(self, words: list[str]) -> None:
        with patch.object(sys, "argv", ["maelstrom", *words]):
            maelstrom()

    def patches(self, given: str) -> Sequence[AbstractContextManager[Any]]:
        return (
            patch.object(sys, "tracebacklimit", 0, create=True),
            patch.object(test_command, "run_test", self._made),
            patch.object(demo_command, "run_test", self._made),
            patch.object(making, "perform", self._swept),
            patch.object(sweep_command, "write_machine"),
            patch.object(shutil, "which", {"java": "/usr/bin/java"}.get),
            patch.object(os, "execv", self._becomes),
            patch.dict(os.environ, self._environment),
        )

    def shown(self, line: str) -> str:
        return line.rstrip()

    def _made(self, options: TestOptions, console: Console) -> int:
        chosen = [
            f"{each.name}={value}"
            for each in fields(options)
            if (value := getattr(options, each.name)) != each.default and each.name not in HIDDEN
        ]
        console.print("a run:", " ".join(chosen))
        known = [self._statuses.get(each) for each in (options.seed, options.workload, "")]
        return int(next(filter(None, known), 0))

    def _swept(self, job: Job, _folder: Path, _tick: making.Tick) -> Row:
        title = job.cell.title
        names = ("all", title, f"{title}.{job.repetition}")
        known = [self._ended[each] for each in names if each in self._ended]
        verdict, *words = known[-1]
        if verdict == "stopped":
            raise KeyboardInterrupt
        numbers = {"valid": float(verdict == VALID)}
        numbers |= {name: float(number) for name, number in chosen_of([*known[0], *words]).items()}
        return Row(
            *(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run", verdict, 0),
            *(numbers.pop("seconds", 15.0), "2026-01-02T03:04:05", job.cell.expect),
            figures=dict(numbers),
            anomalies=[word for word in words if "=" not in word],
            workload=job.cell.options.workload,
            node=job.cell.node,
        )

    def _becomes(self, path: Path, words: list[str]) -> NoReturn:
        sys.stdout.write(f"it becomes {path} {shlex.join(words[1:])}\n")
        sys.exit(0)

    def _ends(self, status: str, seed: str = "") -> None:
        self._statuses[seed] = status

    def _run(self, title: str, *end: str) -> None:
        if title == "all":
            self._ended.clear()
        self._ended[title] = end

    def _git(self, *words: str) -> None:
        subprocess.run([need("git"), *words], check=True, capture_output=True)

    def _folders(self, path: str) -> list[str]:
        return sorted(TIME.sub("TIME", each.name) for each in Path(path).iterdir())

    def _node(self, name: str) -> None:
        for file in (f"{name}.py", "maelstrom_node.py"):
            shutil.copy(ROOT / "tests/nodes" / file, file)

    def _bring(self, name: str) -> None:
        shutil.copytree(STORES / name, name)

    def _history(self, path: str, told: str) -> None:
        Path(path).write_text(operations(told))

    def _real(self) -> None:
        Path("maelstrom").touch(mode=0o755)
        self._named(str(Path.cwd()))

    def _named(self, name: str) -> None:
        self._environment["MAELSTROM"] = name

    def _show(self, path: str) -> list[str]:
        return [TIME.sub('"..."', line) for line in Path(path).read_text().splitlines()]

    def _write(self, path: str, text: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


def operations(told: str) -> str:
    """Lines of a history.edn: every operation is that of a process of its own, or of the nemesis."""
    lines = []
    for number, (kind, f, value) in enumerate(each.split(" ", 2) for each in told.split(", ")):
        process = ":nemesis" if f.startswith("start") else number
        rest = f":process {process}, :f :{f}, :value {value}"
        lines += [f"{{:type :invoke, {rest}}}", f"{{:type :{kind}, {rest}}}"]
    return "\n".join(lines)
