"""The host of a machine (`leaderless.hosting.host`): callers in this program, and stores that misbehave."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from leaderless.core.coordination import create, read_register
from leaderless.core.limits import Limits
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Cas,
    Effect,
    Failure,
    Fence,
    Get,
    Outcome,
    PeerCall,
    Poll,
    Reason,
    Reply,
    Request,
    RequestEvent,
    StoreOp,
    Unknown,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Ask, Process, Sleep, call
from leaderless.errors import Broken, Definite
from leaderless.hosting.host import Host, running
from leaderless.store.memory import MemoryStore
from leaderless.store.registers import Registers

pytestmark = pytest.mark.anyio

BRIEF = Limits(client_patience_s=0.03)


class Forgets:
    """A strategy that never answers."""

    def serve(self, event: RequestEvent) -> Process[None]:
        yield from ()


class Reads:
    """A strategy that reads a register, and says what came of it."""

    def serve(self, event: RequestEvent) -> Process[None]:
        outcome = yield from call(Get("n"))
        yield Reply(event.request, Failure(Reason.BUSY, f"{outcome}"))


class Breaks(Registers):
    """Raises an exception for each compare-and-set."""

    async def carry_out(self, op: StoreOp) -> Outcome:
        if isinstance(op, Cas):
            raise AssertionError("held twice")
        return await super().carry_out(op)


def poll(request: Request) -> Poll:
    return Poll(request, {})


def host_of(strategy: Forgets | Reads, registers: Registers | None = None) -> Host:
    return Host(
        Machine(strategy, BRIEF, clients_leave=False), registers or Registers(MemoryStore())
    )


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = host_of(Forgets())
    async with running(host):
        yield host


async def test_a_request_that_the_strategy_forgets_is_answered(host: Host) -> None:
    answer = await host.ask(Fence)
    text = "no outcome within 0.027 s; it may have happened, or may still"
    assert answer == Failure(Reason.TIMEOUT, text)


async def test_processes_and_requests_have_one_machine_one_clock_and_one_store() -> None:
    times: list[float] = []

    def looks(host: Host) -> Process[None]:
        times.append(host.clock.now)
        yield Sleep(host.clock.now + 0.01)
        times.append(host.clock.now)

    host = host_of(Reads())
    async with running(host):
        await host.call(create("n", "a"))
        await host.call(looks(host))
        answer = await host.ask(poll)
    assert isinstance(answer, Failure)
    assert "'a'" in answer.text
    assert times[0] + 0.01 <= times[1] <= anyio.current_time()


async def test_what_a_process_raises_is_raised(host: Host) -> None:
    def fails() -> Process[None]:
        yield Sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await host.call(fails())


async def test_store_calls_that_were_asked_for_before_it_runs_are_made() -> None:
    host, done = host_of(Forgets()), anyio.Event()

    async def creates() -> None:
        await host.call(create("n", "a"))
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(creates)
        await anyio.lowlevel.checkpoint()
        async with running(host):
            with anyio.fail_after(0.9 * Pace().store_timeout_s):  # then the machine asks again
                await done.wait()


async def test_cancelling_a_caller_takes_nothing_back(host: Host) -> None:
    with anyio.move_on_after(0):
        await host.call(create("n", "a"))
    assert await host.call(create("n", "b")) is False


async def test_a_host_that_was_cancelled_makes_no_call_any_more() -> None:
    host = host_of(Forgets())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    with pytest.raises(Definite, match="closed, and this call did nothing"):
        await host.call(create("n", "a"))


@asynccontextmanager
async def raises(expected: type[Exception], task: Callable[[], object]) -> AsyncIterator[None]:
    """Whether a task beside the block raises."""

    async def run() -> None:
        with pytest.raises(expected):
            await task()  # type: ignore[misc]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.lowlevel.checkpoint()
        yield


async def test_a_broken_invariant_of_the_store_ends_it_for_all_callers() -> None:
    host = host_of(Forgets(), Breaks(MemoryStore()))
    async with running(host), raises(Broken, lambda: host.ask(Fence)):
        with pytest.raises(Broken, match="AssertionError: held twice"):
            await host.call(create("n", "a"))
    with pytest.raises(Broken, match="held twice"):
        await host.ask(Fence)


async def test_a_node_goes_on_without_an_outcome() -> None:
    host = Host(Machine(Forgets()), Breaks(MemoryStore()), goes_on=True)

    def sets() -> Process[Outcome]:
        return (yield from call(Cas("n", None, 1, create=True)))

    async with running(host):
        assert await host.call(sets()) == Unknown(spent=1.0)
        assert await host.call(read_register("n")) is None


async def test_others_take_what_is_for_nobody_here() -> None:
    class Asks:
        def serve(self, event: RequestEvent) -> Process[None]:
            yield Ask("n1", poll(event.request), 1.0)  # type: ignore[arg-type]

    left: list[Effect] = []
    host = Host(Machine(Asks()), Registers(MemoryStore()), left.extend)
    host.take(poll(Request("c1", 1)))
    [effect] = left
    assert isinstance(effect, PeerCall)
    assert effect.dest == "n1"
