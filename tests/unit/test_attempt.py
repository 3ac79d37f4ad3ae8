"""One attempt: its fates, and the laws that it checks on both sides of the call to the store."""

from typing import Any

import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.attempt import Fate, carry_out, prepare
from leaderless.core.headlog.records import Head
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Batch, Cas, Get
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from simulation.registers import Store
from tests.driver import Driver

FIRST = Batch("n0/0", 1, 0, {"k": ["a", "b"]}, {}, 2)
SECOND = Batch("n1/0", 1, 0, {"k": ["c"]}, {}, 1)


class Node:
    """A replica that has read the log of a store."""

    def __init__(self, store: Store, seal_entries: int = 256) -> None:
        self.driver = Driver(store.apply)
        shape = Shape(seal_entries=seal_entries)
        self.replica = Replica(self.driver.clock, "n0", ["n0/0"], Limits(), founding=shape)
        self.driver.call(self.replica.refresh())

    def attempt(self, *batches: Batch, kept: int = 0, reads_ahead: bool = False) -> Fate:
        tried = prepare(self.replica, batches, by="n0", kept=kept)
        fate = self.driver.call(carry_out(self.replica, tried, reads_ahead=reads_ahead))
        assert isinstance(fate, Fate)
        return fate


@pytest.fixture
def store() -> Store:
    return Store()


def polled(replica: Replica) -> list[Any]:
    return [msg for _, msg in replica.view.read("k", 0) or ()]


@pytest.mark.parametrize("reads_ahead", [False, True])
def test_it_assigns_offsets_and_publishes_at_once(store: Store, reads_ahead: bool) -> None:
    node = Node(store)
    assert node.attempt(FIRST, SECOND, reads_ahead=reads_ahead) is Fate.COMMITTED
    assert polled(node.replica) == polled(Node(store).replica) == ["a", "b", "c"]


def test_another_commit_is_a_conflict_and_changes_nothing(store: Store) -> None:
    late, fast = Node(store), Node(store)
    fast.attempt(FIRST)
    assert late.attempt(SECOND) is Fate.CONFLICT
    assert polled(late.replica) == []
    assert polled(Node(store).replica) == ["a", "b"]


def test_without_an_answer_it_may_have_happened(store: Store) -> None:
    node = Node(store)
    tried = prepare(node.replica, [FIRST], by="n0", kept=0)
    node.driver.start(carry_out(node.replica, tried, reads_ahead=False))
    node.driver.carry_out("answer lost")
    assert node.driver.results[-1] is Fate.UNKNOWN
    assert polled(node.replica) == []
    node.driver.call(node.replica.refresh())
    assert polled(node.replica) == ["a", "b"]


def racing(node: Node, batch: Batch) -> None:
    """Begin an attempt that reads ahead: its compare-and-set and its read are under way, in this order."""
    tried = prepare(node.replica, [batch], by="n0", kept=0)
    node.driver.start(carry_out(node.replica, tried, reads_ahead=True))
    assert [type(call.op) for call in node.driver.calls] == [Cas, Get]


def test_a_read_that_shows_the_batch_ends_the_attempt_before_its_own_answer(store: Store) -> None:
    node = Node(store)
    racing(node, FIRST)
    store.apply(node.driver.calls[0].op)  # carried out, its answer is on its way
    node.driver.carry_out(which=1)
    assert node.driver.results == [Fate.FOUND]
    node.driver.carry_out("call lost")  # as if: it changes nothing any more
    assert polled(node.replica) == polled(Node(store).replica) == ["a", "b"]


def test_a_read_of_a_newer_head_is_a_conflict_and_what_is_under_way_changes_nothing(
    store: Store,
) -> None:
    node, fast = Node(store), Node(store)
    racing(node, FIRST)
    fast.attempt(SECOND)
    node.driver.carry_out(which=1)
    assert node.driver.results == [Fate.CONFLICT]
    node.driver.carry_out()  # the compare-and-set arrives after the next attempt could have begun
    assert polled(node.replica) == polled(Node(store).replica) == ["c"]


def test_a_read_of_the_same_head_decides_nothing(store: Store) -> None:
    node = Node(store)
    racing(node, FIRST)
    node.driver.carry_out(which=1)
    assert node.driver.results == []
    node.driver.carry_out()
    assert node.driver.results == [Fate.COMMITTED]


def test_an_attempt_ends_although_its_read_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the node in that read must not hold up all later attempts."""
    node = Node(store)

    def failing() -> Process[None]:
        yield Get("head")
        raise ZeroDivisionError

    monkeypatch.setattr(node.replica, "refresh", failing)
    racing(node, FIRST)
    store.apply(Cas("head", None, {}, create=True))
    node.driver.carry_out()
    node.driver.carry_out()
    assert node.driver.results == [Fate.CONFLICT]


@pytest.mark.parametrize(
    ("batches", "broken"),
    [
        ([], "NoAppendWhileFenced"),
        ([FIRST, FIRST._replace(seq=2)], "AckedExactlyOnce"),
        ([SECOND._replace(epoch=1)], "NoAppendWhileFenced"),
    ],
)
def test_what_may_not_be_tried(store: Store, batches: list[Batch], broken: str) -> None:
    with pytest.raises(InvariantBroken, match=broken):
        prepare(Node(store).replica, batches, by="n0", kept=0)


def test_a_batch_that_is_in_the_log_may_not_be_tried(store: Store) -> None:
    node = Node(store)
    node.attempt(FIRST)
    with pytest.raises(InvariantBroken, match="AckedExactlyOnce"):
        node.attempt(FIRST)


def test_a_fenced_head_takes_nothing(store: Store) -> None:
    node = Node(store)
    node.replica.changed(node.replica.head.with_state("fenced", "n1"), 0.0)
    with pytest.raises(InvariantBroken, match="NoAppendWhileFenced"):
        node.attempt(FIRST._replace(epoch=1))


def test_law_1_the_view_reaches_to_the_head_that_is_replaced(store: Store) -> None:
    node = Node(store)
    node.attempt(FIRST)
    node.replica.head = Head(node.replica.head.heading, [])
    with pytest.raises(InvariantBroken, match="ViewIsPrefix"):
        node.attempt(SECOND)


def test_law_3_a_head_keeps_a_full_tail_until_its_segment_is_written(store: Store) -> None:
    node = Node(store, seal_entries=1)
    node.attempt(FIRST)
    with pytest.raises(InvariantBroken, match="CommittedReadable"):
        node.attempt(SECOND)
    assert node.attempt(SECOND, kept=1) is Fate.COMMITTED
