"""The coordination layer: recipes on a compare-and-set store, built from `Get`, `Put` and `Cas` only.

Each is a sub-process (`value = yield from read("x")`). A recipe whose patience ends without a clear answer
raises `StoreSilent`: whatever was under way may have happened. How long that is follows from `Pace`: each
outcome says how much of the patience it has used up.
"""

from collections.abc import Callable
from reprlib import repr as brief
from typing import TypeAlias, TypeVar

from leaderless.core import messages
from leaderless.core.messages import (
    Cas,
    Failure,
    Get,
    Missing,
    Note,
    Ok,
    Outcome,
    Put,
    Reason,
    Unknown,
)
from leaderless.core.process import Process, call

Json: TypeAlias = messages.Json
COUNT_END = 1 << 63
TOMBSTONE: dict[str, Json] = {"deleted": True}  # the stores have no delete
T = TypeVar("T")
_SILENCE = Unknown()
_DAMAGED = Unknown(0.25)  # what does not fit may be a damaged answer: such a register is read again


class StoreSilent(Exception):
    """The store gave no answer that fits, however often it was asked; the outcome is unknown.

    `refused`: what it said last is that it refuses. `broken`: what it holds breaks the invariant that the text
    begins with.
    """

    def __init__(self, text: str, last: Outcome = _SILENCE, *, broken: bool = False) -> None:
        super().__init__(text)
        self.broken = broken
        self.refused: bool = isinstance(last, Unknown) and last.refused

    @property
    def reason(self) -> Reason:
        """Why what waits, and was not tried, fails: a refusal is definite for it."""
        if self.broken:
            return Reason.BROKEN
        return Reason.REFUSED if self.refused else Reason.TIMEOUT


def is_deleted(value: Json) -> bool:
    """Whether a register holds a tombstone. Names beside `deleted` are passed over, as everywhere."""
    return isinstance(value, dict) and value.get("deleted") is True


class Patience:
    """How long one caller goes on asking the store: until the outcomes have used it up."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = 1.0

    @property
    def lasts(self) -> bool:
        """Whether to ask again."""
        return self._left > 1e-6  # parts of one need not add up to one

    def had(self, outcome: Outcome) -> None:
        """Take what an outcome has used up."""
        if isinstance(outcome, Unknown):
            self._left -= outcome.spent


class Misfit(Exception):
    """A value that no node can have written; the text says which."""


class InvariantBroken(AssertionError):
    """The log is not what it must be; the text begins with the invariant's name."""

    reason: Reason = Reason.BROKEN


def count_of(value: object) -> int:
    """A number from 0 up, below 2^63."""
    if type(value) is int and 0 <= value < COUNT_END:  # a bool is an int to isinstance
        return value
    raise Misfit(f"not a number from 0 to 2^63 - 1: {brief(value)}")


def failure_of(error: Exception) -> Failure:
    """The answer to a request that failed with `error`: never that nothing happened."""
    if not isinstance(error, StoreSilent | InvariantBroken):
        return Failure(Reason.CRASH, f"{type(error).__name__}: {error}")
    return Failure(Reason.TIMEOUT if error.reason.definite else error.reason, str(error))


def read_register(register: str) -> Process[Json]:
    """The value of a register, None when it is missing."""
    return read_as(register, as_it_is)


def as_it_is(value: Json) -> Json:
    """A decoder that takes any JSON."""
    return value


def read_as(register: str, decode: Callable[[Json], T], known: Json = None) -> Process[T | None]:
    """The decoded value of a register, None when it is missing. `known`: see `Get`.

    A value for which `decode` raises `Misfit` is logged, and counts as no answer; if no better one comes,
    `StoreSilent` tells what it was. It is `broken` if each answer was such a value, or no JSON.
    """
    patience, why, broken = Patience(), "the store gave no clear answer", True
    while patience.lasts:
        outcome: Outcome = yield Get(register, known)
        if isinstance(outcome, Ok):
            try:
                return decode(outcome.value)
            except Misfit as misfit:
                before, why = why, f"it holds {misfit}"
                if why != before:  # once is enough
                    yield Note(f"{register!r} holds {misfit}")
                patience.had(_DAMAGED)
        elif isinstance(outcome, Missing):
            return None
        elif isinstance(outcome, Unknown) and outcome.damaged:
            why = "it is damaged"
        else:
            broken = False
        patience.had(outcome)
    text = f"{register!r} could not be read: {why}"
    raise StoreSilent(f"RegistersReadable: {text}" if broken else text, outcome, broken=broken)


def create(register: str, value: Json) -> Process[bool]:
    """Make a register that never changes: it exists when this ends, whichever node made it.

    Returns whether it is certain that it holds `value`. If not, whoever goes on from it reads what it holds.
    """
    outcome, _ = yield from _until_clear(Cas(register, None, value, create=True), "made")
    return isinstance(outcome, Ok)


def _until_clear(op: Cas | Put, done: str) -> Process[tuple[Outcome, bool]]:
    """Do this until it is clear whether it came about. Then the outcome, and whether one before was not clear.

    Raises `StoreSilent`: the register may be `done` or not.
    """
    patience, unsure = Patience(), False
    while patience.lasts:
        outcome: Outcome = yield op
        if not isinstance(outcome, Unknown):
            return outcome, unsure
        unsure = True
        patience.had(outcome)
    text = f"{op.key!r} may be {done} or not: the store gave no clear answer"
    raise StoreSilent(text, outcome)


def raise_to(register: str, target: int, known: int | None = None) -> Process[int]:
    """Raise a register to at least `target`; it never goes back, whichever answers get lost.

    `known` is a value that it had once, None if it may be missing; returns the one that it has now.
    """
    while known is None or known < target:
        outcome = yield from call(Cas(register, known, target, create=known is None))
        if isinstance(outcome, Ok):
            return target
        known = yield from read_as(register, count_of)
    return known


def replace(register: str, old: Json, new: Json) -> Process[bool]:
    """Compare-and-set until the outcome is known: whether `old` (None: missing) became `new`, and stayed.

    Nobody else ever writes this `new`, and it never stood there before: so to find it after an unknown
    outcome proves that an own attempt came about.
    """
    outcome, unsure = yield from _until_clear(Cas(register, old, new, old is None), "replaced")
    if isinstance(outcome, Ok):
        return True
    return unsure and (yield from read_register(register)) == new


def delete(register: str) -> Process[None]:
    """Leave a tombstone in a register; it stands when this ends."""
    yield from _until_clear(Put(register, TOMBSTONE), "deleted")
