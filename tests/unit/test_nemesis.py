"""Faults: the shapes of partitions, the choice of nodes, and that turns alternate."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from bench.loop import VirtualLoop
from bench.nemesis.fault import TARGETS, Nemesis, choose_targets
from bench.nemesis.faults import REAL_SHAPES, SHAPES, Partition
from runs.faults import FAULTS, OPERATIONS, action_of
from runs.keyword import Keyword
from tests.passing import pass_until

SIZES = [1, 2, 3, 4, 5, 7, 9, 25]
SECOND = 1_000_000_000


def nodes_of(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def heard(cut: dict[str, Any], nodes: list[str]) -> dict[str, set[str]]:
    return {node: set(nodes) - cut.get(node, set()) for node in nodes}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", SIZES)
def test_everyone_hears_itself_and_only_nodes_are_cut(shape: str, count: int) -> None:
    nodes = nodes_of(count)
    cut = SHAPES[shape](nodes, Random(1))
    assert set(cut) <= set(nodes)
    assert all(node not in senders <= set(nodes) for node, senders in cut.items())


@pytest.mark.parametrize("count", SIZES)
def test_sizes_of_the_smaller_side(count: int) -> None:
    nodes = nodes_of(count)

    def smaller(shape: str) -> int:
        return min(len(each) for each in heard(SHAPES[shape](nodes, Random(1)), nodes).values())

    assert smaller("one") == 1
    assert smaller("majority") == max(count // 2, 1)
    third = (count - 1) // 3
    assert smaller("minority-third") == (third or count)


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 9, 25])
def test_in_a_majorities_ring_everyone_hears_a_majority(count: int) -> None:
    nodes = nodes_of(count)
    hears = heard(SHAPES["majorities-ring"](nodes, Random(1)), nodes)
    assert all(len(each) > count / 2 for each in hears.values())
    if count >= 5:
        assert all(a in hears[b] for a in nodes for b in hears[a])
    if count <= 5:
        assert len({frozenset(each) for each in hears.values()}) == count


@pytest.mark.parametrize("count", [3, 4, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_a_bridge_joins_two_halves_that_do_not_hear_each_other(count: int, seed: int) -> None:
    nodes = nodes_of(count)
    hears = heard(SHAPES["bridge"](nodes, Random(seed)), nodes)
    bridges = [node for node in nodes if hears[node] == set(nodes)]
    assert len(bridges) == 1
    halves = {frozenset(hears[node] - set(bridges)) for node in nodes if node not in bridges}
    first, second = sorted(halves, key=len)
    assert first.isdisjoint(second)
    assert len(second) - len(first) == (count - 1) % 2
    assert first | second | set(bridges) == set(nodes)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_one_way_some_are_heard_by_the_rest_and_do_not_hear_it(count: int, seed: int) -> None:
    nodes = nodes_of(count)
    hears = heard(SHAPES["one-way"](nodes, Random(seed)), nodes)
    deaf = {node for node in nodes if hears[node] != set(nodes)}
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


class FakeNetwork:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def partition(self, cut: dict[str, set[str]]) -> None:
        self.calls.append("cut")

    def heal(self) -> None:
        self.calls.append("heal")


class Stage:
    """A nemesis on a virtual clock, and what it recorded: (time, f, value)."""

    def __init__(self, *faults: Partition, seed: int | str = "1", limit_s: int = 20_000) -> None:
        self.loop = VirtualLoop()
        self.recorded: list[tuple[int, str, Any]] = []
        self.nemesis = Nemesis(
            faults, self.loop, 10, lambda name: Random(f"{seed}/{name}"), self.record
        )
        self.nemesis.start(limit_s)
        self.run(limit_s)

    def record(self, kind: str, process: str, f: str, value: Keyword | list[Any] | None) -> None:
        assert (kind, process) == ("info", "nemesis")
        self.recorded.append((self.loop.now_ns(), f, value))

    def run(self, until_s: int) -> None:
        pass_until(self.loop, until_s * SECOND)


def test_cutting_and_healing_alternate_and_are_recorded() -> None:
    network: Any = FakeNetwork()
    stage = Stage(Partition(network, nodes_of(5)))
    turns = stage.recorded[::2]
    assert len(turns) > 1000
    assert network.calls[:4] == ["cut", "heal"] * 2
    assert [f for _, f, _ in stage.recorded[:4]] == ["start-partition"] * 2 + ["stop-partition"] * 2
    assert turns[0][0] == 0  # as the real tool's
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(turns)]
    assert sum(gaps) / len(gaps) / SECOND == pytest.approx(10, rel=0.05)
    assert 0 <= min(gaps) <= max(gaps) < 20 * SECOND
    assert {value for _, _, value in stage.recorded[::4]} == set(REAL_SHAPES)
    values = [value for _, _, value in stage.recorded[1:4]]
    assert values[0][0] == "isolated"
    assert values[1:] == [None, "network-healed"]


def test_the_same_seed_gives_the_same_faults() -> None:
    def faults(seed: int) -> list[Any]:
        network: Any = FakeNetwork()
        return Stage(Partition(network, nodes_of(5)), seed=seed).recorded

    assert faults(1) == faults(1)
    assert faults(1) != faults(2)


def test_stopping_ends_what_is_active_and_is_recorded_when_nothing_was() -> None:
    network: Any = FakeNetwork()
    stage = Stage(Partition(network, nodes_of(5)), limit_s=1)
    before = len(stage.recorded)
    assert not stage.nemesis.over
    stage.nemesis.stop()
    assert stage.nemesis.over
    assert network.calls[-1] == "heal"
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
