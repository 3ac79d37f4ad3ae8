"""Sealing: a full tail of the head is written to its segment, by any node, more than once if need be."""

from leaderless.core.coordination import StoreSilent, create
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.records import Head, Segment, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.process import Notify, Process, Signal, Wait


class Sealer:
    """Writes segments for one node; `written`: so many, from the first one on, are in the store."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._sealing: Signal | None = None
        self.written = 0

    def seal(self, head: Head) -> Process[None]:
        """Write a full tail to its segment, which exists when this ends. Raises `StoreSilent`."""
        while self.written <= head.sealed:
            if self._sealing:
                yield Wait(self._sealing)
                continue
            self._sealing = Signal()
            silent = None
            try:
                yield from self._write(head)
            except StoreSilent as error:
                silent = error
            done, self._sealing = self._sealing, None
            yield Notify(done)  # not in a `finally`: a generator must not yield while it is closed
            if silent:
                raise silent

    def _write(self, head: Head) -> Process[None]:
        segment = Segment(head.base, head.tail)
        yield from create(segment_name(head.sealed), segment.value)
        self.written = max(self.written, head.sealed + 1)
        if self._replica.head.base == head.base:  # or others have sealed it, and gone on
            self._replica.trace("Seal", steps.sealed, head)
