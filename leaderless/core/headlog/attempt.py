"""One attempt to put batches behind a head: the only place where the log grows.

The safety of the log rests on three laws. The model in `specs/HeadLog` has them by the same numbers.

Law 1: a compare-and-set that changes the head comes from exactly the head that the node's view was folded
    from. So the node knew every batch in the log, and the check that a batch is not in it yet held: that
    makes a retry after an unknown outcome, a hand-over that comes twice, and one that its node gave up and
    committed itself all safe, for a batch keeps its name `[writer, seq]` whichever way it goes.
Law 2: a head never comes back: each has a higher `version`, and no writer uses a seq twice. So a
    compare-and-set that arrives late, when another has replaced its head, changes nothing.
Law 3: the head lets go of exactly the entries that the segment is known to hold, because this node wrote it or
    read it back; and a run is written before a segment is deleted. So whatever was acknowledged can be read at
    every moment, also where nodes disagree about when a tail is full.

One thing to notice: after `UNKNOWN` a batch is neither in the log nor out of it. The compare-and-set may be
carried out later, as long as its head stands. Only a newer head tells, and the caller must read one before
the next attempt.

A batch is committed in its own epoch or never. So a new epoch (`raise_epoch`) divides all appends into two:
those that are in the log when it begins, and those that learnt of it before they got there.

What breaks a law raises `InvariantBroken`, on both sides of the call to the store.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from leaderless.core.coordination import InvariantBroken, StoreSilent, read_as, replace
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.conditions import refused_by
from leaderless.core.headlog.records import HEAD, Head, head_of, require_after
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import View
from leaderless.core.messages import (
    Batch,
    Cas,
    Entry,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Unknown,
)
from leaderless.core.process import Notify, Process, Signal, Spawn, Wait


class Fate(Enum):
    """How an attempt ended."""

    COMMITTED = "committed"  # the batches are in the log, and in the view
    FOUND = "found"  # they are, by this attempt or as other copies: `new` may never have stood in the store
    CONFLICT = "conflict"  # this attempt changed nothing, and never will: another commit came first
    REFUSED = "refused"  # the store does not take it: this attempt changed nothing, and never will
    UNKNOWN = "unknown"  # it may have happened, or may still


class Attempt(NamedTuple):
    """What is tried: `entries` behind the head `old`, which makes it `new`."""

    old: Head
    new: Head
    entries: list[Entry]


def prepare(replica: Replica, batches: Sequence[Batch], *, by: str, kept: int) -> Attempt:
    """The attempt of the node `by` to put `batches` behind the replica's head.

    `kept`: how many entries of a full tail its segment holds (`Sealer.kept`). The batches get their offsets
    here: those behind the ends of the log as the view has it. Raises `InvariantBroken`.
    """
    old, view = replica.head, replica.view
    _require_admissible(old, view, batches)
    # No time is below the one before, whatever clocks say.
    before, wall = old.tail[-1].time if old.tail else None, replica.clock.wall
    time = before if wall is None else max(before or 0, int(wall() * 1000))
    entries = view.entries_of(batches, time)
    size = sum([batch.size for batch in batches])
    if old.full and not kept:
        raise InvariantBroken(f"CommittedReadable: segment {old.sealed} is not written")
    new = old.with_entries(entries, size, by, kept)
    if new.version <= old.version:
        raise InvariantBroken(f"HeadNeverReturns: {new} is no newer head than {old}")
    lost = new.base - old.base - (kept if old.full else 0)
    if lost:
        raise InvariantBroken(
            f"CommittedReadable: {lost} entries leave the head, and no segment has them"
        )
    return Attempt(old, new, entries)


def carry_out(replica: Replica, attempt: Attempt, *, reads_ahead: bool) -> Process[Fate]:
    """Make one compare-and-set; with `reads_ahead`, read the head beside it.

    A newer head that is read decides, too: by Law 2 it has the batches, or it never will by this attempt. So
    the attempt ends with the first of the two answers that decides. The policy hears of the outcome of the
    compare-and-set, be it after the end. After `CONFLICT`, `REFUSED` and `UNKNOWN` the attempt's head is
    refuted: unless the replica has a newer one, read it before the next attempt.
    """
    old, new, entries = attempt
    was = old.value
    cas = Cas(HEAD, was, new.value, create=was is None)
    asked_at = replica.clock.now
    replica.trace("Try", steps.carried, entries)
    if reads_ahead:
        race = _Race(replica, old)
        yield Spawn(race.swap(cas))
        yield Spawn(race.read())
        yield Wait(race.decided)
        outcome = race.outcome
    else:
        outcome = yield cas
        _tell(replica, outcome, asked_at)
    if isinstance(outcome, Ok):
        if replica.head is old:
            replica.committed(new, entries, asked_at)
        else:  # another process learnt of a newer one, which includes ours
            _require_placed(replica.view, entries)
        return Fate.COMMITTED
    known = isinstance(outcome, Mismatch | Missing)
    is_newer = replica.head is not old
    if is_newer and not known and all(replica.view.contains(e.writer, e.seq) for e in entries):
        return Fate.FOUND
    if known or is_newer:
        return Fate.CONFLICT
    return Fate.REFUSED if isinstance(outcome, Unknown) and outcome.refused else Fate.UNKNOWN


def _tell(replica: Replica, outcome: Outcome, asked_at: float) -> None:
    """Tell the policy what became of a compare-and-set."""
    if isinstance(outcome, Unknown):
        replica.policy.attempt_unknown()
    else:
        replica.policy.store_took(replica.clock.now - asked_at)


class _Race:
    """A compare-and-set and a read of the head, side by side; `decided` fires when the attempt has its fate.

    `outcome` is that of the compare-and-set, None while it is under way.
    """

    def __init__(self, replica: Replica, old: Head) -> None:
        self._replica = replica
        self._old = old
        self._under_way = 2
        self.outcome: Outcome | None = None
        self.decided = Signal()

    def swap(self, cas: Cas) -> Process[None]:
        """Make the compare-and-set."""
        asked_at = self._replica.clock.now
        outcome: Outcome = yield cas
        self.outcome = outcome
        _tell(self._replica, outcome, asked_at)
        yield from self._ended()

    def read(self) -> Process[None]:
        """Read the head. The attempt ends whatever becomes of the read."""
        failure: Exception | None = None
        try:
            yield from self._replica.refresh()
        except StoreSilent:
            pass  # the answer of the compare-and-set decides
        except Exception as error:
            failure = error
        yield from self._ended()
        if failure:
            raise failure

    def _ended(self) -> Process[None]:
        self._under_way -= 1
        is_newer = self._replica.head is not self._old
        if isinstance(self.outcome, Ok) or is_newer or not self._under_way:
            yield Notify(self.decided)


def _require_admissible(head: Head, view: View, batches: Sequence[Batch]) -> None:
    """Law 1, and that each batch is of the head's epoch; `View.entries_of` requires that each is new."""
    if view.slot != head.end:
        raise InvariantBroken(f"ViewIsPrefix: {view.slot} is not the end of {head}")
    if not batches or head.fenced:
        raise InvariantBroken(f"NoAppendWhileFenced: no batch for {head}")
    for batch in batches:
        if batch.epoch != head.epoch:
            raise InvariantBroken(
                f"NoAppendWhileFenced: {batch} behind a head of epoch {head.epoch}"
            )
        if (view.tokens or batch.expected) and (failure := refused_by(view, batch)):
            raise InvariantBroken(f"ConditionKept: {failure.text}: {batch}")


def _require_placed(view: View, entries: list[Entry]) -> None:
    """What the store says is in the log is in the view."""
    for entry in entries:
        if not view.contains(entry.writer, entry.seq):
            raise InvariantBroken(f"ViewIsPrefix: a newer view lacks {entry}")


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
