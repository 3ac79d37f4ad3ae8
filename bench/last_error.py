"""The last error in what a program wrote on stderr, as its language shows it.

A traceback of Python, a stack of JavaScript or Java, a panic of Go or Rust is an error for certain, also where
the program has caught it and goes on. Any other line with a word such as "failed" may be one: it is shown if
there is none that is certain.
"""

import re
from typing import NamedTuple

_CERTAIN = re.compile(
    r"^(?:\S.*[\s:(\[])?(?:[\w$]+(?:\.|::))*(?:[A-Z]\w*)?(?:Error|Exception)(?=[:\s()\]]|$)"
    r"|^Traceback \(most recent|^panic: |^fatal error: |^thread '.*panicked at|^error: Uncaught"
)
_LIKELY = re.compile(
    r"\b(?:error|exception|fatal|panic\w*|failed|cannot|undefined|unbound|not found|no such)\b",
    re.IGNORECASE,
)
_TRACEBACK, _IN_THREAD = "Traceback (most recent", "Exception in thread"
_BEFORE, _AFTER = 4, 4  # lines of a stack that are shown, those next to the error
_LINE = 300  # characters


class Outcry(NamedTuple):
    """An error with the lines of its stack (`text`), and the line that names it, if one does (`certain`)."""

    text: str = ""
    certain: str = ""


NO_ERROR = Outcry()


def last_error(log: str) -> Outcry:
    """The last error in a log; an empty one if there is none."""
    lines = log.splitlines()
    for pattern in (_CERTAIN, _LIKELY):
        found = (at for at in range(len(lines) - 1, -1, -1) if pattern.search(lines[at]))
        if (at := next(found, None)) is not None:
            return _around(lines, at, is_certain=pattern is _CERTAIN)
    return NO_ERROR


def _around(lines: list[str], at: int, *, is_certain: bool) -> Outcry:
    """The error in line `at`, with the stack above it (Python) or below it (the others)."""
    if lines[at].startswith(_TRACEBACK):  # the error's own name was no sign of one
        below = range(at + 1, len(lines))
        at = next((each for each in below if not _is_stack(lines[each])), len(lines) - 1)
    start = at
    while start and _is_stack(lines[start - 1]):
        start -= 1
    if start and lines[start - 1].startswith(_TRACEBACK):
        start -= 1
        start -= lines[start - 1].startswith(_IN_THREAD) if start else 0
    elif (
        not lines[start].lstrip().startswith("File ")
    ):  # where a program of Python cannot be compiled
        start = at
    above = lines[start:at]
    if len(above) > _BEFORE + 2:
        above = [*(each for each in above[:2] if not _is_stack(each)), "  ...", *above[-_BEFORE:]]
    end = at + 1
    while end < len(lines) and end - at <= _AFTER and _is_stack(lines[end], lines[at]):
        end += 1
    text = "\n".join(each[:_LINE] for each in (*above, *lines[at:end]))
    return Outcry(text, lines[at].strip()[:_LINE] if is_certain else "")


def _is_stack(line: str, error: str = "") -> bool:
    """Whether a line belongs to a stack; below a panic all lines do."""
    return line[:1] in {" ", "\t"} or "panic" in error
