"""Keeps what a node has of the log within its memory: the newest messages, and what was read back last.

The view may take half of the memory. Above that it forgets its oldest messages, as far as they are in runs.
The archive takes what the view leaves of three quarters. The last quarter is for what is on its way.
"""

from leaderless.core.coordination import InvariantBroken, StoreSilent
from leaderless.core.headlog.archive import Truncated
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import timed
from leaderless.core.messages import Held, Pairs
from leaderless.core.process import Process, Spawn

READERS_REMEMBERED = 1024  # to know who reads on


class Memory:
    """Reads the log of one node, and bounds what it keeps: see `Limits.memory_bytes`."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._view_bytes_max = replica.limits.memory_bytes // 2
        self._evicting = False
        self._looked_at = -1  # segments sealed when the index was last looked at
        # Of each key that was read back what was asked for last, and the end of the block that has it.
        self._last: dict[str, tuple[int, int]] = {}

    @property
    def overfull(self) -> bool:
        """Whether to evict: the view is too large and something new may have been compacted."""
        replica = self._replica
        too_large = replica.view.bytes > self._view_bytes_max
        return too_large and not self._evicting and replica.head.sealed != self._looked_at

    def evict(self) -> Process[None]:
        """Forget what is compacted until the view takes three quarters of its share.

        So the index is read once for many segments, not for each.
        """
        replica = self._replica
        self._evicting, self._looked_at = True, replica.head.sealed
        try:
            index = yield from replica.read_index()
            replica.view.evict(index.end, self._view_bytes_max * 3 // 4)
            replica.archive.trim()
        except StoreSilent:
            pass  # it stays in memory until the store answers
        finally:
            self._evicting = False

    def read(
        self, key: str, offset: int, messages_max: int | None = None, behind: int = 1
    ) -> Process[Pairs]:
        """`[[offset, msg], ...]`, a contiguous run of a key from `offset` on: from memory or from the store.

        One from the store ends with its run or the view, whichever is first: others may have compacted what
        this node has not read yet. It begins later than `offset` where a retention deleted what was before.
        `behind`: so many keys are to be read back for one answer. Raises `StoreSilent`, `InvariantBroken`.
        """
        view = self._replica.view
        found = view.read(key, offset, messages_max)
        if found is not None:
            return found
        start = max(0, offset)
        try:
            first, msgs, times = yield from self._find(key, start)
        except Truncated as truncated:
            if truncated.earliest <= start:
                raise InvariantBroken(f"CommittedReadable: {truncated}, not {start}") from None
            yield from self._replica.refresh()  # the view may end before that
            return (yield from self.read(key, truncated.earliest, messages_max))
        if not first <= start < first + len(msgs):
            text = f"{len(msgs)} messages from {first} on, asked for {start}"
            raise InvariantBroken(f"PollContiguous: a run of key {key!r} has {text}")
        end = first + len(msgs)
        if readers := self._readers(key, start, end):
            readers = max(readers, behind)
            yield Spawn(self._replica.archive.read_ahead(key, end, view.first[key], readers))
        upto = min(start + (messages_max or self._replica.limits.poll_messages), view.end(key))
        pairs = [[at, msg] for at, msg in enumerate(msgs[start - first : upto - first], start)]
        return timed(pairs, times)

    def _readers(self, key: str, start: int, end: int) -> int:
        """How many keys were read since this one was, with it; 0 when its reader does not go on in order.

        It does when it comes from the block that was read last, or from before it there. `start`: what it asks
        for; `end`: of the block that it gets.
        """
        readers = len(self._last) - [*self._last, key].index(key)
        before, last = self._last.pop(key, (start, start))
        self._last[key] = start, end
        if len(self._last) > READERS_REMEMBERED:
            del self._last[next(iter(self._last))]
        return readers if before < start <= last else 0

    def _find(self, key: str, offset: int) -> Process[Held]:
        """The block that holds an offset below what is in memory."""
        archive, end = self._replica.archive, self._replica.view.first[key]
        reading = archive.find(key, offset, end)
        found = yield from self._replica.unless_old(archive.index, reading)
        return found or (yield from archive.find(key, offset, end))
