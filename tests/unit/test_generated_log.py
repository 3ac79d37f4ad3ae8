"""The long logs of measurements: what compaction leaves, and nothing that it would not."""

from collections import Counter

import orjson
import pytest

from leaderless.core.headlog.index import COMPACTED, index_of
from leaderless.core.messages import Outcome, StoreOp
from leaderless.library.fsck import check
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, new_shape
from leaderless.store.memory import MemoryStore
from leaderless.table.manifest import read_manifest
from leaderless.table.memory import Kept
from performance.generated_log import Shape, generate
from tests.tables import content_of

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]

SHAPE = Shape(messages=1_100, keys=7, width=20, batch=2)


async def test_a_generated_log_has_its_messages_and_every_invariant() -> None:
    store = MemoryStore()
    await generate(store, SHAPE)
    expected: dict[str, list[object]] = {}
    for first in range(0, SHAPE.messages, SHAPE.batch):
        for key, value in SHAPE.records(first):
            expected.setdefault(key, []).append(value)
    assert await content_of(store) == expected
    assert (await check(store)).findings == []


async def test_the_index_of_a_generated_log_grows_in_levels() -> None:
    """A start reads the directory of each run that the index lists: 10 M messages in 310 of them took 16 s."""
    store = MemoryStore()
    await generate(store, SHAPE)
    found = await store.read(COMPACTED)
    assert found
    runs = len([*store.files.list_files("run")])
    levels = Counter(listed.level for listed in index_of(orjson.loads(found.value)).listed)
    assert runs == 34
    assert levels == {2: 2, 0: 2}
    assert [file.level for file in (await read_manifest(store))[0].files] == [1, 1]


async def test_a_start_reads_what_the_index_of_a_log_of_files_names_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    await generate(store, SHAPE._replace(messages=900))
    log = Log(store, bounds_of(store, 5.0, 1.0, new_shape(store, "parquet")))
    under_way, most, perform = [0], [0], log.registers.perform

    async def counted(op: StoreOp) -> Outcome:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        outcome = await perform(op)
        under_way[0] -= 1
        return outcome

    monkeypatch.setattr(log.registers, "perform", counted)
    async with running(log.host):
        assert len(await log.keys()) == SHAPE.keys
    assert most == [4]  # runs and pages


def test_values_that_were_read_are_kept_within_a_bound() -> None:
    kept: Kept[str, int] = Kept(100)
    for number in range(9):
        kept.put(f"{number}", number, 40)
        kept.put("0", -1, 40)  # it is there already, or comes back
    assert (kept.get("8"), kept.get("7"), kept.bytes) == (8, None, 80)
    kept.put("large", 1, 1_000)
    assert (kept.get("large"), kept.get("8"), kept.bytes) == (1, None, 1_000)
