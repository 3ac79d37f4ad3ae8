"""Programs and nodes of this release and of the older one, as real processes on one log."""

from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import anyio
import pytest

from leaderless.library.fsck import check
from leaderless.store.urls import open_store
from tests.releases import Node, Party, Program, Refused, running

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


@pytest.mark.parametrize("old", ["node", "program"])
def test_both_releases_share_a_log_of_the_older_one(tmp_path: Path, old: str) -> None:
    """Whichever process of the older release is there, those of this one fill and seal as it can bear."""
    url = f"sqlite:///{tmp_path}/log.db"
    first: Party = Node(url, older=True) if old == "node" else Program(url, older=True)
    with running(first):
        values = [f"first {KIB_3}"]
        first.append("k", values[0])
        with running(Node(url), Program(url)) as others:
            values += appended_in_turn((first, *others), 60)
            assert [party.read("k") for party in (first, *others)] == [values] * 3
    sound(url)


def test_an_upgrade_leaves_out_a_process_of_the_older_release(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with running(Program(url, older=True)) as [older], running(Program(url), Node(url)) as newer:
        values = appended_in_turn((older, *newer), 30)
        program = newer[0]
        assert isinstance(program, Program)
        assert program.ask("upgrade") is True
        assert program.ask("upgrade") is False
        with pytest.raises(Refused, match=r"Indefinite|Broken"):
            older.append("k", "too late")
        values += appended_in_turn(newer, 30)
        assert [party.read("k") for party in newer] == [values, values]
        with pytest.raises(Refused):
            older.append("k", "too late, too")
    with running(Program(url)) as [again]:
        assert again.read("k") == values
    sound(url)


def test_no_process_of_the_older_release_opens_a_newer_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with running(Program(url)) as [newer]:
        newer.append("k", 1)
        with pytest.raises(Refused, match="the process ended"):
            Program(url, older=True)
        assert newer.read("k") == [1]


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


@pytest.mark.parametrize("nodes", [1, 3])
def test_committed_offsets_of_a_log_of_the_older_release(tmp_path: Path, nodes: int) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    committed = {f"key {number}": number for number in range(5)}
    for place, (key, offset) in enumerate(islice(committed.items(), 4)):
        with closing(Node(url, older=True, nodes=5, name=f"n{place}")) as node:
            node.append(key, 1)
            node.request({"type": "commit_offsets", "offsets": {key: offset}})
    with closing(Node(url, nodes=nodes)) as node:
        node.request({"type": "commit_offsets", "offsets": {"key 4": 4}})
        listed = node.request({"type": "list_committed_offsets", "keys": [*committed]})
        assert listed["offsets"] == committed
    with closing(Node(url, older=True, nodes=nodes)) as node:
        listed = node.request({"type": "list_committed_offsets", "keys": ["key 4"]})
        assert listed["offsets"] == {"key 4": 4}
