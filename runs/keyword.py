"""EDN keywords as Python strings.

Histories and results are EDN maps whose keys are keywords (`:type`) beside plain strings (`"50"`).
A `Keyword` *is* a `str` (equal to it, hashes like it, prints like it, JSON-encodes like it), so
code compares and looks up with plain literals; only the EDN writer cares which of the two it has.
"""

from typing import Any


class Keyword(str):
    """An EDN keyword, without its colon: `Keyword("valid?")` is written `:valid?`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f":{self}"


def keywords(**entries: Any) -> dict[Keyword, Any]:
    """A dict with keyword keys: `keywords(ok_count=3)` is `{:ok-count 3}`; `valid` becomes `:valid?`."""
    return {
        Keyword("valid?" if name == "valid" else name.replace("_", "-")): value
        for name, value in entries.items()
    }
