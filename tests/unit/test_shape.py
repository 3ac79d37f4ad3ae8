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
from tests.compacting import JudgedStore, Worker
from tests.driver import Driver
from tests.ported import Store

SMALL, LARGE = Shape(seal_entries=2), Shape(seal_entries=100)


# ------------------------------------------------------------ the shape stands in the log


def test_a_log_keeps_its_shape() -> None:
    store, _ = full_log(1)
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", [], Limits())
    driver.call(replica.refresh())
    head = head_of(store.registers[HEAD])
    forged = Head(head.heading._replace(shape=LARGE, version=9, epoch=9), head.tail)
    with pytest.raises(InvariantBroken, match="ShapeNeverChanges"):
        driver.call(replica._follow(forged, head.base, head.tail))


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
