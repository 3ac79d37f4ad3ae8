"""Clients beside those of the workload. Its history and its checker do not know them; the oracle judges them.

    auditors        commit offsets and list them, each time through another node, as consumers of one group do
                    that move from node to node: often forward, sometimes back; and they read the old log
    large senders   send values of up to so many KiB

Every request comes from a client of its own, which is gone after its patience, as the bench's clients are.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from bench.cluster import Cluster
from bench.net import Departure, Network
from simulation.backlog import old_key
from simulation.hosts import NS
from simulation.oracle import Body
from simulation.scenario import Scenario
from simulation.watch import CLIENT_PATIENCE_S

AUDITED = [f"audited{number}" for number in range(16)]
LARGE = [f"large{number}" for number in range(3)]
BACKWARD = 0.2  # of the commits
AUDIT_GAP_S, LARGE_GAP_S = 0.3, 0.5  # between two requests of one client, in the mean


class SideClients:
    """All of them; `begin` lets them ask until the main phase is over."""

    def __init__(
        self,
        scenario: Scenario,
        cluster: Cluster,
        network: Network,
        new_client: Callable[[], str],
        random: Random,
    ) -> None:
        self._scenario = scenario
        self._loop = cluster.loop
        self._cluster = cluster
        self._network = network
        self._new_client = new_client
        self._random = random
        self._end_ns = 0
        self._number = 0
        self._reached = dict.fromkeys(AUDITED, 0)
        self.sent: set[str] = set()  # keys

    def begin(self) -> None:
        """The main phase begins."""
        self._end_ns = self._loop.now_ns() + int(self._scenario.time_limit_s * NS)
        for _ in range(self._scenario.auditors):
            self._turn(AUDIT_GAP_S, self._audit)
        if self._scenario.large_kib:
            self._turn(LARGE_GAP_S, self._send_large)

    def _turn(self, gap_s: float, act: Callable[[], Body], *, first: bool = True) -> None:
        """Ask, unless it is the first turn, and come back after a while."""
        if self._loop.now_ns() >= self._end_ns:
            return
        if not first:
            body, node = act(), self._random.choice(self._cluster.members)
            self.tell({**body, "msg_id": 1}, node)
        at_ns = self._loop.now_ns() + int(self._random.expovariate(1 / gap_s) * NS)
        self._loop.call_at(at_ns, partial(self._turn, gap_s, act, first=False))

    def _audit(self) -> Body:
        draw = self._random.random()
        if draw < 0.4:
            return {"type": "commit_offsets", "offsets": self._offsets()}
        if draw < 0.8 or not self._scenario.backlog:
            keys = self._random.sample(AUDITED, self._random.randint(1, len(AUDITED)))
            return {"type": "list_committed_offsets", "keys": keys}
        old = {old_key(number): self._random.randint(0, number + 20) for number in range(4)}
        return {"type": "poll", "offsets": old}

    def _offsets(self) -> dict[str, int]:
        """What a consumer commits that has processed more, or one that has gone back."""
        keys = self._random.sample(AUDITED, self._random.choice((1, 4, 16)))
        for key in keys:
            self._reached[key] += self._random.randint(0, 3)
        back = self._random.randint(1, 5) if self._random.random() < BACKWARD else 0
        return {key: max(0, self._reached[key] - back) for key in keys}

    def _send_large(self) -> Body:
        self._number += 1
        key = self._random.choice(LARGE)
        self.sent.add(key)
        size = int(self._random.random() * self._scenario.large_kib * 1024)
        return {"type": "send", "key": key, "msg": f"{self._number} {'x' * size}"}

    def tell(self, body: Body, node: str) -> None:
        """Send something to a node as a client of its own."""
        client = self._new_client()
        self._network.add(client, lambda _src, _body, _wire: None)
        gone_ns = self._loop.now_ns() + int(CLIENT_PATIENCE_S * NS)
        self._loop.call_at(gone_ns, self._network.leave, client, Departure(gone_ns))
        self._network.send(client, node, body)
