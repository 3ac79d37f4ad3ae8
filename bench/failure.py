"""Errors that end a run early, and exit statuses, as the real tool's; each message says what to do."""

import errno

EXIT_VALID, EXIT_INVALID, EXIT_UNKNOWN, EXIT_BAD_ARGUMENTS, EXIT_CRASHED = 0, 1, 2, 254, 255

_WITHOUT_ROOM = "Make room, or give another folder with --store."
_WITHOUT_FILES = "Raise the limit of open files (ulimit -n 65536), or ask for fewer nodes."
_HINTS = {
    errno.ENOSPC: _WITHOUT_ROOM,
    errno.EDQUOT: _WITHOUT_ROOM,
    errno.EFBIG: "Files may not grow so large here (ulimit -f). Raise that, or give another --store.",
    errno.EMFILE: _WITHOUT_FILES,
    errno.ENFILE: _WITHOUT_FILES,
}


class RunFailure(Exception):
    """The run cannot go on. `str(failure)` is the whole report; `interrupted` when the user asked."""

    def __init__(self, report: str, *, interrupted: bool = False) -> None:
        super().__init__(report)
        self.interrupted = interrupted


def unwritable(what: str, error: OSError) -> RunFailure:
    """`what` cannot be written: why, and what to do about it."""
    hint = _HINTS.get(error.errno or 0, "Give another folder with --store.")
    return RunFailure(f"{what} cannot be written: {error}.\n{hint}")


def indent(text: str) -> str:
    """The text with each line indented, for quoting in a report."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def clip(text: str, limit: int = 2000) -> str:
    """The text, or its beginning with a note of how much was left out."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters in all)"
