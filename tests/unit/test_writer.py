"""Sealing and sizes: what a full tail becomes, whoever seals it, and whatever gets lost meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest

from leaderless.core.headlog.attempt import carry_out, prepare
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.headlog.records import EMPTY
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.writer import Writer
from leaderless.core.limits import Limits
from leaderless.core.messages import (
    Batch,
    Cas,
    Entry,
    HandOver,
    Outcome,
    Put,
    Request,
    StoreOp,
)
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from leaderless.core.strategies.leaderless import LeaderlessLog
from simulation.nodes import LINEARIZABLE
from simulation.registers import Store
from tests.driver import Driver
from tests.stepped import Flying, SteppedCluster

SEALED_AT = 2


@pytest.fixture
def cluster() -> SteppedCluster:
    """A tail is full with two entries."""
    return cluster_of(SEALED_AT)


def cluster_of(seal_entries: int) -> SteppedCluster:
    options = LINEARIZABLE._replace(shape=Shape(seal_entries=seal_entries))
    return SteppedCluster(["n0", "n1"], "leaderless", options)


def send(cluster: SteppedCluster, node: str, msg: Any) -> None:
    """Ask a node to append to k, and let it ask the store; nothing is delivered."""
    cluster.request("c1", node, {"type": "send", "key": "k", "msg": msg})
    cluster.pass_time(0.02)


def send_and_settle(cluster: SteppedCluster, node: str, *msgs: Any) -> None:
    for msg in msgs:
        send(cluster, node, msg)
        cluster.run(0.2, every_s=0.01)


def flying(cluster: SteppedCluster, key: str) -> Iterator[Flying]:
    """Calls under way for a register."""
    return (message for message in cluster.flying.values() if message.body.get("key") == key)


def polled(cluster: SteppedCluster, node: str) -> list[Any]:
    """What a node answers to a poll of k from 0."""
    cluster.request("c1", node, {"type": "poll", "offsets": {"k": 0}})
    cluster.run(0.2, every_s=0.01)
    pairs = cluster.to_clients[-1].body["msgs"].get("k", [])
    assert [offset for offset, _ in pairs] == list(range(len(pairs)))
    return [msg for _, msg in pairs]


def test_the_filler_seals(cluster: SteppedCluster) -> None:
    send_and_settle(cluster, "n0", 1)
    full = cluster.store.registers["head"]["entries"]
    send_and_settle(cluster, "n0", 2)
    segment = cluster.store.registers["segment/0"]
    assert segment["base"] == 0
    assert segment["entries"][:1] == full
    assert len(segment["entries"]) == SEALED_AT
    assert cluster.store.registers["head"]["base"] == 0  # it moves with the next entry
    send_and_settle(cluster, "n0", 3)
    register = cluster.store.registers["head"]
    assert (register["base"], register["sealed"], len(register["entries"])) == (2, 1, 1)


def test_another_seals_when_the_filler_died(cluster: SteppedCluster) -> None:
    """1. n0 fills the tail. 2. It dies before its segment is written. 3. n1 needs room, and writes it."""
    send_and_settle(cluster, "n0", 1)
    send(cluster, "n0", 2)
    cluster.deliver(next(flying(cluster, "head")).number)
    cluster.start("n0")
    assert "segment/0" not in cluster.store.registers
    send_and_settle(cluster, "n1", 3)
    assert len(cluster.store.registers["segment/0"]["entries"]) == SEALED_AT
    assert polled(cluster, "n0") == polled(cluster, "n1") == [1, 2, 3]


def test_a_lost_segment_is_written_before_the_base_moves(cluster: SteppedCluster) -> None:
    """1. The tail is full. 2. Its segment's write is lost. 3. The next append must not pass it."""
    send_and_settle(cluster, "n0", 1)
    send(cluster, "n0", 2)
    cluster.deliver(next(flying(cluster, "head")).number)  # the cas ...
    cluster.deliver(next(iter(cluster.flying)))  # ... and its answer
    write = next(flying(cluster, "segment/0"))
    cluster.drop(write.number)
    send(cluster, "n0", 3)
    cluster.pass_time(0.5)
    assert cluster.store.registers["head"]["base"] == 0
    cluster.run(4.0, every_s=0.2)
    assert len(cluster.store.registers["segment/0"]["entries"]) == SEALED_AT
    assert polled(cluster, "n1") == [1, 2, 3]


def test_a_late_write_of_a_segment_changes_nothing(cluster: SteppedCluster) -> None:
    """1. n0's write of the segment is slow. 2. n1 writes it. 3. The slow one arrives."""
    send_and_settle(cluster, "n0", 1)
    send(cluster, "n0", 2)
    cluster.deliver(next(flying(cluster, "head")).number)
    cluster.deliver(next(iter(cluster.flying)))
    slow = next(flying(cluster, "segment/0")).number
    held = cluster.flying.pop(slow)
    send_and_settle(cluster, "n1", 3)
    before = cluster.store.registers["segment/0"]
    cluster.flying[slow] = held
    cluster.run(0.2, every_s=0.01)
    assert cluster.store.registers["segment/0"] == before


class ReadsAhead(CommitPolicy):
    """Reads the head beside each compare-and-set."""

    reads_ahead = True


def writer_of(driver: Driver, replica: Replica, policy: CommitPolicy) -> Writer:
    """The writer of n0."""
    compactor = Compactor(driver.clock, replica, "n0", Pace())
    return Writer(
        driver.clock,
        "n0",
        writers=["n0/0"],
        replica=replica,
        policy=policy,
        compactor=compactor,
    )


def test_a_full_head_that_never_stood_in_the_store_is_not_sealed() -> None:
    """1. n0 tries two batches at once. 2. Their copies were committed in the other order, by n1.
    3. n0 reads that, and seals: what was committed, not what it tried."""
    store = Store()
    shape = Shape(seal_entries=SEALED_AT)
    first, second = (Batch(f"n{node}/0", 1, 0, {"k": [node]}, {}, 1) for node in (0, 1))
    driver, other = Driver(store.apply), Driver(store.apply)
    policy = ReadsAhead(driver.clock, "n0", ("n0", "n1"), Pace())
    replica = Replica(driver.clock, "n0", ["n0/0"], Limits(), founding=shape, policy=policy)
    writer = writer_of(driver, replica, policy)
    driver.call(replica.refresh())
    for number, batch in enumerate((first, second)):
        driver.start(writer.commit_for(HandOver(Request("n9", number), 0, batch)))
    while not driver.calls:
        driver.pass_time()
    for batch in (second, first):
        its = Replica(other.clock, "n1", ["n1/0"], Limits(), founding=shape)
        other.call(its.refresh())
        tried = prepare(its, [batch], by="n1", kept=0)
        other.call(carry_out(its, tried, reads_ahead=False))
    driver.carry_out(which=1)
    driver.finish()
    tail = store.registers["head"]["entries"]
    assert [writer for writer, *_ in tail] == ["n1/0", "n0/0"]
    assert store.registers["segment/0"]["entries"] == tail


def test_a_message_larger_than_every_bound(cluster: SteppedCluster) -> None:
    """It fills a tail alone, and what comes after it does not carry it along."""
    huge = "x" * (3 * Limits().batch_bytes)
    send_and_settle(cluster, "n0", "small", huge, "after")
    assert polled(cluster, "n1") == ["small", huge, "after"]
    assert len(str(cluster.store.registers["head"])) < Shape().seal_bytes


def test_the_register_stays_small() -> None:
    cluster = cluster_of(seal_entries=1_000)
    for number in range(30):
        send_and_settle(cluster, "n0", f"{number}" + "x" * 1_000)
        assert len(str(cluster.store.registers["head"])) < 2 * Shape().seal_bytes
    assert cluster.store.registers["head"]["sealed"] >= 3


def test_what_waits_shares_a_commit(cluster: SteppedCluster) -> None:
    """What waits while a compare-and-set is under way goes into the next one together."""
    send_and_settle(cluster, "n0", 1)
    version = cluster.store.registers["head"]["version"]
    send(cluster, "n0", 2)
    for msg in range(3, 9):
        cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": msg})
    cluster.run(0.2, every_s=0.01)
    assert polled(cluster, "n1") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert cluster.store.registers["head"]["version"] <= version + 3


class Lingering(CommitPolicy):
    """Commits all itself, and waits for company each time."""

    def target(self) -> None:
        return None

    def linger_s(self) -> float:
        return 0.01


def test_after_a_conflict_a_batch_does_not_wait_for_company_again() -> None:
    """Or its view is as old as the wait at each attempt: where others commit often it loses each time."""
    nodes = ["n0", "n1"]
    cluster = SteppedCluster(nodes, lambda context: LeaderlessLog(context, Lingering))
    for node in nodes:
        send_and_settle(cluster, node, f"first of {node}")
    answered = len(cluster.to_clients)
    for node in nodes:
        send(cluster, node, f"second of {node}")
    cluster.run(0.005, every_s=0.001)  # one of them loses, reads the head and tries again
    assert [m.body["type"] for m in cluster.to_clients[answered:]] == ["send_ok"] * 2


class Bounded(CommitPolicy):
    """Finds out a committer that turns round and round."""

    turns = 0

    def linger_s(self) -> float:
        self.turns += 1
        assert self.turns < 10
        return 0.0


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_batch_of_an_older_epoch_is_let_go_at_once(epoch: int) -> None:
    """It can never get into the log. So nobody waits for it, and the store is asked no more."""
    store = Store()
    head = EMPTY.with_state("fenced", "op").with_state("open", "op")
    store.apply(Put("head", head.value))
    driver = Driver(store.apply)
    policy = Bounded(driver.clock, "n0", ("n0",), Pace())
    replica = Replica(driver.clock, "n0", ["n0/0"], Limits(), policy=policy)
    writer = writer_of(driver, replica, policy)
    batch = Batch("n9/0", 1, epoch, {"k": [1]}, {}, 1)
    driver.start(writer.commit_for(HandOver(Request("n9", 1), 0, batch)))
    driver.finish()
    assert writer.load == (0, 0, 0)
    assert driver.clock.now < 1.0
    assert len(store.registers["head"]["entries"]) == (1 if epoch == head.epoch else 0)


class GivesBack(CommitPolicy):
    """Lets go of a batch after one attempt that failed."""

    @property
    def keeps_losers(self) -> bool:
        return False


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_batch_that_was_sent_back_and_comes_again_stays(lost: int) -> None:
    """Its node does not reach the winner. Two nodes would hand it to and fro."""
    store = Store()
    other = EMPTY
    losses = lost

    def apply(op: StoreOp) -> Outcome:
        nonlocal other, losses
        if isinstance(op, Cas) and losses:  # another node is faster
            losses -= 1
            other = other.with_entries([Entry("n9/0", lost - losses, {}, {})], 1, "n9")
            store.apply(Put("head", other.value))
        return store.apply(op)

    driver = Driver(apply)
    policy = GivesBack(driver.clock, "n0", ("n0", "n9"), Pace())
    replica = Replica(driver.clock, "n0", ["n0/0"], Limits(), policy=policy)
    writer = writer_of(driver, replica, policy)
    batch = Batch("n1/0", 1, 0, {"k": [1]}, {}, 1)
    for times in (1, 2):
        driver.start(writer.commit_for(HandOver(Request("n1", times), 0, batch)))
        driver.finish()
        assert replica.view.contains("n1/0", 1) == (times == 2)
        assert writer.load == (0, 0, 0)
