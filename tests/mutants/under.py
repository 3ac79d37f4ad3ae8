"""Runs tests with a mutant alive, each in a process of its own.

To start Python and to import what tests import takes longer than most of these tests. So one process has
imported all of these tests and forks for each: `python -m tests.mutants.under`. It reads a line `[name, test]`
for each and answers with a line `[exit status of pytest, what it said]`. It ends when its input does.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[2]
# The package is imported before pytest: a mutant of a function changes it in every module that has it.
ALREADY_IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"
# What it says of a failure matters to nobody, so no module is compiled anew for its assertions.
PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "--assert", "plain", "-W", ALREADY_IMPORTED]


def status_of(name: str, test: str) -> tuple[int, str]:
    """The exit status of pytest for a test while a mutant is alive, and what it said.

    When the test cannot be run at all, the status is that of a wrong usage: else it would look like a test
    that fails, and the mutant like one that was found.
    """
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps([name, test]) + "\n")
    server.stdin.flush()
    status, said = json.loads(server.stdout.readline())
    return status, said


@cache
def _server() -> "subprocess.Popen[str]":
    """The process that forks. It ends with this one, whose end closes its input."""
    command = [sys.executable, "-m", "tests.mutants.under"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def main() -> None:
    """Answer until the input ends."""
    from tests.mutants.cases import CASES

    for module in ("tests.conftest", "tests.datadriven.sinks"):
        import_module(module)
    for file in {case.test.partition(".py")[0] for case in CASES.values() if case.test}:
        import_module(file.replace("/", "."))
    for line in sys.stdin:
        name, test = json.loads(line)
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                os._exit(_status(name, test, output))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            said = output.read().decode(errors="replace")
        print(json.dumps([status, said]), flush=True)  # noqa: T201  # the answer


def _status(name: str, test: str, output: IO[bytes]) -> int:
    """Run the test in this process, which writes into `output` from now on."""
    from tests.mutants.cases import CASES

    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    try:
        mutant = CASES[name].mutant
        assert mutant, f"{name} is no mutant"
        with mutant.alive():
            return int(pytest.main([test, *PYTEST]))
    except BaseException:
        traceback.print_exc()
        return int(pytest.ExitCode.USAGE_ERROR)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main()
