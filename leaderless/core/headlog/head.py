"""The head register: the newest entries, and how the log may grow.

    state    "open" or "fenced"
    epoch    raised by every fence and unfence; a batch is committed in its own epoch or never
    version  counts the changes of the register, so no two of its values are ever equal
    by       the node that committed last: whom to hand a batch over to
    sealed   number of sealed segments
    base     slot of the first entry of `tail`
    size     about the bytes of `tail`
    tail     the entries of slots base, base + 1, ...

A tail whose `size` reached `seal_bytes` (or that has `seal_entries`) is *full*: it never changes any more, so
writing it to its segment is idempotent, whoever does it. A batch larger than that still fits: it fills a
tail alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from leaderless.core.limits import Limits

REGISTER = "head"
ENTRY_BYTES = 48  # about what an entry's names and brackets take

Entry = list[Any]  # [writer, seq, {key: [first_offset, [msg, ...]]}, {key: committed_offset}]


class Head(NamedTuple):
    """A value of the head register; `value` is what the store compares with, None before the first."""

    value: dict[str, Any] | None
    state: str
    epoch: int
    version: int
    by: str
    sealed: int
    base: int
    size: int
    tail: list[Entry]

    @property
    def end(self) -> int:
        """The slot after the newest entry."""
        return self.base + len(self.tail)

    def full(self, limits: Limits) -> bool:
        """Whether the tail must be sealed before anything is added."""
        return self.size >= limits.seal_bytes or len(self.tail) >= limits.seal_entries

    @property
    def fenced(self) -> bool:
        """Whether appends are refused."""
        return self.state == "fenced"

    def with_entries(self, entries: Sequence[Entry], size: int, by: str, limits: Limits) -> "Head":
        """The head after `entries`; a full tail, whose segment must be written, makes room for them."""
        size += ENTRY_BYTES * len(entries)
        if self.full(limits):
            return _head(
                self, by, sealed=self.sealed + 1, base=self.end, size=size, tail=[*entries]
            )
        return _head(self, by, size=self.size + size, tail=[*self.tail, *entries])

    def with_state(self, state: str, by: str) -> "Head":
        """The head fenced or open again, in a new epoch."""
        return _head(self, by, state=state, epoch=self.epoch + 1)


EMPTY = Head(None, "open", 0, 0, "", 0, 0, 0, [])


def decode(value: dict[str, Any]) -> Head:
    """The head in a register's value."""
    return Head(value, **value)


def segment_of(sealed: int) -> str:
    """The register of a sealed segment."""
    return f"segment/{sealed}"


def _head(old: Head, by: str, **changes: Any) -> Head:
    value = old._asdict() | changes | {"version": old.version + 1, "by": by}
    del value["value"]
    return Head(value, **value)
