"""The host of the core in a process (`leaderless.library.host`), on engines that misbehave."""

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from leaderless.core.coordination import increment, read
from leaderless.core.messages import Effect, Event, Fence, TimePassed
from leaderless.core.pace import Pace
from leaderless.core.process import Process, Sleep
from leaderless.errors import Closed, Indefinite
from leaderless.library.host import Host, Processes
from leaderless.store.memory import MemoryStore
from leaderless.store.registers import Registers

pytestmark = pytest.mark.anyio


class Silent:
    """An engine that never answers, as the core when a client counts as gone."""

    deadline: float | None = None

    def __init__(self) -> None:
        self.events: list[Event] = []

    def step(self, event: Event, now: float) -> list[Effect]:
        self.events.append(event)
        return []


@pytest.fixture
async def processes() -> AsyncIterator[Host]:
    host = Host(Processes(Pace()), Registers(MemoryStore()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        yield host
        tasks.cancel_scope.cancel()


async def test_a_request_that_the_engine_forgets_is_answered_by_the_host() -> None:
    host = Host(Silent(), Registers(MemoryStore()), patience_s=0.02)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        with pytest.raises(Indefinite, match=r"no outcome within 0\.02 s"):
            await host.ask([Fence])
        tasks.cancel_scope.cancel()


async def test_a_process_that_stood_still_makes_no_step_of_its_former_life() -> None:
    engine = Silent()
    host = Host(engine, Registers(MemoryStore()), patience_s=10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_expect_closed, host)
        await anyio.lowlevel.checkpoint()
        [waiter] = host._waiting.values()
        waiter.since -= 21  # as if the process had been stopped for so long
        host._step(TimePassed())
    assert len(engine.events) == 1
    with pytest.raises(Closed, match="stood still"):
        await host.ask([Fence])


async def _expect_closed(host: Host) -> None:
    with pytest.raises(Closed, match="stood still for 21 s; open the log again"):
        await host.ask([Fence])


async def test_processes_of_the_core_run_to_their_end(processes: Host) -> None:
    assert await processes.call(increment("n", "a")) == 1
    assert await processes.call(increment("n", "b")) == 2
    assert await processes.call(read("n")) == {"count": 2, "by": "b"}


async def test_a_host_that_was_cancelled_makes_no_call_any_more() -> None:
    host = Host(Processes(Pace()), Registers(MemoryStore()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    with pytest.raises(Closed):
        await host.call(increment("n", "a"))


async def test_what_a_process_raises_is_raised(processes: Host) -> None:
    def fails() -> Process[None]:
        yield Sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await processes.call(fails())
