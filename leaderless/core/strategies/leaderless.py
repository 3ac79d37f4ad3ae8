"""Strategy `leaderless`: the log on one head register (see `leaderless.core.headlog`).

Guarantees: offsets of a key are dense; an acknowledged send is in the log exactly once, at its offset,
whatever crashes; a poll is a contiguous run of a prefix of the log no older than the freshness bound; no
node is needed but the store. Anomalies: none on one head.

Weak where: all keys share the head register, so the log grows as fast as one register can be replaced,
times the batch; and every node folds every entry, even if no client polls it there.
"""

from dataclasses import asdict

from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.compaction import LOOK_S, Compactor
from leaderless.core.headlog.consumer import ConsumerService
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.policy import CommitPolicy, PolicyMaker
from leaderless.core.headlog.records import FENCED, HEAD, OPEN
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import View
from leaderless.core.headlog.writer import Writer, lanes_of
from leaderless.core.messages import (
    Append,
    Cas,
    CommitOffsets,
    Failure,
    Fence,
    FenceOk,
    Fields,
    HandOver,
    ListCommittedOffsets,
    NodeStatus,
    Ok,
    Poll,
    Reason,
    Refresh,
    Reply,
    Request,
    RequestEvent,
    Send,
    StatusOk,
    Unfence,
    Unknown,
)
from leaderless.core.process import Process, Sleep, Spawn, call
from leaderless.core.shape import Shape
from leaderless.core.strategy import Context


class LeaderlessLog:
    """Joins writer, replica and consumer of one node; `policy` makes the one that decides."""

    def __init__(self, context: Context, policy: PolicyMaker = CommitPolicy) -> None:
        identity, self._clock, options, trace = context
        self._node = identity.node
        self._limits = limits = options.limits
        writers = lanes_of(identity.writer, limits.lanes)
        clock, node, pace = self._clock, identity.node, options.pace
        peers = frozenset(identity.peers) if options.peers is None else options.peers
        decides = policy(clock, node, peers, pace, combine=options.combine)
        founding = options.shape or Shape().for_nodes(len(identity.peers))
        self._replica = Replica(
            clock, node, writers, limits, trace, founding=founding, policy=decides
        )
        self._memory = Memory(self._replica)
        self._compactor = Compactor(clock, self._replica, identity.writer, pace)
        self._writer = Writer(
            clock,
            node,
            writers=writers,
            replica=self._replica,
            policy=decides,
            compactor=self._compactor,
        )
        self._options, self._policy = options, decides
        self._consumer = ConsumerService(context, self._replica, self._writer, self._memory)

    @property
    def view(self) -> View:
        """What this node knows of the log, as of its last answer."""
        return self._replica.view

    @property
    def epoch(self) -> int | None:
        """The newest epoch of the log that this node has learnt of; None before its first look."""
        return self._replica.head.epoch if self._replica.loaded else None

    @property
    def sealed(self) -> int:
        """How many segments were sealed, as far as this node knows."""
        return self._replica.head.sealed

    @property
    def appends(self) -> bool:
        """Whether this process has appended, or tried to."""
        return self._writer.appended

    @property
    def uncompacted(self) -> int:
        """How many segments are in no run, as far as this process knows."""
        return self._compactor.waiting

    @property
    def upkeeps(self) -> bool:
        """Whether this process seals or compacts, and waits for no other one."""
        return self._writer.upkeeps

    def upkept(self) -> Process[None]:
        """Wait while `upkeeps`."""
        while self.upkeeps:
            yield Sleep(self._clock.now + LOOK_S)

    def compact(self, *, whole: bool = False) -> Process[None]:
        """Compact what fills runs, or the `whole`; see `Compactor.finish`. Raises `StoreSilent`."""
        return self._compactor.finish(whole=whole)

    def serve(self, event: RequestEvent) -> Process[None]:
        """The process that takes `event`; a send is answered later, by its batch."""
        if isinstance(event, Send):  # mostly
            process = self._writer.append(event)
        elif isinstance(event, Poll):
            process = self._consumer.poll(event)
        else:
            process = self._serve_others(event)
        return self._after_shedding(process) if self._memory.overfull else process

    def _after_shedding(self, process: Process[None]) -> Process[None]:
        yield Spawn(self._memory.evict())
        yield from process

    def _serve_others(
        self,
        event: Append
        | Refresh
        | CommitOffsets
        | ListCommittedOffsets
        | Fence
        | Unfence
        | NodeStatus
        | HandOver,
    ) -> Process[None]:
        match event:
            case Append():
                return self._writer.append(event)
            case Refresh():
                return self._consumer.refresh(event)
            case CommitOffsets():
                return self._consumer.commit_offsets(event)
            case ListCommittedOffsets():
                return self._consumer.list_committed_offsets(event)
            case NodeStatus(request):
                return self._status(request)
            case HandOver():
                return self._writer.commit_for(event)
            case Fence(request):
                return self._set_state(request, FENCED)
            case Unfence(request):
                return self._set_state(request, OPEN)

    def _status(self, request: Request) -> Process[None]:
        """Answer at once, from what this node knows."""
        replica, heading = self._replica, self._replica.head.heading
        waiting, under_way, here = self._writer.load
        age_s = self._clock.now - replica.confirmed_at
        fields: Fields = {
            "node": self._node,
            "head": heading._asdict() | {"end": replica.head.end, "shape": replica.shape.value},
            "view_age_s": round(age_s, 3) if replica.loaded else None,
            "sends_waiting": waiting,
            "batches_under_way": under_way,
            "batches_to_commit": here,
            "hands_over_to": self._policy.target(),
            "late_peers": self._policy.late,
            "compaction": self._compactor.state,
            "limits": asdict(self._limits),
            "pace": asdict(self._options.pace),
        }
        yield Reply(request, StatusOk(fields))

    def _set_state(self, request: Request, state: str) -> Process[None]:
        """Change the state of the head in a new epoch; already there is fine."""
        replica, until, unsure = self._replica, self._clock.now + self._limits.answer_s, False
        while self._clock.now < until:  # nobody waits for it any longer
            yield from replica.refresh()
            head = replica.head
            if head.heading.state == state:
                break
            new, asked_at = head.with_state(state, self._node), self._clock.now
            outcome = yield from call(Cas(HEAD, head.value, new.value, create=head.value is None))
            if isinstance(outcome, Ok):
                replica.trace("Unfence" if state == OPEN else "Fence", steps.switched, new)
                # Done, and not to be looked at again: another node may have changed it back since.
                if replica.head is head:
                    replica.changed(new, asked_at)
                head = new
                break
            if isinstance(outcome, Unknown) and outcome.refused and not unsure:
                yield Reply(
                    request,
                    Failure(
                        Reason.REFUSED,
                        f"the store refused it, and the log is {head.heading.state} as it was",
                    ),
                )
                return
            unsure = unsure or isinstance(outcome, Unknown)
        else:
            return
        yield Reply(request, FenceOk(head.epoch))
