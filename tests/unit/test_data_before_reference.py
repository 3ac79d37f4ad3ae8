"""`DataBeforeReference`: a vacuum at any moment of an append leaves no record without its value.

No clock keeps the value. The clock of the process stands still while the vacuum runs, as that of a suspended
machine does; or it jumps, so hours take no time. Objects of values count as two hours old at once. What needs
no hours stands in `tests/datadriven/logs/vacuums.txt`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from leaderless.api.log import Log
from leaderless.core.messages import Answer, Failure, Reason, Request, Send, SendOk
from leaderless.errors import Definite, Indefinite
from leaderless.hosting.data import written_at
from leaderless.store.calls import side_by_side
from leaderless.store.port import Listed
from tests.around import ANY_NUMBER, Fated
from tests.vacuuming import (
    LARGE,
    ORPHAN,
    Aged,
    aged,
    log_on,
    reach,
    vacuum,
    values_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]
HOUR_S = 3600.0


@pytest.fixture
async def shared() -> Aged:
    return await aged()


@pytest.fixture
def reached(shared: Aged) -> Fated:
    return Fated(shared)


@pytest.fixture
async def begun(reached: Fated) -> AsyncIterator[Log]:
    """A process that sees `reached` and has appended 0."""
    async with log_on(reached) as log:
        await log.append("k", 0)
        yield log


async def append(log: Log) -> object:
    return await log.append("k", LARGE)


async def append_many(log: Log) -> object:
    return await log.append_many("k", [LARGE, 1, LARGE])


async def append_named(log: Log) -> None:
    await log.append_named("w", 7, [("k", LARGE), ("k", 1)])


APPENDS: dict[Any, list[object]] = {
    append: [LARGE],
    append_many: [LARGE, 1, LARGE],
    append_named: [LARGE, 1],
}
each_append = pytest.mark.parametrize("do", APPENDS)
Append = Callable[[Log], Awaitable[object]]


async def cut_for_hours(reached: Fated, shared: Aged, *places: str) -> None:
    """Calls at these places wait; a vacuum runs; half an hour later all are made."""
    whole = anyio.Event()
    reached.fates = [reach(place, whole.wait, ANY_NUMBER) for place in places]
    await anyio.sleep(1.5 * HOUR_S)
    await vacuum(shared)
    await anyio.sleep(0.5 * HOUR_S)
    reached.fates.clear()
    whole.set()


@each_append
async def test_patience_is_long_against_the_retention(shared: Aged, do: Append) -> None:
    """The head cannot be replaced for hours; the append waits longer than that, and a vacuum comes."""
    reached = Fated(shared)
    async with log_on(reached, patience_s=8 * HOUR_S, timeout_s=60) as log:
        await log.append("k", 0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut_for_hours, reached, shared, "head")
            await anyio.lowlevel.checkpoint()
            await do(log)
    assert await values_of(shared) == [0, *APPENDS[do]]


@pytest.mark.parametrize("cut", [("head",), ("head", "read"), ("head", "written")])
async def test_what_arrives_hours_later_refers_to_nothing_that_is_gone(
    reached: Fated, begun: Log, shared: Aged, cut: tuple[str, ...]
) -> None:
    """The network is gone for hours; a vacuum runs; then all arrives that was sent. The process goes on."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cut_for_hours, reached, shared, *cut)
        await anyio.lowlevel.checkpoint()
        with suppress(Indefinite, Definite):
            await begun.append("k", LARGE)
    await anyio.sleep(HOUR_S)  # whatever the process still does by itself, it does now
    await begun.append("k", 1)
    assert await values_of(shared) in ([0, 1], [0, LARGE, 1])


@pytest.mark.parametrize("do", [append, append_many])
async def test_an_append_gives_up_for_certain_when_vacuums_never_end(
    reached: Fated, begun: Log, shared: Aged, do: Append
) -> None:

    async def slowly() -> None:
        await anyio.sleep(20)
        await vacuum(shared)

    reached.fates = [reach("written", slowly, ANY_NUMBER)]
    with pytest.raises(Definite, match="append it again"):
        await do(begun)
    assert await values_of(shared) == [0]


# ------------------------------------------------------------ the core


def send_in(epoch: int | None, msg: int) -> Callable[[Request], Send]:
    return lambda request: Send(request, "k", msg, epoch=epoch)


async def together(log: Log, sends: Sequence[Callable[[Request], Send]]) -> list[Answer]:
    """The answers to sends of several tasks."""
    return await side_by_side([partial(log.host.ask, send) for send in sends])


def outcomes(answers: list[Answer]) -> tuple[list[int], list[Reason]]:
    """Offsets in their order, for tasks have none, and the reasons of the others."""
    offsets = sorted(answer.offset for answer in answers if isinstance(answer, SendOk))
    return offsets, [answer.reason for answer in answers if isinstance(answer, Failure)]


async def test_a_send_of_another_epoch_is_refused(shared: Aged) -> None:
    async with log_on(shared) as log:
        await log.append("k", "first")
        await vacuum_of_an_orphan(shared)
        sends = [send_in(epoch, 10) for epoch in (None, 0, 1, 2)]
        # The process has not learnt of the new epoch yet: it does so by a conflict.
        assert outcomes(await together(log, sends)) == ([1], [Reason.OTHER_EPOCH] * 3)
        assert outcomes(await together(log, sends)) == ([2, 3], [Reason.OTHER_EPOCH] * 2)


async def test_a_send_is_refused_when_its_batch_was_rejected_by_a_new_epoch(shared: Aged) -> None:
    reached = Fated(shared)
    async with log_on(reached) as log:
        await log.append("k", "first")
        reached.fates = [reach("head", partial(vacuum_of_an_orphan, shared))]
        sends = [send_in(epoch, 10) for epoch in (None, 0, None)]
        assert outcomes(await together(log, sends)) == ([1, 2], [Reason.OTHER_EPOCH])
    assert await values_of(shared) == ["first", 10, 10]


async def vacuum_of_an_orphan(shared: Aged) -> None:
    """A vacuum that finds something, so it raises the epoch."""
    await shared.write(ORPHAN, b"12345")
    assert await vacuum(shared) == 1


@pytest.mark.parametrize(
    ("name", "modified", "at"),
    [("7-1-b", None, 7.0), ("7-1-b", 9.0, 9.0)],
)
def test_without_a_time_of_the_store_the_name_says_the_age(
    name: str, modified: float | None, at: float
) -> None:
    assert written_at(Listed(f"data/{name}", 1, modified)) == at
