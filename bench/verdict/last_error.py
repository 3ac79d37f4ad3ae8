"""The last error in what a program wrote on stderr, as its language shows it.

A traceback of Python, a stack of JavaScript or Java, a panic of Go or Rust is an error for certain, also where
the program has caught it and goes on. Any other line with a word such as "failed" may be one: it is shown if
there is none that is certain.
"""

import re
from typing import NamedTuple

_STACK = r"(?:[ \t].*\n)"
_CERTAIN = re.compile(  # each form with the line that names the error as its group
    rf"""(?:^Exception\ in\ thread.*\n)?^Traceback\ \(most\ recent.*\n{_STACK}*(.+)
    | ^\ +File\ .*\n{_STACK}{{0,4}}(\w+Error:.*)                          # Python cannot compile it
    | ^(panic:\ .*|fatal\ error:\ .*|thread\ '.*panicked\ at.*)(?:\n.*){{0,4}}
    | ^((?:\S.{{0,300}}?[\s:(\[])?(?:[\w$]+(?:\.|::))*(?:[A-Z]\w*)?(?:Error|Exception)(?=[:\s()\]]|$).*)
      (?:\n[ \t].*){{0,4}}""",
    re.MULTILINE | re.VERBOSE,
)
_LIKELY = re.compile(
    r"^.*\b(?:error|exception|fatal|panic\w*|failed|cannot|undefined|unbound|not found|no such)\b.*",
    re.MULTILINE | re.IGNORECASE,
)
_FIRST, _LAST = 2, 5  # lines of a longer traceback
_LINE = 300  # characters


class Outcry(NamedTuple):
    """An error with the lines of its stack (`text`), and the line that names it, if one does (`certain`)."""

    text: str = ""
    certain: str = ""


NO_ERROR = Outcry()


def last_error(log: str) -> Outcry:
    """The last error in a log; an empty one if there is none."""
    found = next(filter(None, ([*form.finditer(log)] for form in (_CERTAIN, _LIKELY))), None)
    if not found:
        return NO_ERROR
    lines = [each[:_LINE] for each in found[-1][0].rstrip().splitlines()]
    if len(lines) > _FIRST + _LAST + 1:
        lines[_FIRST:-_LAST] = ["  ..."]
    return Outcry("\n".join(lines), next(filter(None, found[-1].groups()), "").strip()[:_LINE])
