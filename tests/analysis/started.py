"""Programs that tests start and kill, most of them with a Spark of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def command(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]


@contextmanager
def running(module: str, *arguments: object, **options: Any) -> Iterator[Any]:
    """A program (`Popen`) whose output can be read. It is killed with its Java at the end of the block."""
    options |= {"cwd": ROOT, "text": True, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command(module, *arguments), **options) as program:
        try:
            yield program
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)


def wait_until(program: "subprocess.Popen[str]", reached: Callable[[], bool]) -> None:
    """Wait for a program, which must not end meanwhile."""
    while not reached():
        assert program.poll() is None, program.communicate()
        time.sleep(0.1)


def finish(module: str, *arguments: object) -> None:
    """Run a program to its end."""
    subprocess.run(command(module, *arguments), cwd=ROOT, check=True)
