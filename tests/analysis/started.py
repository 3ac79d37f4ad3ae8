"""Programs that tests start and kill, most of them with a Spark of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.programs import ROOT


def module(name: str, *arguments: object) -> list[object]:
    """The command that runs a module of this project."""
    return [sys.executable, "-m", name, *arguments]


@contextmanager
def running(*command: object, **options: Any) -> Iterator[Any]:
    """A program (`Popen`) whose output can be read. It is killed with its Java at the end of the block."""
    options |= {"cwd": ROOT, "text": True, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen([*map(str, command)], **options) as program:
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
