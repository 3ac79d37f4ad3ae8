"""Strategy `prefetch`: each node reserves blocks of offsets ahead, and shows each message at once. Wrong.

    reserved/KEY  n      the first offset that is in no block: read n, compare-and-set n -> n + BLOCK
    node -> *     share  each message as it is numbered

A node hands out the offsets of its blocks by itself: an append costs a message to each peer, and one in
BLOCK asks the store. Guarantees: an offset holds one message, and that is all.

Weak where: n1 may show offset 16, the first of its block, while n0 has filled its own block [0, 16) only up
to 2. A reader that has got 16 goes on from 17, and what n0 appends at 3 appears behind it: `poll-skip`,
`int-poll-skip`, and `lost-write` if no process polls it later. That blocks leave holes in the numbers does no
harm (see docs/learn/why-prefetch-fails.md). Nothing but the numbers is durable, and no share is repeated: a
lost one (a partition) or a killed node loses messages (`lost-write`, `poll-skip`) that were acknowledged.
"""

from collections import deque

from leaderless.core.coordination import count_of, read_as
from leaderless.core.messages import Cas, Ok, Reply, Send, SendOk, Share, Tell
from leaderless.core.process import Process, call
from leaderless.core.strategies.serving import AllInMemory, InTurn
from leaderless.core.strategy import Context

BLOCK = 16


class PrefetchLog(AllInMemory):
    """Numbers sends from blocks of `block` offsets; see the module's text."""

    def __init__(self, context: Context, block: int = BLOCK) -> None:
        super().__init__()
        node, peers, _ = context.identity
        self._others = [peer for peer in peers if peer != node]
        self._block = block
        self._free: dict[str, deque[int]] = {}  # reserved and not handed out
        self._sends = InTurn(self._append)

    def _send(self, event: Send) -> Process[None]:
        return self._sends.send(event)

    def _append(self, key: str, sends: list[Send]) -> Process[None]:
        if not self._free.get(key):
            self._free[key] = deque((yield from self._reserve(key)))
        send, offset = sends.pop(0), self._free[key].popleft()
        self._copy.put(key, offset, send.msg)
        for peer in self._others:
            yield Tell(peer, Share({key: [[offset, send.msg]]}))
        yield Reply(send.request, SendOk(offset))

    def _reserve(self, key: str) -> Process[range]:
        """Returns a block that is only this node's; one whose reservation got no answer is given up."""
        register = f"reserved/{key}"
        while True:
            reserved = yield from read_as(register, count_of)
            first = reserved or 0
            end = first + self._block
            outcome = yield from call(Cas(register, reserved, end, create=reserved is None))
            if isinstance(outcome, Ok):
                return range(first, end)
