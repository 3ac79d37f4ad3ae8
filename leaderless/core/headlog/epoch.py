"""A new epoch of the log, in which nothing but the epoch has changed.

A batch is committed in its own epoch or never (`leaderless.core.headlog.attempt`). So a new epoch divides all
appends into two: those that are in the log when it begins, and those that learnt of it before they got there.
"""

from leaderless.core.coordination import InvariantBroken, read_as, replace
from leaderless.core.headlog.records import HEAD, Head, head_of
from leaderless.core.process import Process


def raise_epoch(by: str) -> Process[Head | None]:
    """Return a head of an epoch that the log had not when this began; None when it has no head yet.

    The log is fenced or open as before. `by` is a name that no other call has: so an own change is known again
    when its answer was lost. Raises `StoreSilent`: the epoch may be a new one or not.
    """
    first: Head | None = None
    while (head := (yield from read_as(HEAD, head_of))) is not None:
        first = first or head
        require_after(first, head)
        if head.epoch > first.epoch:
            return head  # an own change of unknown outcome, or that of another process
        new = head.with_state(head.heading.state, by)
        if (yield from replace(HEAD, head.value, new.value)):
            return new
    return None


def require_after(before: Head, after: Head) -> None:
    """What was `before` may be `after`, at once or later: a fenced log grows in a new epoch at the earliest.

    Raises `InvariantBroken`.
    """
    has_grown = before.fenced and after.end != before.end
    if (after.epoch, not has_grown) < (before.epoch, True):
        raise InvariantBroken(f"NoAppendWhileFenced: {before} became {after}")
