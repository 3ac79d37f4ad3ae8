"""Strategy `prefetch-sealed`: each node fills ranges of offsets of its own; readers close what they pass.

    range/KEY/i   {owner, msgs: [[n, msg], ...], sealed}     offsets i * BLOCK .. (i + 1) * BLOCK - 1

Making the register `range/KEY/i`, possible once, reserves the range, and only when every lower one exists:
so the ranges of a key are dense and need no counter. Its owner appends by compare-and-set, with which only
sealing competes. A range is *closed* when it is full or sealed: nothing changes it any more.

The rule that makes it right: **an offset is shown only when every lower range is closed**. A reader that
finds an open range below another one seals it by compare-and-set; the rest of its offsets is forfeited. Its
owner's next append then fails, and goes to a new range. A race, told in steps:
    1 n0 makes range 0 and fills offsets 0 and 1; n1 makes range 1 and acknowledges offset 16
    2 a reader finds both, and seals range 0 as it read it
    3 n0's append of offset 2, under way, fails: it goes to offset 32, in range 2, in front of the reader
If 3 comes before 2, sealing fails instead, and the reader reads range 0 again, with offset 2.

Guarantees: a send is acknowledged when its message is in a register, exactly once, also when the store's
answer was lost (it is looked for by `[owner, n]`); polls are no older than the freshness bound, linearizable
at 0; offsets are unique, increasing and sparse; nothing is lost with a node. A reader that passes a range
whose owner died closes it. The node that seals a range shows it to the others: it never changes, so they need
not read it. That only saves reads: partitions between nodes do not matter. Anomalies: none.

Weak where: a poll reads two registers a key; readers seal the ranges of slow writers, which each time need
another range (two or three more round trips); each node keeps what it read in memory; a restarted node that
is asked for the end of a long key must read all of it.
"""

from contextlib import suppress
from itertools import count, takewhile
from math import inf
from typing import NamedTuple

from leaderless.core.coordination import Json, Misfit, read_as
from leaderless.core.decoding import Decoder, record
from leaderless.core.messages import Cas, Ok, Poll, PollOk, Reply, Send, SendOk, Share, Tell
from leaderless.core.process import Process, call, gather
from leaderless.core.strategies.prefetch import BLOCK
from leaderless.core.strategies.serving import CommitsInStore, Copy, InTurn
from leaderless.core.strategy import Context


class RangeContent(NamedTuple):
    """What the register of a range holds; `msgs`: `[[n, msg], ...]`."""

    owner: str
    msgs: list[list[Json]]
    sealed: bool = False

    @property
    def value(self) -> dict[str, Json]:
        """As the register holds it."""
        return {"owner": self.owner, "msgs": [*self.msgs], "sealed": self.sealed}


range_content_of: Decoder[RangeContent] = record(  # of a register's value
    RangeContent, lambda content: all(len(entry) == 2 for entry in content.msgs)
)


class _Place(NamedTuple):
    """A range that a node fills: its number, and what its register held last, None before it is made."""

    number: int
    content: RangeContent | None


class SealedLog(CommitsInStore):
    """Keeps a log in ranges of `size` offsets; see the module's text."""

    def __init__(self, context: Context, size: int = BLOCK) -> None:
        super().__init__()
        node, peers, self._writer = context.identity
        self._others = [peer for peer in peers if peer != node]
        self._clock, self._freshness_s = context.clock, context.options.freshness_s
        self._size = size
        self._numbers = count()
        self._places: dict[str, _Place] = {}
        self._known: dict[str, int] = {}  # so many ranges of the key exist
        self._closed: dict[str, int] = {}  # so many from the first on are closed, and in the copy
        self._heard: dict[tuple[str, int], RangeContent] = {}  # closed, and not yet in the copy
        self._confirmed_at: dict[
            str, float
        ] = {}  # when all was in the copy that could be read of the key
        self._copy = Copy()  # all that may be shown
        self._sends = InTurn(self._append)

    # ------------------------------------------------------------------ appending

    def _send(self, event: Send) -> Process[None]:
        return self._sends.send(event)

    def _append(self, key: str, sends: list[Send]) -> Process[None]:
        """Append as many of the waiting sends as there is room for, together."""
        if key not in self._places:
            yield from self._refresh(key)
            self._places[key] = _Place(self._known.get(key, 0), None)
        batch = sends[: self._room(self._places[key].content)]
        entries = [[next(self._numbers), send.msg] for send in batch]
        first = yield from self._publish(key, entries)
        del sends[: len(batch)]
        for offset, send in enumerate(batch, first):
            yield Reply(send.request, SendOk(offset))

    def _publish(self, key: str, entries: list[list[Json]]) -> Process[int]:
        """Put entries into this node's range, or a further one; returns the offset of the first."""
        while True:
            number, old = self._places[key]
            msgs = [*old.msgs, *entries] if old else entries
            register, wanted = _register(key, number), RangeContent(self._writer, msgs)
            cas = Cas(register, old and old.value, wanted.value, create=old is None)
            outcome = yield from call(cas)
            new: RangeContent | None = wanted
            if not isinstance(outcome, Ok):
                # sealed, another node's, or unknown: the range itself says which
                new = yield from read_as(register, range_content_of)
            place = self._find(new, entries[0])
            self._places[key] = self._next_place(
                key, number, new, len(entries) if place is None else 1
            )
            if place is not None:
                return number * self._size + place

    def _find(self, content: RangeContent | None, entry: list[Json]) -> int | None:
        """Where an own entry is in a range."""
        if content is None or content.owner != self._writer:
            return None
        numbers = [number for number, _ in content.msgs]
        return numbers.index(entry[0]) if entry[0] in numbers else None

    def _next_place(
        self, key: str, number: int, content: RangeContent | None, wanted: int
    ) -> _Place:
        """Where the next `wanted` entries go: here, if there is room, or beyond all that is known."""
        ours = content is None or content.owner == self._writer
        if ours and self._room(content) >= wanted:
            return _Place(number, content)
        return _Place(max(number + 1, self._known.get(key, 0)), None)

    def _room(self, content: RangeContent | None) -> int:
        if content is None:
            return self._size
        return 0 if content.sealed else self._size - len(content.msgs)

    # ------------------------------------------------------------------ reading

    def _poll(self, event: Poll) -> Process[None]:
        oldest = self._clock.now - self._freshness_s
        stale = [key for key in event.offsets if self._confirmed_at.get(key, -inf) <= oldest]
        yield from gather([self._refresh(key) for key in stale])
        yield Reply(event.request, PollOk(self._copy.since(event.offsets)))

    def _refresh(self, key: str) -> Process[None]:
        """Read all that may be shown, closing what is below; look ahead the further, the more there is."""
        window, asked_at = 2, self._clock.now
        while True:
            first = self._closed.get(key, 0)
            reads = [self._read(key, number) for number in range(first, first + window)]
            found = [each for each in takewhile(bool, (yield from gather(reads))) if each]
            lower = [
                self._close(key, number, each) for number, each in enumerate(found[:-1], first)
            ]
            self._show(key, first, [*(yield from gather(lower)), *found[-1:]])
            if len(found) < window:
                self._confirmed_at[key] = max(asked_at, self._confirmed_at.get(key, -inf))
                return
            window *= 2

    def _read(self, key: str, number: int) -> Process[RangeContent | None]:
        heard = self._heard.get((key, number))
        return heard or (yield from read_as(_register(key, number), range_content_of))

    def hear(self, share: Share) -> None:
        """Take ranges that a peer has sealed."""
        for key, ranges in share.msgs.items():
            for number, value in ranges:
                with suppress(Misfit):  # a peer may show what no register can hold
                    content = range_content_of(value)
                    if content.sealed and number >= self._closed.get(key, 0):
                        self._heard[key, number] = content

    def _close(self, key: str, number: int, content: RangeContent) -> Process[RangeContent]:
        """Returns the final content of a range, sealed unless it is full."""
        register = _register(key, number)
        while self._room(content):
            sealed = content._replace(sealed=True)
            outcome = yield from call(Cas(register, content.value, sealed.value))
            if isinstance(outcome, Ok):
                for peer in self._others:
                    yield Tell(peer, Share({key: [[number, sealed.value]]}))
                return sealed
            content = (yield from read_as(register, range_content_of)) or content
        return content

    def _show(self, key: str, first: int, ranges: list[RangeContent]) -> None:
        """Copy ranges of which all but the last are closed, as is everything below them."""
        for number, content in enumerate(ranges, first):
            for offset, (_, msg) in enumerate(content.msgs, number * self._size):
                self._copy.put(key, offset, msg)
            self._heard.pop((key, number), None)
            known = number + 1
            self._known[key] = max(known, self._known.get(key, 0))
            if not self._room(content):
                self._closed[key] = max(known, self._closed.get(key, 0))


def _register(key: str, number: int) -> str:
    return f"range/{key}/{number}"
