"""Why a program could not be started, and what to do about it."""

import errno
import os
from pathlib import Path

from bench.failure import RunFailure

_SHEBANG = "#!/usr/bin/env python3"


def cannot_start(node: str, program: str, error: OSError) -> RunFailure:
    """The report for an error of starting `program`."""
    hint = _hint(program, error)
    return RunFailure(f"Node {node} cannot be started: {program}: {error.strerror}. {hint}")


def _hint(program: str, error: OSError) -> str:
    interpreter = _interpreter(program)
    missing = interpreter and not os.access(interpreter, os.X_OK)
    match error.errno:
        case errno.ENOEXEC:
            return f"A script needs a first line such as {_SHEBANG}."
        case errno.ENOENT if missing and Path(program).exists():
            return f"Its first line asks for {interpreter}, which is not there: try {_SHEBANG}."
        case errno.EACCES if not os.access(program, os.X_OK):
            return f"Make it executable: chmod +x {program}"
        case errno.EACCES if missing:
            return f"Its first line asks for {interpreter}, which is no program: try {_SHEBANG}."
        case errno.EACCES:
            return "Is it on a file system that is mounted noexec? Then copy it elsewhere."
        case errno.EMFILE | errno.ENFILE:
            return "Raise the limit of open files (ulimit -n 65536), or ask for fewer nodes."
        case errno.EAGAIN | errno.ENOMEM:
            return "The system has no room for another process: see ulimit -u, and free memory."
    return "Check the path given with --bin."


def _interpreter(program: str) -> str | None:
    """What the first line of a script asks for."""
    try:
        with Path(program).open("rb") as file:
            line = file.readline(256).decode(errors="replace")
    except OSError:
        return None
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    return words[0] if words else None
