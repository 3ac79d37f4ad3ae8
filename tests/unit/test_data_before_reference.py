"""`DataBeforeReference`: a vacuum at any moment of an append leaves no record without its value.

No clock keeps the value. The clock of the process stands still while the vacuum runs, as that of a suspended
machine does; or it jumps, so hours take no time. Objects of values count as two hours old at once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import orjson
import pytest

from leaderless.api.log import Log
from leaderless.core.headlog.attempt import raise_epoch
from leaderless.core.messages import Answer, Failure, Reason, Request, Send, SendOk
from leaderless.core.pace import Pace
from leaderless.errors import Broken, Definite, Fenced, Indefinite, Unfit
from leaderless.hosting.data import written_at
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.calls import side_by_side
from leaderless.store.port import Listed, Store
from leaderless.upkeep.vacuum import Vacuumed
from tests.around import ANY_NUMBER, READS, Fate, Fated, cut_off, in_turn
from tests.tables import small_log
from tests.vacuuming import (
    LARGE,
    ORPHAN,
    Aged,
    aged,
    log_on,
    objects_of,
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


@each_append
@pytest.mark.parametrize("place", ["written", "head"])
async def test_a_machine_is_suspended_and_its_clock_too(
    reached: Fated, begun: Log, shared: Aged, do: Append, place: str
) -> None:
    """(1) The object is written. (2) The machine sleeps, a vacuum finds no record. (3) The append goes on."""
    reached.fates = [reach(place, partial(vacuum, shared))]
    await do(begun)
    assert reached.fates[0].happened
    assert await values_of(shared) == [0, *APPENDS[do]]
    await vacuum(shared)  # of what the first try left
    assert await values_of(shared) == [0, *APPENDS[do]]
    assert len(await objects_of(shared)) == APPENDS[do].count(LARGE)


@each_append
async def test_an_epoch_that_is_learnt_after_the_object_does_not_count(
    reached: Fated, begun: Log, shared: Aged, do: Append
) -> None:
    """(1) The object is written. (2) A vacuum. (3) Another task of the process appends, and learns of it."""

    async def learn() -> None:
        await vacuum(shared)
        await begun.append("k", 1)

    reached.fates = [reach("written", learn)]
    await do(begun)
    assert await values_of(shared) == [0, 1, *APPENDS[do]]


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


async def test_a_fence_in_the_midst_of_an_append_refuses_it(
    reached: Fated, begun: Log, shared: Aged
) -> None:

    async def fence() -> None:
        async with log_on(shared) as other:
            await other.fence()

    reached.fates = [reach("written", fence)]
    with pytest.raises(Fenced):
        await begun.append("k", LARGE)
    with pytest.raises(Fenced):
        await append_named(begun)
    await begun.unfence()
    await begun.append("k", LARGE)
    assert await values_of(shared) == [0, LARGE]


@each_append
async def test_a_process_learns_the_epoch_before_it_writes_its_first_value(
    shared: Aged, do: Append
) -> None:
    async with log_on(shared) as log:
        await log.fence()
        await log.unfence()
    written = Fate(["write"], "data/")
    async with log_on(Fated(shared, written)) as log:
        await do(log)
    assert written.met.total() == sum(value == LARGE for value in APPENDS[do])


async def test_a_batch_that_is_in_the_log_writes_no_value_again(shared: Aged) -> None:
    written = Fate(["write"], "data/")
    async with log_on(Fated(shared, written)) as log:
        await append_named(log)
        await vacuum(shared)
        await append_named(log)
    assert written.met.total() == 1


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


# ---------------------------------------------------------------- what a vacuum deletes


@pytest.fixture
async def log(shared: Aged) -> AsyncIterator[Log]:
    async with log_on(shared, 5.0, 1.0) as log:
        yield log


async def test_orphans_older_than_the_retention_go(shared: Aged, log: Log) -> None:
    await shared.write(ORPHAN, b"12345")
    await log.append("k", LARGE)
    assert await log.vacuum(3600) == Vacuumed(1, 5, 1)
    assert [record.value for record in await log.read("k")] == [LARGE]
    assert await log.vacuum(3600) == Vacuumed(0, 0, 1)


async def test_a_short_retention_is_refused(log: Log) -> None:
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(599)
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(float("nan"))


async def test_without_anything_to_delete_the_log_stays_in_its_epoch(log: Log) -> None:
    await log.append("k", 1)
    assert (await log.vacuum()).deleted == 0
    assert (await log.status()).epoch == 0


async def test_a_log_that_nobody_appended_to_keeps_its_values(shared: Aged, log: Log) -> None:
    """It has no epoch yet, so the append of such a value may be under way."""
    await shared.write(ORPHAN, b"12345")
    assert await log.vacuum() == Vacuumed(0, 0, 1)
    await log.append("k", 1)
    assert (await log.vacuum()).deleted == 1


@pytest.mark.parametrize(
    ("name", "modified", "at"),
    [("7-1-b", None, 7.0), ("7-1-b", 9.0, 9.0)],
)
def test_without_a_time_of_the_store_the_name_says_the_age(
    name: str, modified: float | None, at: float
) -> None:
    assert written_at(Listed(f"data/{name}", 1, modified)) == at


# ------------------------------------------------------------ reading the references


@pytest.mark.parametrize("times", [1, 100])
async def test_a_damaged_answer_is_no_log_without_references(times: int) -> None:
    store = Fated(Aged())
    async with small_log(store, "json", timeout_s=1.0) as log:
        await store.write(ORPHAN, b"12345")
        for number in range(3):
            await log.append("k", [LARGE, number])
        [segment, *_] = await store.list_objects("segment")
        store.fates = [Fate(READS, segment.key, cut_off, times=times)]
        if times == 1:
            assert (await log.vacuum()).deleted == 1
        else:
            with pytest.raises(Broken, match="makes no sense"):
                await log.vacuum()
    store.fates.clear()
    assert len(await values_of(store)) == 3


# ------------------------------------------------------------ the epoch


def head_of(store: Any) -> dict[str, Any]:
    head: dict[str, Any] = orjson.loads(store._objects["head"][0].value)
    return head


async def raised(store: Store, name: str = "v") -> int | None:
    bounds = bounds_of(store, 5.0, 1.0)
    log = Log(store, bounds._replace(pace=Pace(error_pause_s=0.001, error_pause_max_s=0.001)))
    async with running(log.host):
        head = await log.host.call(raise_epoch(name))
        return head.epoch if head else None


@pytest.fixture
async def troubled() -> Fated:
    store = Fated(Aged())
    await initialise(store, "json")
    async with log_on(store) as log:
        await log.append("k", 1)
    return store


@pytest.mark.parametrize(
    "fates", [(), ("call lost",), ("answer lost",), ("call lost", "answer lost")]
)
@pytest.mark.parametrize("state", ["open", "fenced"])
async def test_nothing_changes_but_the_epoch(
    troubled: Fated, fates: tuple[str, ...], state: str
) -> None:
    if state == "fenced":
        async with log_on(troubled) as log:
            await log.fence()
    before = head_of(troubled.inmost)
    troubled.fates = in_turn([*fates, "ok"], "head")
    assert await raised(troubled) == before["epoch"] + 1
    after = head_of(troubled.inmost)
    assert after["state"] == state
    assert {name for name in after if after[name] != before.get(name)} == {"epoch", "version", "by"}


async def test_an_append_meanwhile_is_tried_against(troubled: Fated) -> None:
    async def append() -> None:
        async with log_on(troubled) as log:
            await log.append("k", 2)

    meets = Fate(["compare_and_set"], before=append, times=1)
    assert await raised(Fated(troubled, meets)) == 1
    assert await values_of(troubled) == [1, 2]


async def test_the_new_epoch_of_another_will_do(troubled: Fated) -> None:
    another = partial(raised, troubled, "another")
    meets = Fate(["compare_and_set"], before=another, times=1)
    assert await raised(Fated(troubled, meets)) == 1
    assert head_of(troubled.inmost)["by"] == "another"


async def test_without_a_head_there_is_no_epoch(shared: Aged) -> None:
    assert await raised(shared) is None
    assert "head" not in shared._objects


async def test_a_silent_store_ends_the_vacuum_before_it_deletes(troubled: Fated) -> None:
    await troubled.write(ORPHAN, b"12345")
    troubled.fates = in_turn(["call lost"], "head")
    async with small_log(troubled, "json") as log:
        with pytest.raises(Indefinite, match="no value was deleted"):
            await log.vacuum()
    assert await objects_of(troubled) == [ORPHAN]
