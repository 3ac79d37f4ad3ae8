"""Sealing: a full tail of the head is written to its segment, by any node, more than once if need be.

Contents decide, not numbers. Another node may have made the segment before, from an older head. So it is read
back when it is there, and the head lets go of exactly the entries that it holds.
"""

from leaderless.core.coordination import InvariantBroken, create, read_as
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.records import Head, Segment, segment_name, segment_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.process import Process, Signal, Wait, notifying


class Sealer:
    """Writes segments for one node, and knows what the newest one holds."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._sealing: Signal | None = None
        self._number = -1  # the newest segment that is known to be in the store,
        self._entries = 0  # how many entries it holds,
        self._base = 0  # and the slot of the first one

    def kept(self, head: Head) -> int:
        """How many entries of the tail its segment is known to hold, from the first one on; 0: not known."""
        known = self._number == head.sealed and self._base == head.base
        return self._entries if known else 0

    def seal(self, head: Head) -> Process[None]:
        """Write a full tail to its segment, or learn what it holds; then `kept` says it.

        `kept` says 0 when `head` is too old: others have sealed and compacted more. Raises `StoreSilent`, and
        `InvariantBroken` when the segment holds something else.
        """
        while not self.kept(head) and self._number <= head.sealed:
            if self._sealing:
                yield Wait(self._sealing)
                continue
            self._sealing = Signal()
            try:
                yield from notifying(self._sealing, self._write(head))
            finally:
                self._sealing = None
            if not self.kept(head):
                return

    def _write(self, head: Head) -> Process[None]:
        if not head.full:
            raise InvariantBroken(f"SegmentsImmutable: a tail that may grow was sealed: {head}")
        name, segment = segment_name(head.sealed), Segment(head.base, head.tail)
        if not (yield from create(name, segment.value)):
            held = yield from read_as(name, segment_of)
            if held is None or len(held.entries) > len(head.tail):
                return  # it was deleted, or is longer: the head is too old
            segment = Segment(head.base, head.tail[: len(held.entries)])
            if held != segment or not segment.entries:
                raise InvariantBroken(
                    f"SegmentsImmutable: {name} holds other entries than the head"
                )
        self._number, self._base, self._entries = head.sealed, head.base, len(segment.entries)
        if self._replica.head.base == head.base:  # or others have sealed it, and gone on
            self._replica.trace("Seal", steps.sealed, segment)
