"""Requests to a bucket that are held until somebody chooses what becomes of them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from leaderless.store.port import Conflict, OutcomeUnknown
from simulation.objects.client import Call, Network, VirtualStore, settle
from simulation.objects.loop import PROCESS, VirtualEventLoop
from simulation.objects.run import World
from simulation.objects.scenario import Scenario

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Held:
    """A request that has left its client.

    `name`: the client, and which of its requests it is; `asked`: its kind, and of which object.
    """

    name: str
    client: str
    asked: str
    _carry_out: Callable[[], Any]
    _answer: asyncio.Future[Any]

    @property
    def kind(self) -> str:
        """Put, create, update, get, list or delete."""
        return self.asked.partition(" ")[0]

    def carry_out(self) -> Any:
        """Let the bucket do it; returns the answer, which may be a `Conflict`."""
        try:
            return self._carry_out()
        except Conflict as conflict:
            return conflict

    def answer(self, result: Any) -> None:
        """Hand over an answer, or an error, if the client still waits for it."""
        settle(self._answer, result)


class HeldStore(VirtualStore):
    """A store whose requests are put into `held`."""

    held: dict[str, Held]
    asked = 0

    async def _request(self, call: Call[T]) -> T:
        if self.cut:
            raise OutcomeUnknown("the process is dead")
        self.asked += 1
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        number = f"{self.client} {self.asked}"
        self.held[number] = Held(number, self.client, call.name, call.carry_out, answer)
        return await answer


class HeldWorld(World):
    """The world of a simulated run, whose requests are held, the oldest first."""

    def __init__(self, scenario: Scenario, loop: VirtualEventLoop) -> None:
        super().__init__(scenario, loop)
        self.held: dict[str, Held] = {}
        self.stores: dict[str, HeldStore] = {}  # of each process
        self._named = Counter[str]()

    def store(self, name: str, network: Network) -> HeldStore:
        """The bucket, as a process of this name sees it."""
        store = HeldStore(self.bucket, name, network, self.faults, self.random(name))
        store.held = self.held
        self.stores[name] = store
        return store

    def carry_first(self) -> bool:
        """Carry out the oldest request, and answer it; False when there is none."""
        if not self.held:
            return False
        held = self.held.pop(next(iter(self.held)))
        held.answer(held.carry_out())
        return True

    def name(self) -> str:
        """A new name. It follows from the past of the process that asks for it alone."""
        process = PROCESS.get()
        self._named[process] += 1
        return f"{process}-{self._named[process]}"
