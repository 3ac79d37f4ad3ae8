"""Faults: the shapes of partitions, and that they alternate."""

from random import Random

import pytest

from bench import nemesis
from bench.nemesis import PartitionNemesis

SIZES = [1, 2, 3, 4, 5, 7, 9, 25]


def nodes_of(count):
    return [f"n{number}" for number in range(count)]


def heard(cut, nodes):
    return {node: set(nodes) - cut.get(node, set()) for node in nodes}


@pytest.mark.parametrize("shape", nemesis.SHAPES)
@pytest.mark.parametrize("count", SIZES)
def test_everyone_hears_itself_and_only_nodes_are_cut(shape, count):
    nodes = nodes_of(count)
    cut = nemesis.SHAPES[shape](nodes, Random(1))
    assert set(cut) <= set(nodes)
    assert all(node not in senders <= set(nodes) for node, senders in cut.items())


@pytest.mark.parametrize("count", SIZES)
def test_sizes_of_the_smaller_side(count):
    nodes = nodes_of(count)

    def smaller(cut):
        return min(len(each) for each in heard(cut, nodes).values())

    assert smaller(nemesis.one(nodes, Random(1))) == 1
    assert smaller(nemesis.majority(nodes, Random(1))) == max(count // 2, 1)
    third = (count - 1) // 3
    assert smaller(nemesis.minority_third(nodes, Random(1))) == (third or count)


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 9, 25])
def test_in_a_majorities_ring_everyone_hears_a_majority(count):
    nodes = nodes_of(count)
    hears = heard(nemesis.majorities_ring(nodes, Random(1)), nodes)
    assert all(len(each) > count / 2 for each in hears.values())
    if count >= 5:
        assert all(a in hears[b] for a in nodes for b in hears[a])
    if count <= 5:
        assert len({frozenset(each) for each in hears.values()}) == count


class FakeNetwork:
    def __init__(self):
        self.calls = []

    def partition(self, cut):
        self.calls.append("cut")

    def heal(self):
        self.calls.append("heal")


def test_cutting_and_healing_alternate_and_are_recorded():
    network, recorded = FakeNetwork(), []
    subject = PartitionNemesis(network, nodes_of(5), 10, Random(1), lambda *op: recorded.append(op))
    pauses = [subject.turn() for _ in range(2000)]
    assert network.calls == ["cut", "heal"] * 1000
    assert sum(pauses) / 2000 / 1e9 == pytest.approx(10, rel=0.05)
    assert 0 <= min(pauses) <= max(pauses) < 20e9
    kinds = [(op[0], op[1], op[2]) for op in recorded[:4]]
    start, stop = ("info", "nemesis", "start-partition"), ("info", "nemesis", "stop-partition")
    assert kinds == [start, start, stop, stop]
    assert recorded[0][3] in nemesis.SHAPES
    assert recorded[1][3][0] == "isolated"
    assert [recorded[2][3], recorded[3][3]] == [None, "network-healed"]
    assert {op[3] for op in recorded[::4]} == set(nemesis.SHAPES)


def test_the_same_seed_gives_the_same_faults():
    def faults(seed):
        recorded = []
        subject = PartitionNemesis(
            FakeNetwork(), nodes_of(5), 10, Random(seed), lambda *op: recorded.append(op)
        )
        return [subject.turn() for _ in range(20)], recorded

    assert faults(1) == faults(1)
    assert faults(1) != faults(2)
