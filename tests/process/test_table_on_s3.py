"""A log of Parquet files in a bucket: compacted, merged, read in ranges, checked, and vacuumed."""

import pytest

from leaderless.hosting import fsck
from leaderless.store.urls import open_store
from leaderless.table.manifest import read_manifest
from tests import servers
from tests.tables import Model, append, compact, content_of, messages, small_log

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_log_of_files_in_a_bucket() -> None:
    with servers.moto() as endpoint:
        url = f"s3://{servers.BUCKET}/orders"
        store = open_store(url, servers.options_of(url, endpoint))
        model: Model = {}
        async with small_log(store, timeout_s=2.0) as log:
            for number in range(24):
                await append(log, model, "ab"[number % 2], {"amount": number}, "x" * 20_000)
            await compact(log)
        assert (await read_manifest(store))[0].files
        async with small_log(store, timeout_s=2.0) as log:
            for key, values in model.items():
                for offset in (0, 5, len(values) - 1):
                    [record, *_] = await log.read(key, offset, 1)
                    assert (record.offset, record.value) == (offset, values[offset])
            assert (await log.vacuum()).deleted == 0
        assert (await fsck.check(store)).findings == []
        content = await content_of(store)
        amounts = {key: values[::2] for key, values in messages(model).items()}
        assert {key: found[::2] for key, found in content.items()} == amounts
        await store.aclose()
