"""Programs and nodes as real processes on one log."""

import os
import subprocess
import sys
import time
from contextlib import closing
from itertools import cycle
from pathlib import Path

import anyio
import pytest

from leaderless.hosting.fsck import check
from leaderless.store.sqlite import SqliteStore
from leaderless.store.urls import open_store
from leaderless.table.manifest import read_manifest
from tests.merging import TIMEOUT_S
from tests.releases import Node, Party, Program, running
from tests.tables import Model, content_of, filled, merged, messages, small_log

pytestmark = [pytest.mark.process, pytest.mark.slow]
KIB_3 = "x" * 3_000


def sound(url: str) -> None:
    """`fsck` finds nothing."""

    async def findings() -> list[object]:
        store = open_store(url, None)
        try:
            return [*(await check(store)).findings]
        finally:
            await store.aclose()

    assert anyio.run(findings) == []


def appended_in_turn(parties: tuple[Party, ...], count: int) -> list[str]:
    """Values that the parties appended to key `k`, one after the other."""
    values = [f"{number} {KIB_3}" for number in range(count)]
    for value, party in zip(values, cycle(parties), strict=False):
        party.append("k", value)
    return values


def test_a_node_and_a_program_on_one_log_lose_nothing(tmp_path: Path) -> None:
    """The node sealed at 8 KiB and the program at 64 KiB: of ten appends in turn two were gone."""
    url = f"sqlite:///{tmp_path}/log.db"
    with running(Node(url), Program(url)) as parties:
        values = appended_in_turn(parties, 40)
        assert [party.read("k") for party in parties] == [values, values]
    sound(url)


def test_committed_offsets_stay_when_the_number_of_nodes_changes(tmp_path: Path) -> None:
    """Registers followed from the number of nodes: what one of five had committed, one alone did not list."""
    url = f"sqlite:///{tmp_path}/log.db"
    committed = {f"key {number}": number for number in range(5)}
    for place, (key, offset) in enumerate(committed.items()):
        with closing(Node(url, nodes=5, name=f"n{place}")) as node:
            node.append(key, 1)
            node.request({"type": "commit_offsets", "offsets": {key: offset}})
    for nodes in (1, 2, 9):
        with closing(Node(url, nodes=nodes)) as node:
            listed = node.request({"type": "list_committed_offsets", "keys": [*committed]})
            assert listed["offsets"] == committed


# ---------------------------------------------------------------- merges that are killed

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
    store, model = SqliteStore(tmp_path / "log.db"), Model()
    await filled(store, 18, model, TIMEOUT_S)
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
