"""`vacuum` deletes what no record refers to, and nothing else (`leaderless.hosting.vacuum`)."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import orjson
import pytest

from leaderless.api.log import Log
from leaderless.core.headlog.attempt import raise_epoch
from leaderless.core.pace import Pace
from leaderless.errors import Broken, Indefinite, Unfit
from leaderless.hosting.data import written_at
from leaderless.hosting.host import running
from leaderless.hosting.maintenance import Vacuumed
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import PAGE, Listed, OutcomeUnknown, Version
from tests.around import CutOff
from tests.tables import small_log
from tests.vacuuming import LARGE, ORPHAN, Aged, aged, log_on, objects_of, values_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> Aged:
    return await aged()


@pytest.fixture
async def log(store: Aged) -> AsyncIterator[Log]:
    async with log_on(store, 5.0, 1.0) as log:
        yield log


async def test_orphans_older_than_the_retention_go(store: Aged, log: Log) -> None:
    await store.write(ORPHAN, b"12345")
    await log.append("k", LARGE)
    vacuumed = await log.vacuum(3600)
    assert vacuumed == Vacuumed(1, 5, 1)
    assert [record.value for record in await log.read("k")] == [LARGE]
    assert await log.vacuum(3600) == Vacuumed(0, 0, 1)


async def test_younger_ones_stay(store: Aged, log: Log) -> None:
    await store.write(ORPHAN, b"12345")
    assert await log.vacuum(7300) == Vacuumed(0, 0, 1)


async def test_what_runs_and_segments_refer_to_stays(store: Aged, log: Log) -> None:
    for _ in range(3):
        await log.append_many("k", ["y" * 10_000, LARGE, "y" * 10_000] * 10)
    await store.write(ORPHAN, b"12345")
    assert (await log.status()).segments > 0
    assert (await log.vacuum()).deleted == 1
    assert len([record for record in await log.read("k") if record.value == LARGE]) == 30


async def test_a_short_retention_is_refused(log: Log) -> None:
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(599)
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(float("nan"))


async def test_appends_go_on_after_a_vacuum(store: Aged, log: Log) -> None:
    await log.append("k", 1)
    await store.write(ORPHAN, b"12345")
    async with log_on(store, 5.0, 1.0) as other:
        await other.append("k", 2)
        await log.vacuum()
        assert await other.append("k", 3) == 2
        assert await log.append("k", 4) == 3


async def test_without_anything_to_delete_the_log_stays_in_its_epoch(log: Log) -> None:
    await log.append("k", 1)
    assert (await log.vacuum()).deleted == 0
    assert (await log.status()).epoch == 0


async def test_a_log_that_nobody_appended_to_keeps_its_values(store: Aged, log: Log) -> None:
    """It has no epoch yet, so the append of such a value may be under way."""
    await store.write(ORPHAN, b"12345")
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


class Compacting(MemoryStore):
    """A store that is compacted between two listings of a vacuum: behind the first of segments or runs."""

    compact: Any = None

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        listed = await super().list_objects(folder, after, limit)
        if folder in ("segment", "run") and self.compact:
            compact, self.compact = self.compact, None
            await compact()
        return listed


async def test_a_compaction_while_references_are_read_hides_none() -> None:
    store = Compacting()
    async with small_log(store, "json", timeout_s=1.0) as log:
        for number in range(4):
            await log.append("k", [LARGE, number])
        await store.write(ORPHAN, b"12345")
        store.ahead_s = 7200
        assert (await log.status())[4:6] == (1, 0)  # segments, none of them in a run

        async def compact() -> None:
            await log.append_many("k", [4])
            await log.append_many("k", [5])
            await log.compact()

        store.compact = compact
        assert (await log.vacuum()).deleted == 1
        assert store.compact is None
        assert (await log.status()).compacted == 2
    assert len(await values_of(store)) == 6


@pytest.mark.parametrize("times", [1, 100])
async def test_a_damaged_answer_is_no_log_without_references(times: int) -> None:
    store = CutOff(Aged(), times=0)
    async with small_log(store, "json", timeout_s=1.0) as log:
        await store.write(ORPHAN, b"12345")
        for number in range(3):
            await log.append("k", [LARGE, number])
        store.places, store.times = ((await store.list_objects("segment"))[0].key,), times
        if times == 1:
            assert (await log.vacuum()).deleted == 1
        else:
            with pytest.raises(Broken, match="makes no sense"):
                await log.vacuum()
    store.times = 0
    assert len(await values_of(store)) == 3


# ------------------------------------------------------------ the epoch


class Troubled(Aged):
    """Compare-and-sets of the head are carried out or not, as `fates` says; `first` happens before the next."""

    def __init__(self) -> None:
        super().__init__()
        self.fates: list[str] = []
        self.first: Any = None

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        if self.first:
            first, self.first = self.first, None
            await first()
        fate = self.fates.pop(0) if self.fates else ""
        if fate == "lost":
            raise OutcomeUnknown("the request was lost")
        version = await super().compare_and_set(key, value, version)
        if fate == "unanswered":
            raise OutcomeUnknown("the answer was lost")
        return version


def head_of(store: MemoryStore) -> dict[str, Any]:
    head: dict[str, Any] = orjson.loads(store._objects["head"][0].value)
    return head


async def raised(store: MemoryStore, name: str = "v") -> int | None:
    bounds = bounds_of(store, 5.0, 1.0)
    log = Log(store, bounds._replace(pace=Pace(error_pause_s=0.001, error_pause_max_s=0.001)))
    async with running(log.host):
        head = await log.host.call(raise_epoch(name))
        return head.epoch if head else None


@pytest.fixture
async def troubled() -> Troubled:
    store = Troubled()
    await initialise(store, "json")
    async with log_on(store) as log:
        await log.append("k", 1)
    return store


@pytest.mark.parametrize("fates", [[], ["lost"], ["unanswered"], ["lost", "unanswered"]])
@pytest.mark.parametrize("state", ["open", "fenced"])
async def test_nothing_changes_but_the_epoch(
    troubled: Troubled, fates: list[str], state: str
) -> None:
    if state == "fenced":
        async with log_on(troubled) as log:
            await log.fence()
    before = head_of(troubled)
    troubled.fates = fates
    assert await raised(troubled) == before["epoch"] + 1
    after = head_of(troubled)
    assert after["state"] == state
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"epoch", "version", "by"}


async def test_an_append_meanwhile_is_tried_against(troubled: Troubled) -> None:
    async def append() -> None:
        async with log_on(troubled) as log:
            await log.append("k", 2)

    troubled.first = append
    assert await raised(troubled) == 1
    assert await values_of(troubled) == [1, 2]


async def test_the_new_epoch_of_another_will_do(troubled: Troubled) -> None:
    troubled.first = partial(raised, troubled, "another")
    assert await raised(troubled) == 1
    assert head_of(troubled)["by"] == "another"


async def test_without_a_head_there_is_no_epoch(store: Aged) -> None:
    assert await raised(store) is None
    assert "head" not in store._objects


async def test_a_silent_store_ends_the_vacuum_before_it_deletes(troubled: Troubled) -> None:
    await troubled.write(ORPHAN, b"12345")
    troubled.fates = ["lost"] * 100
    async with small_log(troubled, "json") as log:
        with pytest.raises(Indefinite, match="no value was deleted"):
            await log.vacuum()
    assert await objects_of(troubled) == [ORPHAN]
