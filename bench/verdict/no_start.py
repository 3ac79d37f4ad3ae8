"""Why a node cannot be started, or lost a pipe at once: what the system and the program's first lines say."""

import errno
import os
import re
from codecs import BOM_UTF8
from pathlib import Path

from bench.failure import RunFailure
from runs.files import end_of

_BINARIES = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # Linux, Windows, macOS
_SCRIPT_BYTES = 4096
_SCRIPTS = {  # what a script of the shell may do to a pipe of the node -> why that is wrong
    "stdin": {
        r"^[^#]*[^&#]&\s*(#.*)?$": "starts a program in the background (&) without stdin: leave & out.",
        r"^[^#]*<<": "feeds a program with its own text (<<) in place of messages: put that into a file.",
    },
    "stdout": {
        r"^[^#]*\b(npm|yarn|pnpm)\b": "starts npm, which prints lines of its own: start the program"
        " itself, or give npm --silent.",
        r"^[^#]*(2>&1|&>)": "sends stderr to stdout (2>&1), where messages alone belong: leave it out.",
    },
}
_SHEBANG = "#!/usr/bin/env python3"


def cannot_start(node: str, program: str, error: OSError) -> RunFailure:
    """The report for an error of starting `program`."""
    wrong = unfit_first_line(program) if error.errno in (errno.ENOEXEC, errno.ENOENT) else ""
    hint = wrong or _hint(program, error)
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


def unfit_first_line(program: str) -> str:
    """What is wrong with the first line of a program, and what to do; empty where nothing is known to be."""
    line = _first_line(program)
    if line.startswith(_BINARIES):
        return "It is a program for another kind of machine: build it for this one."
    if line.startswith(BOM_UTF8):
        return "It begins with a byte order mark: save it as UTF-8 without one."
    if line.startswith(b"#!") and line.endswith(b"\r\n"):
        return f"Its lines end as on Windows (\\r\\n). Let them end with \\n: sed -i 's/\\r$//' {program}"
    return ""


def unfit_script(program: str, pipe: str) -> str:
    """What a script of the shell does to this pipe of its node, and what to do; empty if nothing wrong."""
    if not re.match(rb"#!.*sh\b", _first_line(program)):
        return ""
    text = "\n".join(end_of(Path(program), _SCRIPT_BYTES).splitlines())
    wrong = (why for form, why in _SCRIPTS[pipe].items() if re.search(form, text, re.MULTILINE))
    return next((f"{program} {why}" for why in wrong), "")


def _interpreter(program: str) -> str | None:
    """What the first line of a script asks for."""
    line = _first_line(program).decode(errors="replace")
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    return words[0] if words else None


def _first_line(program: str) -> bytes:
    try:
        with Path(program).open("rb") as file:
            return file.readline(256)
    except OSError:
        return b""
