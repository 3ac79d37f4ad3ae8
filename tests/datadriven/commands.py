"""Plays a transcript of commands of `leaderless` on one log in memory.

    > produce k '{"a": 1}' --json   a command and its arguments, as a shell splits them, with Python's escapes
    > produce-batch k < 1\\n2        what it reads from stdin, with Python's escapes

Below stand what it writes to stdout, then to stderr, and its exit status if it is not 0.
"""

import io
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from leaderless.cli import main
from tests.datadriven.runner import NOTHING, Player

TIME = re.compile(r"(?<=request.ms)(\W+)[0-9.]+")  # of a request of the store


def unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape")


class Commands(Player):
    """Runs commands."""

    def command(self, command: str) -> list[str]:
        words, _, given = command.partition(" < ")
        written = [io.TextIOWrapper(io.BytesIO()) for _ in range(2)]
        stdin = io.TextIOWrapper(io.BytesIO(unescaped(given).encode()))
        store = f"memory:transcript-{id(self)}"
        with (
            redirect_stdout(written[0]),
            redirect_stderr(written[1]),
            patch.object(sys, "stdin", stdin),
            patch.dict(os.environ, LEADERLESS_STORE=store),
        ):
            status = main([unescaped(word) for word in shlex.split(words)])
        lines: list[str] = []
        for file in written:
            file.seek(0)
            lines += TIME.sub(r"\1...", file.read().replace(store, "memory:log")).splitlines()
        return [*lines, *([f"exit status {status}"] if status else [])] or [NOTHING]
