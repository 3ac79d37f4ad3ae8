"""Faults: the shapes of partitions, targets, and turns."""

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import Mock, call

import pytest

from bench.loop import VirtualLoop
from bench.nemesis.fault import TARGETS, Turns, choose_targets
from bench.nemesis.partitions import REAL_SHAPES, SHAPES, Partition
from runs.faults import FAULTS, OPERATIONS, action_of
from runs.history import Keyword
from tests.passing import pass_until

SIZES = [1, 2, 3, 4, 5, 7, 9, 25]
SECOND = 1_000_000_000


def nodes_of(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", SIZES)
def test_everyone_hears_itself_and_only_nodes_are_cut(shape: str, count: int) -> None:
    nodes = nodes_of(count)
    cut = SHAPES[shape](nodes, Random(1))
    assert set(cut) <= set(nodes)
    assert all(node not in senders <= set(nodes) for node, senders in cut.items())


# A shape, how many nodes there are, and (how many nodes, how many they hear) of those that hear the same.
GROUPS: list[tuple[str, int, list[tuple[int, int]]]] = [
    ("one", 1, [(1, 1)]),
    *(("one", count, sorted([(1, 1), (count - 1, count - 1)])) for count in SIZES[1:]),
    ("majority", 1, [(1, 1)]),
    *(
        ("majority", count, sorted([(less, less), (count - less, count - less)]))
        for count in SIZES[1:]
        for less in [count // 2]
    ),
    *(("minority-third", count, [(count, count)]) for count in (1, 2, 3)),
    *(
        ("minority-third", count, [(third, third), (count - third, count - third)])
        for count in (4, 5, 7, 9, 25)
        for third in [(count - 1) // 3]
    ),
    ("majorities-ring", 3, [(1, 2)] * 3),
    ("majorities-ring", 4, [(1, 3)] * 4),
    ("majorities-ring", 5, [(1, 3)] * 5),
    ("bridge", 3, [(1, 2), (1, 2), (1, 3)]),
    ("bridge", 4, [(1, 2), (1, 4), (2, 3)]),
    ("bridge", 5, [(1, 5), (2, 3), (2, 3)]),
    ("bridge", 9, [(1, 9), (4, 5), (4, 5)]),
]


def heard(shape: str, count: int, seed: int = 1) -> dict[str, frozenset[str]]:
    """Whom each node hears."""
    nodes = nodes_of(count)
    cut = SHAPES[shape](nodes, Random(seed))
    return {node: frozenset(nodes) - cut.get(node, set()) for node in nodes}


@pytest.mark.parametrize(("shape", "count", "groups"), GROUPS)
def test_so_many_nodes_hear_the_same(shape: str, count: int, groups: list[tuple[int, int]]) -> None:
    for seed in range(5):
        hears = heard(shape, count, seed)
        same = Counter(hears.values())
        assert sorted((nodes, len(each)) for each, nodes in same.items()) == groups
        # Only in a ring of three or four somebody is heard by a node that it does not hear.
        assert count <= 4 or all(a in hears[b] for a in hears for b in hears[a])


@pytest.mark.parametrize("count", [6, 7, 9, 25])
def test_in_a_majorities_ring_everyone_hears_a_majority(count: int) -> None:
    hears = heard("majorities-ring", count)
    assert all(len(each) > count / 2 for each in hears.values())
    assert all(a in hears[b] for a in hears for b in hears[a])


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_one_way_some_are_heard_by_the_rest_and_do_not_hear_it(count: int) -> None:
    for seed in range(5):
        hears = heard("one-way", count, seed)
        deaf = {node for node, each in hears.items() if len(each) < count}
        assert 0 < len(deaf) < count
        assert all(hears[node] == deaf for node in deaf)


def test_the_sizes_of_targets() -> None:
    nodes = nodes_of(5)

    def sizes(word: str) -> set[int]:
        return {len(choose_targets(word, nodes, Random(seed))[1]) for seed in range(200)}

    assert [sizes(word) for word in ("one", "minority", "majority", "all")] == [{1}, {2}, {3}, {5}]
    assert sizes("random") == {1, 2, 3, 4, 5}
    words = {choose_targets("mixed", nodes, Random(seed))[0] for seed in range(200)}
    assert words == set(TARGETS)
    assert choose_targets("minority", ["n0"], Random(1)) == ("minority", ["n0"])


class Stage:
    """A fault on a virtual clock, and what was recorded of it: (time, f, value)."""

    def __init__(self, fault: Partition, seed: int | str = "1", limit_s: int = 20_000) -> None:
        self.loop = VirtualLoop()
        self.recorded: list[tuple[int, str, Any]] = []
        self.turns = Turns(fault, self.loop, 10 * SECOND, Random(seed), self.record)
        self.turns.start(limit_s)
        self.run(limit_s)

    def record(self, kind: str, process: str, f: str, value: Keyword | list[Any] | None) -> None:
        assert (kind, process) == ("info", "nemesis")
        self.recorded.append((self.loop.now_ns(), f, value))

    def run(self, until_s: int) -> None:
        pass_until(self.loop, until_s * SECOND)


def test_cutting_and_healing_alternate_and_are_recorded() -> None:
    network = Mock()
    stage = Stage(Partition(network, nodes_of(5)))
    turns = stage.recorded[::2]
    assert len(turns) > 1000
    assert [name for name, *_ in network.method_calls[:4]] == ["partition", "heal"] * 2
    assert [f for _, f, _ in stage.recorded[:4]] == ["start-partition"] * 2 + ["stop-partition"] * 2
    assert turns[0][0] == 0  # as the real tool's
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(turns)]
    assert sum(gaps) / len(gaps) / SECOND == pytest.approx(10, rel=0.05)
    assert 0 <= min(gaps) <= max(gaps) < 20 * SECOND
    assert {value for _, _, value in stage.recorded[::4]} == set(REAL_SHAPES)
    values = [value for _, _, value in stage.recorded[1:4]]
    assert values[0][0] == "isolated"
    assert values[1:] == [None, "network-healed"]


def test_stopping_ends_what_is_active_and_is_recorded_when_nothing_was() -> None:
    network = Mock()
    stage = Stage(Partition(network, nodes_of(5)), limit_s=1)
    before = len(stage.recorded)
    assert not stage.turns.over
    stage.turns.stop()
    assert stage.turns.over
    assert network.method_calls[-1] == call.heal()
    assert [f for _, f, _ in stage.recorded[before:]] == ["stop-partition"] * 2
    stage.run(100)
    assert len(stage.recorded) == before + 2


def test_each_fault_has_operations_that_begin_and_end_it() -> None:
    actions = {f: action_of(f) for pair in OPERATIONS.values() for f in pair}
    assert {action.fault for action in actions.values() if action} == set(FAULTS)
    assert actions["kill"] == ("kill", True)
    assert actions["start"] == ("kill", False)
    assert actions["stop-slow"] == ("slow", False)
    assert len(actions) == 2 * len(FAULTS)
