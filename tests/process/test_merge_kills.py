"""A process that is killed with kill -9 in the middle of a merge, on a log in SQLite and its folder.

`tests/datadriven/tables/races.txt` has one that dies before any of its writes, on a bucket.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leaderless.store.sqlite import SqliteStore
from leaderless.table.manifest import read_manifest
from leaderless.upkeep.fsck import check
from tests.tables import LATER_S, content_of, filled, merged, messages, small_log

pytestmark = [pytest.mark.anyio, pytest.mark.process]
TIMEOUT_S = 0.5
# A merged file that is written, and has not got its name.
STOPS = """\
import os, sys, threading
import anyio
from leaderless.store.urls import open_store
from tests.tables import merged
link = os.link
def stopping(source, target, **options):
    if target.parent.name == "merged":
        print("here", flush=True)
        threading.Event().wait()
    link(source, target, **options)
os.link = stopping
anyio.run(merged, open_store(sys.argv[1]), float(sys.argv[2]))
"""


def kill_in_a_merge(url: str) -> None:
    """Run a merge until it stops, and kill it there."""
    command = [sys.executable, "-c", STOPS, url, f"{TIMEOUT_S}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.kill()


async def test_what_a_killed_merge_leaves_harms_nobody_and_is_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    model = await filled(store, 18, timeout_s=TIMEOUT_S)
    kill_in_a_merge(f"sqlite:///{tmp_path / 'log.db'}")
    assert (await read_manifest(store))[0].files == ()
    [left] = store.files.list_files("merged")
    assert left.key.startswith("merged/unfinished-")
    while not (await read_manifest(store))[0].files:  # when the claim of the killed one has run out
        await merged(store, TIMEOUT_S)
    old = time.time() - LATER_S
    os.utime(store.files.location(left.key), (old, old))
    async with small_log(store, timeout_s=TIMEOUT_S) as log:
        await log.vacuum()
    assert left.key not in {each.key for each in store.files.list_files("merged")}
    assert await content_of(store) == messages(model)
    assert (await check(store)).findings == []
    await store.aclose()
