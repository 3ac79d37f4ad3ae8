"""Processes that are killed with kill -9 in the middle of a merge, on a log in SQLite and its folder."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leaderless.store.sqlite import SqliteStore
from leaderless.table.manifest import read_manifest
from leaderless.upkeep.fsck import check
from tests.merging import TIMEOUT_S
from tests.tables import content_of, filled, merged, messages, small_log

pytestmark = [pytest.mark.anyio, pytest.mark.process]
LATER_S = 7200.0


def kill_in_a_merge(url: str, point: str) -> None:
    """Run `tests.merging` until it has come to a point, and kill it there."""
    command = [sys.executable, "-m", "tests.merging", url, point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.kill()


@pytest.mark.parametrize("point", ["unfinished", "unnamed"])
async def test_what_a_killed_merge_leaves_harms_nobody_and_is_deleted(
    point: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "log.db")
    model = await filled(store, 18, timeout_s=TIMEOUT_S)
    kill_in_a_merge(f"sqlite:///{tmp_path / 'log.db'}", point)
    assert (await read_manifest(store))[0].files == ()
    [left] = store.files.list_files("merged")
    assert left.key.startswith("merged/unfinished-") == (point == "unfinished")
    assert await content_of(store) == messages(model)
    while not (await read_manifest(store))[0].files:  # when the claim of the killed one has run out
        await merged(store, TIMEOUT_S)
    assert await content_of(store) == messages(model)
    old = time.time() - LATER_S
    os.utime(store.files.location(left.key), (old, old))
    async with small_log(store, timeout_s=TIMEOUT_S) as log:
        await log.vacuum()
    manifest, _ = await read_manifest(store)
    named = {file.path for file in manifest.files} | {each.path for each in manifest.replaced}
    assert {each.key for each in store.files.list_files("merged")} <= named
    assert await content_of(store) == messages(model)
    assert (await check(store)).findings == []
    await store.aclose()
