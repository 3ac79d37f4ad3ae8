"""After the faults: does every node still serve, and do all of them hold the same log?

One client asks all nodes side by side. It sends each a message (the probe). Then it reads the whole log through
each, and polls on from where the last answer ended until nothing comes.
"""

from collections.abc import Callable
from typing import Any, Protocol

from bench.net import Deliver
from leaderless.core.limits import Limits
from leaderless.wire.bodies import ErrorCode
from simulation.oracle import Body, Oracle, require

PROBE = "probe"
POLLS = "a poll"  # what `wait` is told while the whole log is read
SETTLE_S = 2 * Limits().commits_idle_s  # committed offsets that waited for a batch are in the log


class Asks(Protocol):
    """As much of a `Network` as a client needs."""

    def add(self, name: str, deliver: Deliver, /) -> None:
        """A client listens."""

    def send(self, src: str, dest: str, body: Body, /) -> None:
        """A client asks."""


class Epilogue:
    """`waiting` are the nodes that owe an answer; `committed` is what each node listed.

    `wait(what, waiting)` returns when no answer is missing, `rest(seconds)` when so much time has passed.
    """

    def __init__(
        self,
        network: Asks,
        client: str,
        nodes: tuple[str, ...],
        oracle: Oracle | None,
        *,
        wait: Callable[[str, set[str]], object],
        rest: Callable[[float], object],
    ) -> None:
        self.client = client
        self.rest = rest
        self.waiting: set[str] = set()
        self.committed: dict[str, dict[str, int]] = {}
        self._network = network
        self._nodes = nodes
        self._oracle = oracle
        self._wait = wait
        self._logs: dict[str, dict[str, list[list[Any]]]] = {node: {} for node in nodes}
        self._keys: list[str] = []
        self._asked = 0
        self._questions: dict[str, Body] = {}  # the newest of each node
        network.add(client, self._answered)

    def run(self, keys: list[str]) -> None:
        """Ask everything, and judge it; raises `Violation` if something is wrong."""
        for node in self._nodes:
            self._ask(node, {"type": "send", "key": PROBE, "msg": node})
        self._wait("a probe", self.waiting)
        self.rest(SETTLE_S)
        self.read(keys)
        self.list_committed(keys)

    def send(self, key: str, msg: str, turn: int) -> None:
        """Send a message through the node whose turn it is."""
        node = self._nodes[turn % len(self._nodes)]
        self._ask(node, {"type": "send", "key": key, "msg": msg})
        self._wait("a send", self.waiting)

    def read(self, keys: list[str]) -> None:
        """Read these keys from the beginning, through every node.

        Raises `Violation` unless all nodes show the same log, with every probe in it.
        """
        self._keys = keys
        for node in self._nodes:
            self._poll(node)
        self._wait(POLLS, self.waiting)
        self._judge()

    def list_committed(self, keys: list[str]) -> None:
        """Raise `Violation` unless every node lists whatever must be in the log."""
        for node in self._nodes:
            self._ask(node, {"type": "list_committed_offsets", "keys": keys})
        self._wait("list_committed_offsets", self.waiting)
        if self._oracle:
            for offsets in self.committed.values():
                self._oracle.listed_at_last(offsets)

    def _judge(self) -> None:
        first, *others = self._nodes
        for node in others:
            for key in self._keys:
                left = self._oracle.trimmed.get(key, 0) if self._oracle else 0
                mine, its = (
                    [pair for pair in self._logs[each].get(key, []) if pair[0] >= left]
                    for each in (first, node)
                )
                text = f"key {key} differs: {_difference(first, mine, node, its)}"
                require(mine == its, "Convergence", text)
        probes = [msg for _, msg in self._logs[first].get(PROBE, [])]
        missing = sorted(set(self._nodes) - set(probes))
        require(not missing, "Convergence", f"acknowledged and gone: the probes of {missing}")

    def _ask(self, node: str, body: Body) -> None:
        self._asked += 1
        self._questions[node] = body
        self.waiting.add(node)
        self._network.send(self.client, node, {**body, "msg_id": self._asked})

    def _poll(self, node: str) -> None:
        log = self._logs[node]
        offsets = {key: log[key][-1][0] + 1 if key in log else 0 for key in self._keys}
        self._ask(node, {"type": "poll", "offsets": offsets})

    def _answered(self, node: str, body: Body, _wire: bytes) -> None:
        self.waiting.discard(node)
        match body:
            case {"type": "poll_ok", "msgs": msgs}:
                found = {key: pairs for key, pairs in msgs.items() if pairs}
                for key, pairs in found.items():
                    self._logs[node].setdefault(key, []).extend(pairs)
                if found:
                    self._poll(node)
            case {"type": "list_committed_offsets_ok", "offsets": offsets}:
                self.committed[node] = offsets
            # A queue, which has no oracle, may lose all races of an append, and keeps it twice if asked twice.
            case {"code": ErrorCode.TIMEOUT} if (
                not self._oracle or self._questions[node]["type"] != "send"
            ):
                # Slow messages and an impatient node, without any fault: a client would ask again.
                self._ask(node, self._questions[node])
            case {"type": "error", "text": text}:
                require(False, "Progress", f"after all faults {node} says: {text}")


def _difference(first: str, mine: list[Any], node: str, its: list[Any]) -> str:
    pairs = enumerate(zip(mine, its, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(mine), len(its)))
    return f"{first} holds {len(mine)}, {node} {len(its)}, first {mine[at : at + 1]}, {its[at : at + 1]}"
