"""Programs and nodes as real processes on one log."""

from contextlib import closing
from itertools import cycle
from pathlib import Path

import anyio
import pytest

from leaderless.hosting.fsck import check
from leaderless.store.urls import open_store
from tests.releases import Node, Party, Program, running

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
