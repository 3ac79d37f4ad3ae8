"""The writer in the hands of a policy: batches that lose, come back, or are of another epoch."""

import pytest

from leaderless.core.headlog.attempt import Fate, carry_out, prepare
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
    Get,
    HandOver,
    Outcome,
    Put,
    Request,
    StoreOp,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from tests.driver import Driver
from tests.ported import Store

SEALED_AT = 2


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
        other.call(carry_out(its, prepare(its, [batch], by="n1", kept=0), reads_ahead=False))
    driver.carry_out(which=1)
    driver.finish()
    tail = store.registers["head"]["entries"]
    assert [writer for writer, *_ in tail] == ["n1/0", "n0/0"]
    assert store.registers["segment/0"]["entries"] == tail


class Bounded(CommitPolicy):
    """Finds out a committer that turns round and round."""

    turns = 0

    def company_until(self, since: float) -> float:
        self.turns += 1
        assert self.turns < 10
        return since


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_batch_of_an_older_epoch_is_let_go_at_once(epoch: int) -> None:
    """It can never get into the log. So nobody waits for it, and the store is asked no more."""
    store = Store()
    head = EMPTY.with_state("fenced", "op").with_state("open", "op")
    store.apply(Put("head", head.value))
    driver = Driver(store.apply)
    policy = Bounded(driver.clock, "n0", ("n0",), Pace())
    writer = writer_of(
        driver, Replica(driver.clock, "n0", ["n0/0"], Limits(), policy=policy), policy
    )
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


def test_an_attempt_ends_although_its_read_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the node in that read must not hold up all later attempts."""
    store = Store()
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", ["n0/0"], Limits(), founding=Shape())
    driver.call(replica.refresh())

    def failing() -> Process[None]:
        yield Get("head")
        raise ZeroDivisionError

    monkeypatch.setattr(replica, "refresh", failing)
    tried = prepare(replica, [Batch("n0/0", 1, 0, {"k": ["a"]}, {}, 1)], by="n0", kept=0)
    driver.start(carry_out(replica, tried, reads_ahead=True))
    store.apply(Cas("head", None, {}, create=True))
    driver.carry_out()
    driver.carry_out()
    assert driver.results == [Fate.CONFLICT]
