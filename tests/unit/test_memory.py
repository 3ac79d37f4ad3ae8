"""How much memory nodes may use, and who is ended."""

import os

import pytest

from bench.memory import MIB, MemoryLimit, free_bytes, limit_of, resident_bytes

USED = {"n0": 50 * MIB, "n1": 120 * MIB, "n2": 90 * MIB}


@pytest.mark.parametrize(
    "limit",
    [MemoryLimit(), MemoryLimit(each_bytes=120 * MIB), MemoryLimit(together_bytes=260 * MIB)],
)
def test_nobody_is_ended_within_the_limit(limit: MemoryLimit) -> None:
    assert limit.broken_by(USED) is None
    assert limit.broken_by({}) is None


def test_a_node_beyond_its_own_limit_is_ended_with_a_sentence() -> None:
    broken = MemoryLimit(each_bytes=100 * MIB).broken_by(USED)
    assert broken
    node, why = broken
    assert node == "n1"
    assert why.startswith("Node n1 used 120 MiB of memory and was killed. A node may use 100 MiB")
    assert "--node-memory-max" in why


def test_the_largest_node_is_ended_when_all_together_use_too_much() -> None:
    broken = MemoryLimit(together_bytes=259 * MIB).broken_by(USED)
    assert broken
    assert broken[0] == "n1"
    assert "All nodes together used 260 MiB, and they may use 259 MiB" in broken[1]


def test_the_limit_is_the_given_one_or_a_share_of_what_is_free() -> None:
    assert limit_of(100) == MemoryLimit(each_bytes=100 * MIB)
    share, free = limit_of(None).together_bytes, free_bytes()
    assert share
    assert free
    assert 0 < share < free * 2


def test_the_memory_of_a_process_group_is_that_of_its_processes() -> None:
    group = {"ours": os.getpgrp()}
    me = resident_bytes({"me": os.getpid()}, whole_groups=False)
    assert resident_bytes(group, whole_groups=True)["ours"] > 0
    assert (me["me"] > 0) == (os.getpid() == os.getpgrp())  # only a leader has the group's number
    assert resident_bytes({"gone": 2**30}, whole_groups=False) == {"gone": 0}
