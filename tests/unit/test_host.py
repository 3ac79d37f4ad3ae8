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
from leaderless.library.host import Host, Processes, _Waiter
from leaderless.store.memory import MemoryStore
from leaderless.store.registers import Registers

pytestmark = pytest.mark.anyio


class Silent:
    """An engine that never answers, as the core when a client counts as gone."""

    deadline: float | None = None

    def __init__(self) -> None:
        self.events: list[Event] = []

    def step(self, event: Event, now: float, *, more: bool = False) -> list[Effect]:
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
            await host.ask(Fence)
        tasks.cancel_scope.cancel()


async def test_a_process_that_stood_still_goes_on_with_its_next_request() -> None:
    engine = Silent()
    host = Host(engine, Registers(MemoryStore()), patience_s=10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_expect_no_outcome, host)
        await anyio.lowlevel.checkpoint()
        [waiter] = host._waiting.values()
        waiter.since -= 3600  # as if the process had been stopped for so long
        host._step(TimePassed())
        tasks.start_soon(_expect_no_outcome, host)
        await anyio.lowlevel.checkpoint()
        assert [type(event) for event in engine.events] == [Fence, TimePassed, Fence]
        tasks.cancel_scope.cancel()


async def _expect_no_outcome(host: Host) -> None:
    with pytest.raises(Indefinite, match="no outcome within 10 s"):
        await host.ask(Fence)


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


async def test_a_time_that_is_rounded_is_over_when_the_host_wakes_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would wake at once again, without end on a clock that jumps to the next deadline."""
    since = next(s for s in (n / 100 for n in range(10_000)) if (s + 30.0) - 30.0 < s)
    host = Host(Silent(), Registers(MemoryStore()), patience_s=30.0)
    with monkeypatch.context() as patch:
        patch.setattr(anyio, "current_time", lambda: since)
        waiter = _Waiter()
        host._step(Fence(host._register(waiter)))
        patch.setattr(anyio, "current_time", lambda: host._deadline)
        host._step(TimePassed())
    assert isinstance(waiter.error, Indefinite)
