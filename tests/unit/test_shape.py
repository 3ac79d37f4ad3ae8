"""What processes of one log must agree on, and what saves the log where they do not."""

from typing import Any

import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.index import COMPACTED, Page, decode_part, index_of
from leaderless.core.headlog.records import HEAD, Head, Segment, head_of, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.sealer import Sealer
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry, Heading, Put
from leaderless.core.shape import Shape
from simulation.nodes import LINEARIZABLE
from simulation.registers import Store
from tests.compacting import JudgedStore, Worker
from tests.driver import Driver
from tests.stepped import SteppedCluster

SMALL, LARGE = Shape(seal_entries=2), Shape(seal_entries=100)


def ask(cluster: SteppedCluster, body: dict[str, Any]) -> dict[str, Any]:
    """The body of the answer of its only node."""
    before = len(cluster.to_clients)
    cluster.request("c1", cluster.names[0], body)
    while len(cluster.to_clients) == before:
        cluster.run(0.1, every_s=0.01)
    return cluster.to_clients[-1].body


def node_on(store: Store, shape: Shape | None, nodes: int = 1, name: str = "n0") -> SteppedCluster:
    """A node of a cluster of so many, whose others are absent, with a shape of its own for a new log."""
    names = [f"n{number}" for number in range(nodes)]
    options = LINEARIZABLE._replace(shape=shape)
    return SteppedCluster([name], "leaderless", options, store=store, absent={*names} - {name})


def send(cluster: SteppedCluster, message: int) -> None:
    assert ask(cluster, {"type": "send", "key": "k", "msg": message})["type"] == "send_ok"


def polled(cluster: SteppedCluster) -> list[Any]:
    pairs = ask(cluster, {"type": "poll", "offsets": {"k": 0}})["msgs"].get("k", [])
    return [message for _, message in pairs]


# ------------------------------------------------------------ the shape stands in the log


@pytest.mark.parametrize("shapes", [(SMALL, LARGE), (LARGE, SMALL)])
def test_the_first_one_decides_and_all_others_follow(shapes: tuple[Shape, Shape]) -> None:
    store = Store()
    clusters = [node_on(store, shape, 2, f"n{at}") for at, shape in enumerate(shapes)]
    for number in range(12):
        send(clusters[number % 2], number)
    assert [polled(cluster) for cluster in clusters] == [[*range(12)]] * 2
    assert head_of(store.registers[HEAD]).shape == shapes[0]
    assert (segment_name(0) in store.registers) is (shapes[0] is SMALL)


def test_a_log_keeps_its_shape() -> None:
    store = Store()
    send(node_on(store, SMALL), 1)
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", [], Limits())
    driver.call(replica.refresh())
    head = head_of(store.registers[HEAD])
    forged = Head(head.heading._replace(shape=LARGE, version=9, epoch=9), head.tail)
    with pytest.raises(InvariantBroken, match="ShapeNeverChanges"):
        driver.call(replica._follow(forged, head.base, head.tail))


@pytest.mark.parametrize(("before", "after"), [(5, 1), (1, 9), (16, 2)])
def test_committed_offsets_stay_when_the_number_of_nodes_changes(before: int, after: int) -> None:
    """Five nodes had three registers, one node read one: it listed nothing."""
    store = Store()
    for number in range(before):
        node = node_on(store, None, before, f"n{number}")
        body = {"type": "commit_offsets", "offsets": {f"key {number}": number}}
        assert ask(node, body)["type"] == "commit_offsets_ok"
    committed = {f"key {number}": number for number in range(before)}
    other = node_on(store, None, after)
    asked = {"type": "list_committed_offsets", "keys": [*committed]}
    assert ask(other, asked)["offsets"] == committed


def test_before_there_is_a_head_nobody_commits_into_a_register_that_others_may_not_read() -> None:
    store = Store()
    many, alone = node_on(store, None, 16, "n3"), node_on(store, None, 1)
    ask(many, {"type": "commit_offsets", "offsets": {"k": 7}})
    send(alone, 1)
    listed = ask(alone, {"type": "list_committed_offsets", "keys": ["k"]})
    assert listed["offsets"] == {"k": 7}


# ------------------------------------------------------------ contents decide


def full_log(entries: int, shape: Shape = SMALL) -> tuple[Store, Head]:
    """A log whose tail is full."""
    store = Store()
    head = Head(Heading(shape=shape), [])
    size = 0 if shape.seal_entries <= entries else shape.seal_bytes
    head = head.with_entries(
        [Entry("w/0", n, {"k": (n, [n])}, {}) for n in range(entries)], size, "w"
    )
    store.apply(Put(HEAD, head.value))
    return store, head


def test_a_segment_of_a_shorter_tail_frees_its_own_entries_alone() -> None:
    """1. n1 writes segment 0 from two entries. 2. A third one gets into the tail, by a process to which it is
    not full. 3. n0 finds the tail full and the segment there: it lets go of two."""
    store, head = full_log(3)
    store.apply(Put(segment_name(0), Segment(0, head.tail[:2]).value))
    node = node_on(store, SMALL)
    send(node, 3)
    assert polled(node) == [0, 1, 2, 3]
    after = head_of(store.registers[HEAD])
    assert (after.base, after.sealed, after.end) == (2, 1, 4)
    assert polled(node_on(store, SMALL)) == [0, 1, 2, 3]


@pytest.mark.parametrize("held", [{"deleted": True}, "longer"])
def test_a_segment_that_says_more_shows_that_the_head_is_old(held: Any) -> None:
    store, head = full_log(2)
    entries = [*head.tail, Entry("w/1", 0, {"k": (2, [2])}, {})]
    value = held if held != "longer" else Segment(0, entries).value
    store.apply(Put(segment_name(0), value))
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", [], Limits())
    driver.call(replica.refresh())
    sealer = Sealer(replica)
    driver.call(sealer.seal(replica.head))
    assert sealer.kept(replica.head) == 0


def test_a_tail_that_may_grow_is_not_sealed() -> None:
    driver = Driver(Store().apply)
    replica = Replica(driver.clock, "n0", [], Limits())
    with pytest.raises(InvariantBroken, match="SegmentsImmutable"):
        driver.call(Sealer(replica).seal(Head(Heading(version=1, shape=LARGE), [])))


def test_a_segment_with_other_entries_is_no_segment_of_this_head() -> None:
    store, _ = full_log(2)
    other = Entry("w/1", 0, {"k": (0, ["another"])}, {})
    store.apply(Put(segment_name(0), {"base": 0, "entries": [other.value]}))
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", [], Limits())
    driver.call(replica.refresh())
    with pytest.raises(InvariantBroken, match="SegmentsImmutable"):
        driver.call(Sealer(replica).seal(replica.head))


def paged() -> JudgedStore:
    """A log with the first two runs in a page of two parts."""
    store = JudgedStore(19)
    Worker(store, "first").finish()
    return store


def test_parts_of_a_page_say_of_how_many_they_are_one() -> None:
    store = paged()
    pages = [each for each in index_of(store.registers[COMPACTED]).listed if each.level]
    assert pages
    for page in pages:
        assert page.parts > 1
        names = [
            f"page/{page.level}/{page.first}-{page.last}/{n}-of-{page.parts}"
            for n in range(page.parts)
        ]
        assert page.registers == names
        assert all(isinstance(decode_part(store.registers[name]), Page) for name in names)


def test_a_part_that_holds_something_else_is_never_named() -> None:
    """Another worker left it, one that was wrong."""
    sound = paged()
    [page, *_] = [each for each in index_of(sound.registers[COMPACTED]).listed if each.level]
    store = JudgedStore(19)
    other = sound.registers[page.registers[0]] | {"keys": {}}
    store.apply(Put(page.registers[0], other))
    Worker(store, "worker").finish()
    listed = index_of(store.registers[COMPACTED]).listed
    assert not any(each.level for each in listed)
