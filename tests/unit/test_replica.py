"""The replica keeps head and view in step, whatever the store and the peers answer, and in which order."""

from typing import Any

import pytest

from leaderless.core.coordination import TOMBSTONE, StoreSilent
from leaderless.core.headlog.index import Index, IndexEntry, size_of_run
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.records import Head, Segment, merge, segment_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry, HandedOver, Heading, Put
from simulation.registers import Store
from tests.driver import Driver

MEMORY_BYTES = 1 << 30
LOG = [Entry("n9/0", seq, {"k": (seq, [f"m{seq}"])}, {}) for seq in range(6)]


def head_of(sealed: int, base: int, end: int) -> Head:
    """The head at `end`, `sealed` segments behind it up to `base`; versions grow with the log."""
    heading = Heading(version=end + 1, by="n9", sealed=sealed, base=base, size=end - base)
    return Head(heading, LOG[base:end])


class World:
    """One replica and its store. Segments hold two entries, runs two segments."""

    def __init__(self) -> None:
        self.store = Store()
        self.driver = Driver(self.store.apply)
        self.replica = Replica(self.driver.clock, "n0", ["n0/0"], Limits(memory_bytes=MEMORY_BYTES))

    def put(self, register: str, value: Any) -> None:
        self.store.apply(Put(register, value))

    def grow(self, sealed: int, end: int) -> None:
        """The log reaches `end`, with `sealed` segments."""
        for number in range(sealed):
            entries = LOG[2 * number : 2 * number + 2]
            self.put(f"segment/{number}", Segment(2 * number, entries).value)
        self.put("head", head_of(sealed, 2 * sealed, end).value)

    def compact(self) -> None:
        """Segments 0 and 1 become a run."""
        segments = [segment_of(self.store.registers[f"segment/{number}"]) for number in (0, 1)]
        run = merge([each for each in segments if each])
        self.put("run/0-1", run.value)
        self.put("compacted", Index(1, 2, (IndexEntry(0, 0, 1, 0, 4, 1, size_of_run(run)),)).value)
        self.put("segment/0", TOMBSTONE)
        self.put("segment/1", TOMBSTONE)

    def refresh(self) -> None:
        self.driver.call(self.replica.refresh())

    @property
    def messages(self) -> list[Any]:
        found = self.replica.view.read("k", 0)
        if found is None:  # it is read back, run by run
            memory, found = Memory(self.replica), []
            while more := self.driver.call(memory.read("k", len(found))):
                found += more
        return [msg for _, msg in found]

    def require_in_step(self, end: int) -> None:
        assert self.replica.view.slot == self.replica.head.end == end
        assert self.messages == [f"m{seq}" for seq in range(end)]


@pytest.fixture
def world() -> World:
    return World()


def test_an_empty_store(world: World) -> None:
    assert not world.replica.loaded
    world.refresh()
    assert world.replica.loaded
    world.require_in_step(0)


@pytest.mark.parametrize("known", [None, 0, 1, 3])
@pytest.mark.parametrize("compacted", [False, True])
def test_it_reads_what_it_lacks(world: World, known: int | None, compacted: bool) -> None:
    if known is not None:
        world.grow(sealed=known // 2, end=known)
        world.refresh()
    world.grow(sealed=2, end=5)
    if compacted:
        world.compact()
    world.refresh()
    world.require_in_step(5)


def test_the_index_may_be_newer_than_the_head(world: World) -> None:
    world.grow(sealed=1, end=3)
    world.driver.start(world.replica.refresh())
    world.driver.carry_out()  # (1) the head is read: one segment is sealed
    world.grow(sealed=2, end=5)
    world.compact()  # (2) the log grows, and what was in that tail is compacted
    world.driver.finish()  # (3) the index is read
    world.require_in_step(5)


def test_nothing_is_folded_while_a_segment_is_missing(world: World) -> None:
    world.grow(sealed=0, end=1)
    world.refresh()
    world.grow(sealed=2, end=5)
    world.driver.start(world.replica.refresh())
    world.driver.carry_out()  # (1) the head
    world.driver.carry_out()  # (2) segment 0
    world.compact()
    world.driver.carry_out()  # (3) segment 1 is gone; the index is asked for
    world.require_in_step(1)  # so that other processes meanwhile find head and view in step
    world.driver.finish()
    world.require_in_step(5)


def test_a_segment_that_never_was(world: World) -> None:
    world.put("head", head_of(2, 4, 5).value)
    with pytest.raises(StoreSilent, match=r"^CommittedReadable"):
        world.refresh()


def test_an_older_answer_changes_nothing(world: World) -> None:
    world.grow(sealed=0, end=1)
    world.driver.start(world.replica.refresh())
    world.driver.start(world.replica.refresh())
    world.driver.carry_out(which=0)
    world.grow(sealed=1, end=3)
    world.driver.finish()
    world.require_in_step(3)


def test_a_view_is_as_fresh_as_when_the_store_was_asked(world: World) -> None:
    world.driver.clock.now = 7.0
    world.driver.start(world.replica.refresh())
    world.driver.clock.now = 7.5
    world.driver.finish()
    assert world.replica.confirmed_at == 7.0


def shared(slot: int, end: int, sealed: int = 0, base: int = 0) -> HandedOver:
    return HandedOver(slot, LOG[slot:end], head_of(sealed, base, end).heading, held_s=0.25)


@pytest.mark.parametrize("slot", [1, 2])
def test_a_peers_answer_brings_what_is_lacking(world: World, slot: int) -> None:
    world.grow(sealed=0, end=2)
    world.refresh()
    world.driver.clock.now = max(9.5, world.driver.clock.now)
    world.driver.call(world.replica.learn(shared(slot, end=4), asked_at=9.0))
    world.require_in_step(4)
    assert world.replica.head.value == head_of(0, 0, 4).value  # a cas from it can succeed
    assert world.replica.confirmed_at == 9.25


def test_an_answer_over_a_seal(world: World) -> None:
    world.grow(sealed=0, end=2)
    world.refresh()
    world.driver.clock.now = max(9.5, world.driver.clock.now)
    world.driver.call(world.replica.learn(shared(2, end=5, sealed=1, base=2), asked_at=9.0))
    world.require_in_step(5)
    assert world.replica.head.value == head_of(1, 2, 5).value


def test_an_older_answer_of_a_peer_confirms_no_more_than_it_saw(world: World) -> None:
    world.grow(sealed=0, end=5)
    world.refresh()
    world.driver.clock.now = max(9.5, world.driver.clock.now)
    world.driver.call(world.replica.learn(shared(1, end=3), asked_at=9.0))
    world.require_in_step(5)
    assert world.replica.confirmed_at == 9.25


def test_who_is_too_far_behind_for_an_answer_reads_the_store(world: World) -> None:
    """The peer would say the same again and again."""
    world.grow(sealed=0, end=1)
    world.refresh()
    world.grow(sealed=2, end=5)
    world.driver.clock.now = 11.0
    world.driver.clock.now = max(9.5, world.driver.clock.now)
    world.driver.call(world.replica.learn(shared(5, end=5, sealed=2, base=4), asked_at=9.0))
    world.require_in_step(5)
    assert world.replica.confirmed_at == 11.0


def test_what_it_shares_is_what_a_peer_can_learn(world: World) -> None:
    world.grow(sealed=1, end=4)
    world.refresh()
    other = World()
    other.grow(sealed=0, end=1)
    other.refresh()
    other.driver.call(other.replica.learn(world.replica.share(1, 0.0), asked_at=9.0))
    other.require_in_step(4)
    assert other.replica.head == world.replica.head


def test_a_peer_cannot_confirm_the_future(world: World) -> None:
    world.grow(sealed=0, end=2)
    world.refresh()
    world.driver.clock.now = 9.5
    answer = shared(2, end=4)._replace(held_s=1e300)
    world.driver.call(world.replica.learn(answer, asked_at=9.0))
    assert world.replica.confirmed_at == 9.5


@pytest.mark.parametrize("slot", [0, 2])
def test_what_a_peer_shows_must_continue_the_view(world: World, slot: int) -> None:
    """Its head says more, or less, than its entries: nothing is taken, and it is no answer."""
    world.grow(sealed=0, end=2)
    world.refresh()
    heading = Heading(version=99, by="n9", base=0, size=4)
    for entries in ([LOG[3]], [LOG[2]._replace(seq=1)], [LOG[2]._replace(seq=1, appends={})]):
        world.driver.call(world.replica.learn(HandedOver(slot, entries, heading, 0.0), 9.0))
        world.require_in_step(2)
        assert world.replica.head == head_of(0, 0, 2)
