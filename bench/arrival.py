"""When messages arrive: each when it is due, or in turn, as on the real tool.

On the real tool every receiver has a queue, ordered by the time at which a message is due, and one taker. The
taker removes the first message and then sleeps until that is due. What arrives meanwhile waits, even if it is
due earlier, as a client's request is, which is due at once. The taker looks at partitions when it takes a
message, before it sleeps. It sleeps whole milliseconds, rounded down. [facts: Maelstrom's net.clj, `recv!`]

     0 ms  a peer's message is sent to n0, due at 100; n0's taker takes it and sleeps
    20 ms  a client's request is sent to n0, due at 20
    99 ms  the peer's message arrives, and after it the request, 79 ms late

`InTurn` does the same. `WhenDue` lets each message arrive when it is due, so that messages overtake one another
more often; the simulator draws one of the two.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

from bench.loop import Loop

IN_TURN, WHEN_DUE = "in-turn", "when-due"
ARRIVALS = (IN_TURN, WHEN_DUE)
_MS = 1_000_000


class Message(NamedTuple):
    """A message on its way; `wire` is all of it as encoded JSON."""

    src: str
    dest: str
    body: dict[str, Any]
    wire: bytes


Arrive = Callable[[Message], object]
IsCut = Callable[[str, str], bool]  # (sender, receiver): whether a partition is between them


class WhenDue:
    """Each message arrives when it is due, unless a partition then drops it."""

    def __init__(self, loop: Loop, arrive: Arrive, is_cut: IsCut) -> None:
        self._loop, self._arrive, self._is_cut = loop, arrive, is_cut

    def forget(self, _dest: str) -> None:
        """A receiver starts anew: nothing waits for it in a queue here."""

    def put(self, message: Message, latency_ns: int) -> None:
        """Let a message arrive that is due after so long."""
        if latency_ns:
            self._loop.call_at(self._loop.now_ns() + latency_ns, self._due, message)
        else:
            self._due(message)

    def _due(self, message: Message) -> None:
        if not self._is_cut(message.src, message.dest):
            self._arrive(message)


class InTurn:
    """One queue and one taker for each receiver."""

    def __init__(self, loop: Loop, arrive: Arrive, is_cut: IsCut) -> None:
        self._loop, self._arrive, self._is_cut = loop, arrive, is_cut
        self._count = 0  # of two messages that are due at once, the earlier comes first
        # By receiver, while its taker sleeps: what waits, as a heap by the time at which it is due.
        self._waiting: dict[str, list[tuple[int, int, Message]]] = {}

    def forget(self, dest: str) -> None:
        """A receiver starts anew, with a fresh queue: what waits in the old one is lost."""
        if waiting := self._waiting.get(dest):
            waiting.clear()

    def put(self, message: Message, latency_ns: int) -> None:
        """As that of `WhenDue`."""
        waiting = self._waiting.get(message.dest)
        if waiting is not None:
            self._count += 1
            heappush(waiting, (self._loop.now_ns() + latency_ns, self._count, message))
        elif latency_ns:
            self._take(self._loop.now_ns() + latency_ns, message)
        elif not self._is_cut(message.src, message.dest):
            self._arrive(message)

    def _take(self, due_ns: int, message: Message) -> bool:
        """Take a message, and let it arrive at once if it is due. Returns whether the taker sleeps now."""
        if self._is_cut(message.src, message.dest):
            return False
        now_ns = self._loop.now_ns()
        sleep_ms = (due_ns - now_ns - 1) // _MS  # less by the moment between sending and taking
        if sleep_ms <= 0:
            self._arrive(message)
            return False
        self._waiting.setdefault(message.dest, [])
        self._loop.call_at(now_ns + sleep_ms * _MS, self._wake, message)
        return True

    def _wake(self, message: Message) -> None:
        """The taker has slept until this message was due: deliver it, then take what waits."""
        self._arrive(message)
        waiting = self._waiting[message.dest]
        while waiting:
            due_ns, _, following = heappop(waiting)
            if self._take(due_ns, following):
                return
        del self._waiting[message.dest]
