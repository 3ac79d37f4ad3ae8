"""The other nodes: which of them commits, how long it takes, and which is silent.

A peer that was silent is asked again now and then, but nothing waits for it: its answer ends the suspicion.
"""

from math import inf
from typing import NamedTuple

from leaderless.core.estimates import RoundTrip
from leaderless.core.pace import Pace


class Suspicion(NamedTuple):
    """A silent peer is not asked again before `until`, which was `span_s` ahead."""

    until: float
    span_s: float


class Peers:
    """What `node` knows of `peers`, its own name among them. Times are seconds."""

    def __init__(self, node: str, peers: tuple[str, ...], pace: Pace) -> None:
        self._node = node
        self._peers = frozenset(peers)
        self._pace = pace
        self._committers: dict[str, None] = {}  # in the order of the last commit known of each
        self._suspects: dict[str, Suspicion] = {}
        self._helper = ""  # the peer that committed this node's last batch
        self._late: set[str] = set()  # a batch went another way, and they have not answered since
        self.round_trip = RoundTrip(guess_s=0.0)  # of a hand-over

    def committed(self, node: str) -> None:
        """Learn that the newest head is by `node`."""
        self._committers.pop(node, None)
        self._committers[node] = None

    def is_late(self, peer: str) -> None:
        """Learn that a batch went another way before a peer answered."""
        self._late.add(peer)

    def answered(self, peer: str, seconds: float) -> None:
        """Learn that a peer answered."""
        self._suspects.pop(peer, None)
        self._late.discard(peer)
        self.round_trip.took(seconds)

    def helped(self, peer: str, *, helped: bool) -> None:
        """Learn whether a peer that answered has committed the batch."""
        self._helper = peer if helped else ""

    def was_silent(self, peer: str, now: float, patience_s: float) -> None:
        """Suspect a silent peer: nothing is sent to it for a span, which doubles at each silence."""
        known = self._suspects.get(peer)
        span_s = 2 * known.span_s if known else self._pace.suspect_patiences * patience_s
        span_s = min(self._pace.suspect_s_max, span_s)
        self._suspects[peer] = Suspicion(now + span_s, span_s)
        self._late.discard(peer)
        if self._helper == peer:
            self._helper = ""

    def committing(self) -> str | None:
        """The peer that helped last, or else the one that committed last, of those that are not silent or late.

        None if this node committed last.
        """
        if next(reversed(self._committers), self._node) == self._node:
            return None
        if self._helper and self._helper not in self._late:
            return self._helper
        for node in reversed(self._committers):
            if node == self._node:
                return None
            if node in self._peers and node not in self._suspects and node not in self._late:
                return node
        return None

    def to_probe(self, now: float) -> list[str]:
        """The suspects to be asked now; each is asked once until it answers or is silent again."""
        due = [peer for peer, suspicion in self._suspects.items() if suspicion.until <= now]
        for peer in due:
            self._suspects[peer] = self._suspects[peer]._replace(until=inf)
        return due

    @property
    def suspects(self) -> list[str]:
        """The peers that count as silent, in alphabetic order."""
        return sorted(self._suspects)
