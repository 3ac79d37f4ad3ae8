"""What is old, and what is no table; see `tests/datadriven/tables/retention.txt`, too."""

from functools import partial

import pyarrow as pa
import pytest

from leaderless.hosting.surroundings import REAL
from leaderless.store.memory import MemoryStore
from leaderless.table.manifest import (
    Manifest,
    Merged,
    replace_manifest,
)
from leaderless.table.parquet import FileWriter
from leaderless.table.retention import Policy, delete_oldest
from leaderless.table.schema import Row
from tests.tables import table_of

pytestmark = pytest.mark.anyio
MERGED = f"merged/0-0-{0:016x}.parquet"


@pytest.mark.parametrize("times", [(1_000.0, 9_000.0), (9_000.0, 1_000.0)])
async def test_by_age_the_newest_record_of_all_row_groups_counts(
    store: MemoryStore, times: tuple[float, ...]
) -> None:
    target = pa.BufferOutputStream()
    with FileWriter(target, {}) as writer:
        for offset, at in enumerate(times):
            writer.write(table_of([Row("k", offset, offset, "w", offset, offset, at)]))
            writer.flush()
    content = bytes(target.getvalue())
    store.files.put(MERGED, content)
    file = Merged(MERGED, 1, 0, 0, 0, 2, 2, len(content), ("k", "k"))
    assert await replace_manifest(store, Manifest(files=(file,)), None)

    async def leaves(age_s: float) -> bool:
        policy = Policy(age_s=age_s)
        named = partial(delete_oldest, trims={}, processed=none, now=now, token=REAL.token)
        return (await named(store, store.files, policy)).files == 1

    async def none() -> dict[str, int]:
        return {}

    async def now() -> float:
        return 10_000.0

    assert not await leaves(5_000)
    assert not await leaves(1_001)
    assert await leaves(999)
