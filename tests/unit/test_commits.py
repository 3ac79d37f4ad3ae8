"""Durable commits: nodes share their registers, no commit is lost, and programs take them over."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.core.coordination import Misfit
from leaderless.core.headlog.commits import Committed, commit_registers, committed_of
from leaderless.core.messages import Batch, CommitOffsets, CommitOffsetsOk, HandOver
from leaderless.core.shape import Shape
from leaderless.core.strategy import Options
from leaderless.store.registers import canonical
from simulation.headlog import oracle_for
from tests.stepped import SteppedCluster

pytestmark = pytest.mark.anyio

KEYS_MAX = 8
OPTIONS = Options(freshness_s=0.0)
OPTIONS = OPTIONS._replace(limits=replace(OPTIONS.limits, committed_keys=KEYS_MAX))


def cluster_of(nodes: list[str], options: Options = OPTIONS) -> SteppedCluster:
    return SteppedCluster(nodes, "leaderless", options, oracle_for("leaderless", options))


def ask(cluster: SteppedCluster, node: str, body: dict[str, Any]) -> dict[str, Any]:
    before = len(cluster.to_clients)
    cluster.request("c1", node, body)
    while len(cluster.to_clients) == before:
        cluster.settle()
        cluster.pass_time(0.01)
    return cluster.to_clients[-1].body


def commit(cluster: SteppedCluster, node: str, offsets: dict[str, int]) -> None:
    assert (
        ask(cluster, node, {"type": "commit_offsets", "offsets": offsets})["type"]
        == "commit_offsets_ok"
    )


def listed(cluster: SteppedCluster, node: str, keys: list[str]) -> dict[str, int]:
    found = ask(cluster, node, {"type": "list_committed_offsets", "keys": keys})
    offsets: dict[str, int] = found["offsets"]
    return offsets


def pause(cluster: SteppedCluster) -> None:
    """So long that what waits for a batch goes without one."""
    cluster.pass_time(OPTIONS.limits.commits_idle_s + 0.1)
    cluster.settle()
    cluster.pass_time(0.1)
    cluster.settle()


def test_what_is_too_much_for_the_register_moves_into_the_log() -> None:
    cluster = cluster_of(["n0", "n1"])
    expected: dict[str, int] = {}
    largest = 0
    for number in range(60):
        offsets = {f"k{number}": number, "stays": number}
        commit(cluster, "n0", offsets)
        expected |= offsets
        if number % 4 == 3:
            pause(cluster)
        largest = max(largest, len(cluster.store.registers["committed/0"]["offsets"]))
        assert listed(cluster, "n1", [*expected]) == expected
    assert largest <= KEYS_MAX + 8
    cluster.start("n0")
    assert listed(cluster, "n0", [*expected]) == expected


def test_a_view_that_is_older_than_the_move_is_renewed() -> None:
    """It may answer polls for another 10 s, but it would not list what has left the register."""
    cluster = cluster_of(["n0", "n1"], OPTIONS._replace(freshness_s=10.0))
    assert listed(cluster, "n1", ["k0"]) == {}
    expected = {f"k{number}": number for number in range(KEYS_MAX + 1)}
    commit(cluster, "n0", expected)
    pause(cluster)
    commit(cluster, "n0", {"last": 0})
    assert [*cluster.store.registers["committed/0"]["offsets"]] == ["last"]
    assert listed(cluster, "n1", [*expected]) == expected


@pytest.mark.parametrize(("nodes", "registers"), [(1, 1), (2, 2), (4, 2), (5, 3), (16, 4), (25, 5)])
def test_a_log_has_as_many_registers_as_the_root_of_its_nodes(nodes: int, registers: int) -> None:
    assert commit_registers(Shape().for_nodes(nodes)) == [
        f"committed/{number}" for number in range(registers)
    ]


def test_nodes_that_share_a_register_raise_what_the_other_wrote() -> None:
    """n0 and n2 share one of four nodes' two: each finds it changed by the other, reads it and raises it."""
    nodes = ["n0", "n1", "n2", "n3"]
    cluster = cluster_of(nodes)
    for number in range(3):
        commit(cluster, "n0", {"k": 2 * number, "of n0": number})
        commit(cluster, "n2", {"k": 2 * number + 1, "of n2": number})
    expected = {"k": 5, "of n0": 2, "of n2": 2}
    assert cluster.store.registers["committed/0"]["offsets"] == expected
    assert "committed/1" not in cluster.store.registers
    assert [listed(cluster, node, [*expected]) for node in nodes] == [expected] * 4


def test_of_two_writes_at_once_to_a_shared_register_the_later_one_is_made_again() -> None:
    cluster = cluster_of(["n0", "n1", "n2", "n3"])
    for node, offsets in (("n0", {"k": 7}), ("n2", {"k": 5, "of n2": 1})):
        cluster.request("c1", node, {"type": "commit_offsets", "offsets": offsets})
    cluster.settle()
    cluster.pass_time(0.01)
    cluster.settle()
    assert [each.body["type"] for each in cluster.to_clients[-2:]] == ["commit_offsets_ok"] * 2
    expected = {"k": 7, "of n2": 1}
    assert cluster.store.registers["committed/0"]["offsets"] == expected
    assert listed(cluster, "n3", [*expected]) == expected


def deliver_all_but(cluster: SteppedCluster, register: str) -> None:
    """Whatever is in flight arrives, except calls for one register."""
    while free := [n for n, each in cluster.flying.items() if each.body.get("key") != register]:
        cluster.deliver(free[0])


def test_what_was_acknowledged_is_listed_while_a_later_write_is_in_doubt() -> None:
    """Seed 21000: a list reads the register of its node, then waits for another one while more is committed.

    1. The list reads committed/0, which has 1; its read of committed/1 gets no answer.
    2. A commit of 2 is written to committed/0 and acknowledged.
    3. The write of 3 gets no answer: what committed/0 has must be read again.
    4. committed/1 is read at last.
    """
    cluster = cluster_of(["n0", "n1"])
    commit(cluster, "n0", {"k": 1})
    cluster.request("c2", "n0", {"type": "list_committed_offsets", "keys": ["k"]})
    deliver_all_but(cluster, "committed/1")
    cluster.request("c3", "n0", {"type": "commit_offsets", "offsets": {"k": 2}})
    cluster.pass_time(0.01)
    deliver_all_but(cluster, "committed/1")
    assert cluster.to_clients[-1].body["type"] == "commit_offsets_ok"
    cluster.request("c4", "n0", {"type": "commit_offsets", "offsets": {"k": 3}})
    cluster.pass_time(0.01)
    for number in [*cluster.flying]:
        cluster.drop(number)
    cluster.pass_time(1.1)
    deliver_all_but(cluster, "committed/0")
    assert cluster.to_clients[-1].body["offsets"] == {"k": 2}


def test_while_the_log_is_fenced_the_register_keeps_all() -> None:
    cluster = cluster_of(["n0"])
    ask(cluster, "n0", {"type": "fence"})
    expected = {f"k{number}": number for number in range(3 * KEYS_MAX)}
    for key, offset in expected.items():
        commit(cluster, "n0", {key: offset})
    pause(cluster)
    assert listed(cluster, "n0", [*expected]) == expected
    assert cluster.store.registers["committed/0"]["offsets"] == expected
    ask(cluster, "n0", {"type": "unfence"})
    commit(cluster, "n0", {"more": 1})
    pause(cluster)
    commit(cluster, "n0", {"more": 2})
    assert len(cluster.store.registers["committed/0"]["offsets"]) == 1
    assert listed(cluster, "n0", [*expected, "more"]) == expected | {"more": 2}


@pytest.mark.parametrize(
    "value", [{"k": 4}, {"format": 2}, None, {"format": 1, "slot": -1, "offsets": {}}]
)
def test_registers_of_another_format_are_refused(value: object) -> None:
    with pytest.raises(Misfit):
        committed_of(value)
    written = Committed(3, {"k": 4})
    assert committed_of(written.value) == written


# ---------------------------------------------------------------- two homes


PAGE = Path(__file__).parents[2] / "docs" / "committed-offsets.md"


@pytest.fixture
def lines() -> dict[str, Any]:
    """What the blocks of the page define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    return names


async def committed_through_nodes(log: Log) -> None:
    """Offsets as nodes leave them: in two registers, in the log, and the same key in several places."""
    answer = await log.host.ask(lambda request: CommitOffsets(request, {"a": 4, "b": 1}))
    assert isinstance(answer, CommitOffsetsOk)
    await log._store.write("committed/1", canonical(Committed(0, {"a": 2, "c": 7}).value))
    batch = Batch("node", 1, 0, {}, {"b": 3, "c": 5, "d": 0}, 1)
    hand_over: Any = HandOver
    await log.host.ask(lambda request: hand_over(request, log._strategy.view.slot, batch))


async def test_what_clients_of_nodes_committed_is_read_from_registers_and_log(
    url: str, log: Log
) -> None:
    assert await log.committed_by_nodes() == {}
    await committed_through_nodes(log)
    expected = {"a": 4, "b": 3, "c": 7, "d": 0}
    assert await log.committed_by_nodes() == expected
    async with open_log(url) as other:
        assert await other.committed_by_nodes() == expected


async def test_offsets_move_from_nodes_to_a_group_and_back(
    url: str, log: Log, lines: dict[str, Any]
) -> None:
    for key in "abcd":
        await log.append_many(key, [*range(9)])
    await committed_through_nodes(log)
    expected = await log.committed_by_nodes()
    await log.commit("g", {"a": 6})
    for _ in range(2):
        assert await lines["move"](url, "g") == expected | {"a": 6}
    async with log.consumer("g", ["b"]) as consumer:
        assert (await anext(consumer)).offset == expected["b"] + 1
    message = await lines["message"](url, "g", "n0")
    offsets = message["body"]["offsets"]
    assert offsets == expected | {"a": 6}
    await log.host.ask(lambda request: CommitOffsets(request, offsets))
    assert await log.committed_by_nodes() == offsets
