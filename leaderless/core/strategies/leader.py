"""Strategy `leader`: the first node numbers everything in memory and pushes it to the others on a period.

    n1 -> n0   send{key, msg}         a follower passes the client's send on: -> send_ok{offset}
    n0 -> *    share{msgs}            every `PUSH_PERIOD_S`, what was numbered since

This is the strong-leader solution published for the kafka workload of Gossip Glomers. Guarantees, as long as
node n0 runs and no message between nodes is lost or overtakes another: offsets are dense and unique, and
each poll is a prefix of the log, at most a push behind. It is the fewest messages that can be had.

Weak where: nothing is durable, and a push is never repeated. When n0 is killed its numbering starts again at
0: `inconsistent-offsets`, `lost-write`. A push that is lost (a partition) leaves a hole that its reader steps
over, and one that is overtaken (uneven latency) leaves it for a while: `poll-skip`, `int-poll-skip`,
`unseen`. A follower cut off from n0 can append nothing; one node's CPU bounds the whole log.
"""

from leaderless.core.messages import Failure, Pairs, Reason, Reply, Send, SendOk, Share, Tell
from leaderless.core.process import Process, Sleep, Spawn, ask
from leaderless.core.strategies.serving import AllInMemory
from leaderless.core.strategy import Context

PUSH_PERIOD_S = 0.01  # longer: fewer messages, and polls that are further behind


class LeaderLog(AllInMemory):
    """Numbers sends on the first node and passes them on to it elsewhere; see the module's text."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        node, peers, _ = context.identity
        limits = context.options.limits
        self._patience_s = limits.answer_s - limits.answer_margin_s  # the client still waits
        self._clock = context.clock
        self._leader = peers[0] if peers else node
        self._leads = node == self._leader
        self._followers = [peer for peer in peers if peer != self._leader]
        self._ends: dict[str, int] = {}
        self._fresh: dict[str, Pairs] = {}  # numbered since the last push

    def _send(self, event: Send) -> Process[None]:
        return self._number(event) if self._leads else self._pass_on(event)

    def _pass_on(self, event: Send) -> Process[None]:
        answer = yield from ask(self._leader, event, self._patience_s)
        silent = Failure(
            Reason.TIMEOUT, f"{self._leader}, which numbers all messages, did not answer"
        )
        yield Reply(event.request, answer if isinstance(answer, SendOk) else silent)

    def _number(self, event: Send) -> Process[None]:
        offset = self._ends.get(event.key, 0)
        self._ends[event.key] = offset + 1
        self._copy.put(event.key, offset, event.msg)
        yield Reply(event.request, SendOk(offset))
        if not self._fresh:
            yield Spawn(self._push())
        self._fresh.setdefault(event.key, []).append([offset, event.msg])

    def _push(self) -> Process[None]:
        yield Sleep(self._clock.now + PUSH_PERIOD_S)
        share, self._fresh = Share(self._fresh), {}
        for follower in self._followers:
            yield Tell(follower, share)
