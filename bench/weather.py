"""Bad weather on the links between servers: messages that get lost, come twice, or take long.

It holds for messages that leave or reach one of the nodes it was called for, and that have no client at
either end:

    loss        node to node, node to service, service to node
    duplicate   node to node, service to node; never a request to a service, which would execute it twice
                and so be no longer what it promises to be
    slow        the same links as loss

The network asks it only while there is some.
"""

from collections.abc import Callable, Collection
from random import Random
from typing import NamedTuple

NS_PER_MS = 1_000_000
SLOW_BASE_MS = 1  # what a latency of 0 counts as when it is multiplied
STRAY_MAX_NS = 2_000_000_000  # how long a second copy may stray about


class Spell(NamedTuple):
    """A kind of bad weather: whom it is for and how bad it is, a share of messages or a factor."""

    nodes: frozenset[str]
    level: float


class Weather:
    """`nodes` are all nodes, which tells them from services; `has_latency`: whether the network has any."""

    def __init__(self, nodes: Collection[str], has_latency: bool, random: Random) -> None:
        self._nodes = frozenset(nodes)
        self._slow_base_ns = 0 if has_latency else SLOW_BASE_MS * NS_PER_MS
        self._random = random
        self.spells: dict[str, Spell] = {}  # the fault's name -> what is in force

    def delays_ns(self, src: str, dest: str, draw_latency_ns: Callable[[], int]) -> list[int]:
        """After how long each copy of a message arrives: none, one or two."""
        if self._strikes("loss", src, dest):
            return []
        delay_ns = draw_latency_ns()
        if slow := self._spell("slow", src, dest):
            delay_ns = int(slow.level * (delay_ns + self._slow_base_ns))
        delays = [delay_ns]
        if dest in self._nodes and self._strikes("duplicate", src, dest):
            # Most copies follow soon, some when all who knew of the first have forgotten it.
            delays.append(delay_ns + int(self._random.random() ** 3 * STRAY_MAX_NS))
        return delays

    def _strikes(self, name: str, src: str, dest: str) -> bool:
        spell = self._spell(name, src, dest)
        return spell is not None and self._random.random() < spell.level

    def _spell(self, name: str, src: str, dest: str) -> Spell | None:
        spell = self.spells.get(name)
        return spell if spell and (src in spell.nodes or dest in spell.nodes) else None
