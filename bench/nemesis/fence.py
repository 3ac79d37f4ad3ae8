"""`fence`: a node fences the log on request, so that nothing is appended until it is unfenced.

`fence` -> `fence_ok {epoch}` and `unfence` -> `fence_ok {epoch}` are RPCs of our own. A node that does not
know them answers with error 10 (not-supported), as Maelstrom's protocol has it. The history records that, and
the fault does not come again in this run. A node that does not answer may have fenced the log, or may do so
later. So the nemesis asks one node after another to unfence it until one answers, and once more when no earlier
request can take effect any longer.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from bench.cluster import Cluster
from bench.loop import Loop
from bench.nemesis.fault import Done, Plan
from bench.nemesis.store_faults import LONGEST_NS
from bench.net import Network
from runs.keyword import Keyword, keywords
from workloads.interface import error_of

NOT_SUPPORTED = 10
_PATIENCE_NS = 2_000_000_000
_RETRY_NS = 250_000_000
# A fence that was not answered takes effect within this time (of a node and of its store), or never.
_SETTLED_NS = LONGEST_NS + _PATIENCE_NS
_ATTEMPTS = 40

OnReply = Callable[[dict[str, Any] | None], object]  # takes the reply, or None after the patience


class Fence:
    """A `Fault` that needs the nodes' help."""

    name = "fence"

    def __init__(self, cluster: Cluster, network: Network, loop: Loop) -> None:
        self.possible = True
        self._cluster = cluster
        self._network = network
        self._loop = loop
        self._client: str | None = None
        self._asked: dict[int, OnReply] = {}  # by msg_id
        self._count = 0
        self._known = False  # a node has answered as it should
        self._doubtful = False  # a fence was not answered: it may have happened, or may happen yet

    def plan(self, random: Random) -> Plan:
        # The choice is among all nodes, so that it does not depend on what other faults did.
        node = random.choice(self._cluster.names)
        return Plan(node, partial(self._fence, node))

    def end(self, done: Done) -> None:
        if self.possible:
            self._unfence(done, self._attempts)
        else:
            done(Keyword("not-supported"))

    @property
    def _attempts(self) -> int:
        """Patience is for nodes that have shown that they know of fencing; others are asked once each."""
        return _ATTEMPTS if self._known else len(self._cluster.names)

    def _fence(self, node: str, done: Done) -> None:
        if node not in self._cluster.serving:
            done([Keyword("not-serving"), node])
            return

        def fenced(reply: dict[str, Any] | None) -> None:
            self._doubtful = reply is None
            self._learn(reply)
            done([_outcome(reply), node])

        self._ask(node, "fence", fenced)

    def _unfence(self, done: Done, attempts: int) -> None:
        """Ask one node after another until one has answered well."""
        serving = self._cluster.serving
        if not attempts:
            done([Keyword("unknown"), "no node answered"])
        elif not serving:
            self._later(_RETRY_NS, self._unfence, done, attempts)
        else:
            node = serving[attempts % len(serving)]
            self._ask(node, "unfence", partial(self._unfenced, node, done, attempts))

    def _unfenced(self, node: str, done: Done, attempts: int, reply: dict[str, Any] | None) -> None:
        self._learn(reply)
        if not self.possible:
            done([_outcome(reply), node])
        elif reply is None or reply.get("type") != "fence_ok":
            self._later(_RETRY_NS, self._unfence, done, attempts - 1)
        elif self._doubtful:
            self._doubtful = False
            self._later(_SETTLED_NS, self._unfence, done, self._attempts)
        else:
            done([_outcome(reply), node])

    def _learn(self, reply: dict[str, Any] | None) -> None:
        if reply:
            self.possible = reply.get("code") != NOT_SUPPORTED
            self._known = self._known or reply.get("type") == "fence_ok"

    def _later(self, wait_ns: int, function: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_at(self._loop.now_ns() + wait_ns, function, *arguments)

    def _ask(self, node: str, request: str, on_reply: OnReply) -> None:
        if self._client is None:
            self._client = self._cluster.new_client()
            self._network.add(self._client, self._deliver)
        self._count += 1
        self._asked[self._count] = on_reply
        self._later(_PATIENCE_NS, self._give_up, self._count)
        self._network.send(self._client, node, {"type": request, "msg_id": self._count})

    def _give_up(self, msg_id: int) -> None:
        if on_reply := self._asked.pop(msg_id, None):
            on_reply(None)

    def _deliver(self, _src: str, body: dict[str, Any], _wire: bytes) -> None:
        msg_id = body.get("in_reply_to")
        if type(msg_id) is int and (on_reply := self._asked.pop(msg_id, None)):
            on_reply(body)


def _outcome(reply: dict[str, Any] | None) -> Any:
    """The epoch of a reply, or the name of its error, for the history."""
    if reply is None:
        return Keyword("unknown")
    if reply.get("type") == "fence_ok":
        return keywords(epoch=reply.get("epoch"))
    return Keyword(error_of(reply).name)
