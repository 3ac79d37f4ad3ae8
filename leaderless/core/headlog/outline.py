"""The log up to a slot without its messages: what a node must know to serve, read from the index."""

from collections.abc import Callable, Collection

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.index import Part
from leaderless.core.headlog.records import Writers
from leaderless.core.messages import Offsets


class Outline:
    """What the index says beyond a view: `ends` of keys, `commits`, and the newest batch of each writer.

    It holds for slot `slot`, once every part up to there was added; segments below `sealed` are in it.
    `end_of` tells the end of a key in the view that it goes on from. Parts of the index are added in the
    order of their slots; one that is added twice, or again as part of a larger page, changes nothing. So a
    read that fails can be taken up again.
    """

    def __init__(self, slot: int, end_of: Callable[[str], int], own: Collection[str]) -> None:
        self.slot = slot
        self.sealed = 0
        self.ends: Offsets = {}
        self.commits: Offsets = {}
        self.writers: dict[str, int] = {}
        self.placed: Writers = {}  # of the `own` writers
        self._end_of = end_of
        self._own = own

    def add(self, part: Part) -> None:
        """Take a part of what is listed. Raises `InvariantBroken` if it does not continue the outline."""
        if part.base > self.slot:
            raise InvariantBroken(f"ViewIsPrefix: slot {part.base} is listed after {self.slot}")
        for key, first, end in part.ranges():
            known = self.ends.get(key)
            if known is None:
                known = self._end_of(key)
            if first > known:
                raise InvariantBroken(f"OffsetsDense: key {key!r} at {first} after {known}")
            self.ends[key] = max(known, end)
        for key, offset in part.commits.items():
            self.commits[key] = max(offset, self.commits.get(key, offset))
        for writer, newest in part.writers.items():
            if newest[0] >= self.writers.get(writer, 0):
                self.writers[writer] = newest[0]
                if writer in self._own:
                    self.placed[writer] = newest
