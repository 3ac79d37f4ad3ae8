"""`fence`: a node fences the log on request, so that nothing is appended until it is unfenced.

`fence` -> `fence_ok {epoch}` and `unfence` -> `fence_ok {epoch}` are RPCs of our own. A node that does not
know them answers with error 10 (not-supported), as Maelstrom's protocol has it. The history records that, and
the fault does not come again in this run. A node that does not answer, or whose error leaves the outcome open,
may have fenced the log, or may do so later. So the nemesis asks one node after another to unfence it until one
says that it did, and once more when no earlier request can take effect any longer.

    silence, an error   ask the next node, up to 40 times if any has shown that it knows of fencing
    `fence_ok`          the log is open; if a fence is in doubt, ask again when that is settled
    error 10            no node fences anything
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from bench.cluster import Cluster
from bench.loop import Loop
from bench.nemesis.fault import Done, Fault, Plan
from bench.nemesis.requests import LONGEST_NS
from bench.net import Network
from bench.services import Body
from runs.history import Keyword, keywords
from workloads.interface import error_of

NOT_SUPPORTED = 10
_MAY_PASS = (0, 11)  # timeout, temporarily-unavailable: the node knows what it was asked for
_PATIENCE_NS = 2_000_000_000
_RETRY_NS = 250_000_000
# Clients leave after so long. A node may begin with a request as late, and try for as long.
_CLIENT_PATIENCE_NS = 5_000_000_000
# From its request on, a fence without an answer takes effect within this time, or never.
_SETTLED_NS = 2 * _CLIENT_PATIENCE_NS + LONGEST_NS
_TRIES = 40
# With nodes that have shown nothing: together longer than a live node may be silent.
_TRIES_WITH_STRANGERS = 1 + _CLIENT_PATIENCE_NS // _PATIENCE_NS

OnReply = Callable[[Body | None], object]  # takes the reply, or None after the patience


@dataclass(eq=False)
class Fence(Fault):
    """A `Fault` that needs the nodes' help."""

    cluster: Cluster
    network: Network
    loop: Loop
    _client: str | None = None
    _asked: dict[int, OnReply] = field(default_factory=dict)  # by msg_id
    _count: int = 0
    _known: bool = False  # a node has shown that it knows of fencing
    _settled_ns: int = 0  # until then a fence may take effect whose outcome is not known

    name = "fence"

    def plan(self, random: Random) -> Plan:
        # The choice is among all nodes, so that it does not depend on what other faults did.
        node = random.choice(self.cluster.names)
        return Plan(node, partial(self._fence, node))

    def end(self, done: Done) -> None:
        if self.possible:
            self._unfence(done)
        else:
            done(Keyword("not-supported"))

    def _fence(self, node: str, done: Done) -> None:
        if node not in self.cluster.serving:
            done([Keyword("not-serving"), node])
            return
        settled_ns = self.loop.now_ns() + _SETTLED_NS

        def fenced(reply: Body | None) -> None:
            # It may have happened, or may happen yet, without a word of the node.
            if reply is None or (reply.get("type") != "fence_ok" and not error_of(reply).definite):
                self._settled_ns = settled_ns
            self._learn(reply)
            done([_outcome(reply), node])

        self._ask(node, "fence", fenced)

    def _unfence(self, done: Done, tries: int = 0) -> None:
        """Ask one node after another until one has answered well."""
        serving = self.cluster.serving
        # Patience is for nodes that have shown that they know of fencing.
        strangers = max(len(self.cluster.names), _TRIES_WITH_STRANGERS)
        if tries >= (_TRIES if self._known else strangers):
            done([Keyword("unknown"), "no node answered"])
        elif not serving:
            self.loop.call_later(_RETRY_NS, self._unfence, done, tries)
        else:
            node, asked_ns = serving[tries % len(serving)], self.loop.now_ns()
            self._ask(node, "unfence", partial(self._unfenced, node, done, tries, asked_ns))

    def _unfenced(
        self, node: str, done: Done, tries: int, asked_ns: int, reply: Body | None
    ) -> None:
        self._learn(reply)
        if not self.possible:
            done([_outcome(reply), node])
        elif reply is None or reply.get("type") != "fence_ok":
            self.loop.call_later(_RETRY_NS, self._unfence, done, tries + 1)
        elif asked_ns < self._settled_ns:
            self.loop.call_later(max(0, self._settled_ns - self.loop.now_ns()), self._unfence, done)
        else:
            done([_outcome(reply), node])

    def _learn(self, reply: Body | None) -> None:
        if reply:
            self.possible = reply.get("code") != NOT_SUPPORTED
            self._known |= reply.get("type") == "fence_ok" or reply.get("code") in _MAY_PASS

    def _ask(self, node: str, request: str, on_reply: OnReply) -> None:
        if self._client is None:
            self._client = self.cluster.new_client()
            self.network.add(self._client, self._deliver)
        self._count += 1
        self._asked[self._count] = on_reply
        self.loop.call_later(_PATIENCE_NS, self._give_up, self._count)
        self.network.send(self._client, node, {"type": request, "msg_id": self._count})

    def _give_up(self, msg_id: int) -> None:
        if on_reply := self._asked.pop(msg_id, None):
            on_reply(None)

    def _deliver(self, _src: str, body: Body, _wire: bytes) -> None:
        msg_id = body.get("in_reply_to")
        if type(msg_id) is int and (on_reply := self._asked.pop(msg_id, None)):
            on_reply(body)


def _outcome(reply: Body | None) -> Any:
    """The epoch of a reply, or the name of its error, for the history."""
    if reply is None:
        return Keyword("unknown")
    if reply.get("type") == "fence_ok":
        return keywords(epoch=reply.get("epoch"))
    return Keyword(error_of(reply).name)
