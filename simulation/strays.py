"""Stray copies of messages from former lives of a node.

A network may keep a copy of a message for long, and deliver it when its sender or its receiver has died and
started again: a request of the former life to the store or to a peer, or the answer to one.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.loop import Loop
from bench.net import Message
from simulation.hosts import NS

REMEMBERED = 200  # messages of a node
LATEST_S = 3.0  # after the restart


@dataclass(eq=False)
class Strays:
    """When a node starts again, `count` copies of messages of its former life `arrive`."""

    loop: Loop
    arrive: Callable[[Message], object]
    count: int
    random: Random

    def __post_init__(self) -> None:
        self._sent: dict[str, deque[Message]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def sent(self, src: str, dest: str, body: dict[str, Any], wire: bytes) -> None:
        """A message was sent; those of clients stray nowhere."""
        if self.count and src[0] != "c" and dest[0] != "c":
            for each in (src, dest):
                self._sent[each].append(Message(src, dest, body, wire, src))

    def restarted(self, node: str) -> None:
        """A node lives again: copies of what it sent and of what was sent to it come, by and by."""
        former = [*self._sent.pop(node, ())]
        for message in self.random.sample(former, min(self.count, len(former))):
            at_ns = self.loop.now_ns() + int(self.random.random() * LATEST_S * NS)
            self.loop.call_at(at_ns, self.arrive, message)
