"""Nodes on a virtual bucket, beside programs: the core with a node's defaults and with peers.

`leaderless.runtime.on_store` runs it so, with lines in place of calls. A peer gets what another one asks of it,
and its answer comes back, after a latency. Either may be lost, and so is what is meant for a node that is not
there: no node knows which of its peers live.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from random import Random

import anyio

from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Answer,
    Effect,
    HandedOver,
    HandOver,
    Offer,
    PeerAnswer,
    PeerCall,
    Send,
    SendOk,
)
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context as NodeContext
from leaderless.core.timeouts import StoreTimeouts
from leaderless.errors import LogError
from leaderless.hosting.host import Host, MakeEvent, beside, log_notes, running
from leaderless.store.port import Store
from leaderless.store.registers import Registers
from simulation.objects.loop import VirtualEventLoop

LOST = 0.2  # of what peers say to each other
LATENCY_S = 0.01
Delivered = Callable[[], object]


class Peers:
    """The nodes that live, by name, and the network between them."""

    def __init__(self, loop: VirtualEventLoop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self.nodes: dict[str, Talk] = {}

    def carry(self, name: str, delivered: Callable[["Talk"], object]) -> None:
        """Let something reach the node of this name, if it lives then and nothing is lost."""
        if self._random.random() < LOST:
            return

        def arrive() -> None:
            if node := self.nodes.get(name):
                node.take(lambda: delivered(node))

        way_s = LATENCY_S * self._random.expovariate(1.0)
        self._loop.call_later(way_s, arrive, context=Context())


class Talk:
    """What one node and its peers say to each other. What they say is taken by a task of its own (`serve`)."""

    def __init__(self, machine: Machine, store: Store, name: str, peers: Peers) -> None:
        self.host = Host(machine, Registers(store), self._say)
        self._name = name
        self._peers = peers
        self._inbox = deque[Delivered]()
        self._came = anyio.Event()

    def take(self, delivered: Delivered) -> None:
        """Something came from a peer."""
        self._inbox.append(delivered)
        self._came.set()

    async def serve(self) -> None:
        """Take what peers say, as this process and no other."""
        self._peers.nodes[self._name] = self
        try:
            async with anyio.create_task_group() as self._answering:
                while True:
                    await self._came.wait()
                    self._came = anyio.Event()
                    while self._inbox:
                        self._inbox.popleft()()
        finally:
            if self._peers.nodes.get(self._name) is self:
                del self._peers.nodes[self._name]

    def _say(self, effects: list[Effect]) -> None:
        """Ask peers what the machine asks them."""
        log_notes(effects)
        for effect in effects:
            if isinstance(effect, PeerCall):
                self._ask(effect)

    def _ask(self, call: PeerCall) -> None:
        def reply(answer: Answer) -> None:
            told = answer if isinstance(answer, HandedOver | SendOk) else None
            self._peers.carry(self._name, lambda me: me.host.take(PeerAnswer(call.call, told)))

        self._peers.carry(call.dest, lambda peer: peer.answer(_event_of(call), reply))

    def answer(self, event: MakeEvent, reply: Callable[[Answer], object]) -> None:
        """Answer a peer, when the answer is there."""

        async def answered() -> None:
            with suppress(LogError):  # it never answers
                reply(await self.host.ask(event))

        self._answering.start_soon(answered)


def _event_of(call: PeerCall) -> MakeEvent:
    question = call.question
    if isinstance(question, Offer):
        return lambda request: HandOver(request, question.slot, question.batch)
    return lambda request: Send(request, question.key, question.msg, question.size)


@asynccontextmanager
async def node_on(store: Store, context: NodeContext, peers: Peers) -> AsyncIterator[Host]:
    """What clients of a node ask, which is started on a store."""
    identity, clock, options, _ = context
    strategy = LeaderlessLog(context)
    scheduler = Scheduler(StoreTimeouts(options.pace))
    machine = Machine(strategy, options.limits, clock, scheduler)
    talk = Talk(machine, store, identity.node, peers)
    async with running(talk.host), beside(talk.serve):
        yield talk.host
