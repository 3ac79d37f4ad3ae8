"""When messages arrive: in turn, as on the real tool, or each when it is due."""

import pytest

from bench.arrival import ARRIVALS, IN_TURN, InTurn, Message, WhenDue
from bench.loop import VirtualLoop

MS = 1_000_000


class Rig:
    """What arrived, as (ms, name of the sender); `cut` holds the senders that are cut off."""

    def __init__(self, arrival: str = IN_TURN) -> None:
        self.loop = VirtualLoop()
        self.cut: set[str] = set()
        self.arrived: list[tuple[float, str]] = []
        kind = InTurn if arrival == IN_TURN else WhenDue
        self.arrival = kind(self.loop, self.arrive, lambda src, _dest: src in self.cut)

    def arrive(self, message: Message) -> None:
        self.arrived.append((self.loop.now_ns() / MS, message.src))

    def send(self, at_ms: float, src: str, latency_ms: float, dest: str = "n0") -> None:
        message = Message(src, dest, {}, b"")
        latency_ns = int(latency_ms * MS)
        self.loop.call_at(int(at_ms * MS), self.arrival.put, message, latency_ns)

    def run(self, until_ms: int = 10_000) -> list[tuple[float, str]]:
        over: list[bool] = []
        self.loop.call_at(until_ms * MS, over.append, True)
        self.loop.run_until(lambda: bool(over))
        return self.arrived


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_what_is_due_at_once_arrives_in_the_same_turn(arrival: str) -> None:
    rig = Rig(arrival)
    rig.arrival.put(Message("c0", "n0", {}, b""), 0)
    assert rig.arrived == [(0, "c0")]


def test_a_request_waits_behind_the_message_that_was_taken_before_it() -> None:
    rig = Rig()
    rig.send(0, "n1", 100)
    rig.send(20, "c0", 0)
    rig.send(30, "n2", 10)
    assert rig.run() == [(99, "n1"), (99, "c0"), (99, "n2")]


def test_what_waits_is_taken_in_the_order_in_which_it_is_due() -> None:
    rig = Rig()
    rig.send(0, "n1", 100)
    rig.send(10, "n2", 200)
    rig.send(20, "n3", 150)
    assert rig.run() == [(99, "n1"), (169, "n3"), (209, "n2")]


def test_each_receiver_has_a_taker_of_its_own() -> None:
    rig = Rig()
    rig.send(0, "n1", 100)
    rig.send(20, "c0", 0, dest="n2")
    assert rig.run() == [(20, "c0"), (99, "n1")]


def test_a_taker_sleeps_whole_milliseconds_rounded_down() -> None:
    rig = Rig()
    for number, latency_ms in enumerate((1, 1.5, 2, 2.5)):
        rig.send(10 * number, "n1", latency_ms)
    assert [at_ms for at_ms, _ in rig.run()] == [0, 11, 21, 32]


def test_partitions_are_looked_at_when_a_message_is_taken() -> None:
    rig = Rig()
    rig.send(0, "n1", 100)
    rig.loop.call_at(1 * MS, rig.cut.add, "n1")
    rig.send(2, "n1", 0)
    assert rig.run() == [(99, "n1")]


def test_a_taker_does_not_sleep_for_a_message_that_is_cut_off() -> None:
    rig = Rig()
    rig.cut.add("n1")
    rig.send(0, "n1", 100)
    rig.send(1, "c0", 0)
    assert rig.run() == [(1, "c0")]


def test_when_due_messages_overtake_one_another_and_partitions_drop_at_the_end() -> None:
    rig = Rig("when-due")
    rig.send(0, "n1", 100)
    rig.send(0, "n2", 50)
    rig.send(20, "c0", 0)
    rig.loop.call_at(60 * MS, rig.cut.add, "n1")
    assert rig.run() == [(20, "c0"), (50, "n2")]
