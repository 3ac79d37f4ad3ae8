"""Registers of durable commits: nodes share them, they stay small, and no commit is lost."""

from dataclasses import replace
from typing import Any

import pytest

from leaderless.core.coordination import Misfit
from leaderless.core.headlog.commits import Committed, committed_of, registers_of
from leaderless.core.shape import Shape
from leaderless.core.strategy import Options
from simulation.headlog import oracle_for
from simulation.stepped import SteppedCluster

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
    assert registers_of(Shape().for_nodes(nodes)) == [
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
    "value", [{"k": 4}, {"format": 3}, None, {"format": 2, "slot": -1, "offsets": {}}]
)
def test_registers_of_another_format_are_refused(value: object) -> None:
    with pytest.raises(Misfit):
        committed_of(value)
    written = Committed(3, {"k": 4})
    assert committed_of(written.value) == written
