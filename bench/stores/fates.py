"""What becomes of a node's request to a real store: on the way there, at the store, on the way back.

The ways have the latency of the network and its link faults (`loss`, `slow`), as those to `lin-kv` have.
Partitions leave services reachable there, and so they do here. At the store the fault `store` acts, in one of
these modes:

    late        it takes 10 to 300 ms, before or after the request is applied
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        the request is applied, and then the connection is reset without an answer
    reset       the connection is reset, and nothing was applied
    throttled   the answer is that the store is busy (503), and nothing was applied
    dripping    the answer comes in small pieces, for 0.3 to 3 s
    damaged     it is applied, and its answer makes no sense (`bench.stores.damage`)
    refused     every connection of the nodes is reset, and so is each that they open

Applied means: the store got the request and answered it. What the store did not get never happens.
"""

from enum import Enum
from random import Random
from typing import NamedTuple, Protocol

from bench.nemesis.store_faults import LOST, MODES, SHARES, WAITS_NS, StoreFault
from bench.stores.damage import Damage

LINK = "store"  # the name of the store as an end of a link
RESET, THROTTLED, DRIPPING, REFUSED = "reset", "throttled", "dripping", "refused"
DAMAGED = "damaged"
# mode -> the shares of requests that it may affect
MODES_OF_PROXY = dict.fromkeys((*MODES, RESET, THROTTLED, DRIPPING, DAMAGED), SHARES) | {
    REFUSED: (1.0,)
}
_DRIPPING_NS = (300_000_000, 3_000_000_000)


class End(Enum):
    """How a request ends for its node."""

    ANSWERED = "answered"
    SILENT = "silent"  # no answer, and the connection stays
    RESET = "reset"
    THROTTLED = "throttled"
    DRIPPING = "dripping"
    DAMAGED = "damaged"


class Fate(NamedTuple):
    """What becomes of a request: it waits, is `applied` or not, waits again, and ends for the node.

    `drips_ns`: for how long its answer drips. `damage`: what is wrong with its answer, if it ends so. `mode`:
    the fault that did it, None for none.
    """

    there_ns: int = 0
    applied: bool = True
    back_ns: int = 0
    end: End = End.ANSWERED
    drips_ns: int = 0
    damage: Damage = Damage.HALF
    mode: str | None = None


class Ways(Protocol):
    """Links beside the messages of a network; see `bench.net.Network.way_ns`."""

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None: ...


class Fates:
    """Deals fates under the faults in force; `in_force` is None while the store is well."""

    def __init__(self, network: Ways, random: Random) -> None:
        self._network = network
        self._random = random
        self.in_force: StoreFault | None = None

    def of(self, node: str, *, spared: bool = False) -> Fate:
        """The fate of the next request of a node; a `spared` one meets no fault."""
        there_ns = self._network.way_ns(node, LINK, spared=spared)
        back_ns = self._network.way_ns(LINK, node, spared=spared)
        if there_ns is None:
            return Fate(applied=False, end=End.SILENT, mode="loss")
        if back_ns is None:
            return Fate(there_ns, end=End.SILENT, mode="loss")
        fault = self.in_force
        if spared or not fault or node not in fault.nodes or self._random.random() >= fault.share:
            return Fate(there_ns, back_ns=back_ns)
        return self._at_store(fault.mode, there_ns, back_ns)

    def _at_store(self, mode: str, there_ns: int, back_ns: int) -> Fate:
        if mode in WAITS_NS:
            wait_ns = self._random.randint(*WAITS_NS[mode])
            first_ns = wait_ns if self._random.random() < 0.5 else 0
            return Fate(there_ns + first_ns, back_ns=back_ns + wait_ns - first_ns, mode=mode)
        if mode == LOST:
            return Fate(there_ns, back_ns=back_ns, end=End.RESET, mode=mode)
        if mode == DRIPPING:
            drips_ns = self._random.randint(*_DRIPPING_NS)
            return Fate(there_ns, True, back_ns, End.DRIPPING, drips_ns, mode=mode)
        if mode == DAMAGED:
            damage = self._random.choice([*Damage])
            return Fate(there_ns, True, back_ns, End.DAMAGED, damage=damage, mode=mode)
        end = End.THROTTLED if mode == THROTTLED else End.RESET
        return Fate(there_ns, False, back_ns, end, mode=mode)
