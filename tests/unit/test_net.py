"""The simulated network: when messages arrive, and which are lost; see `tests/datadriven/networks`, too."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from bench.loop import VirtualLoop
from bench.nemesis.links import LinkFault
from bench.net import (
    ARRIVALS,
    IN_TURN,
    InTurn,
    Message,
    WhenDue,
    latency,
)
from tests.datadriven.networks import MS, Rig
from tests.passing import pass_until


@pytest.mark.parametrize("mean_ms", [0, 1, 10])
def test_latency_distributions(mean_ms: int) -> None:
    draws = {}
    for kind in ("constant", "uniform", "exponential"):
        draw = latency(kind, mean_ms, Random(kind))
        draws[kind] = [draw() for _ in range(4000)]
    assert set(draws["constant"]) == {mean_ms * MS}
    assert all(0 <= each <= 2 * mean_ms * MS for each in draws["uniform"])
    if mean_ms == 10:
        assert 9 < sum(draws["uniform"]) / 4000 / MS < 10.5
        assert 9 < sum(draws["exponential"]) / 4000 / MS < 10.5
        assert max(draws["exponential"]) > 40 * MS


# ---------------------------------------------------------------- arrival


class Arrivals:
    """What arrived, as (ms, name of the sender); `cut` holds the senders that are cut off."""

    def __init__(self, arrival: str) -> None:
        self.loop = VirtualLoop()
        self.cut: set[str] = set()
        self.arrived: list[tuple[float, str]] = []
        kind = InTurn if arrival == IN_TURN else WhenDue
        self.arrival = kind(self.loop, self.arrive, lambda src, _dest: src in self.cut)
        self.does: dict[str, Callable[..., object]] = {
            "cut": self.cut.add,
            "forget": self.arrival.forget,
            "send": self.put,
        }

    def arrive(self, message: Message) -> None:
        self.arrived.append((self.loop.now_ns() / MS, message.src))

    def put(self, src: str, latency_ms: float, dest: str = "n0") -> None:
        self.arrival.put(Message(src, dest, {}, b"", src), int(latency_ms * MS))


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_what_is_due_at_once_arrives_in_the_same_turn(arrival: str) -> None:
    rig = Arrivals(arrival)
    rig.put("c0", 0)
    assert rig.arrived == [(0, "c0")]


# What happens at which ms (a message with its latency in ms, if nothing else is said), and what arrives.
WAITS: dict[str, tuple[list[tuple[Any, ...]], list[tuple[float, str]]]] = {
    "a request waits behind the message that was taken before it": (
        [(0, "n1", 100), (20, "c0", 0), (30, "n2", 10)],
        [(99, "n1"), (99, "c0"), (99, "n2")],
    ),
    "what waits is taken in the order in which it is due": (
        [(0, "n1", 100), (10, "n2", 200), (20, "n3", 150)],
        [(99, "n1"), (169, "n3"), (209, "n2")],
    ),
    # An `init` waited, its node was killed, and the next life got it beside its own.
    "a receiver that starts anew has a fresh queue": (
        [(0, "n1", 100), (20, "c1", 0), (20, "c2", 0, "n5"), ("forget", 30, "n0"), (40, "c3", 0)],
        [(20, "c2"), (99, "n1"), (99, "c3")],
    ),
    "each receiver has a taker of its own": (
        [(0, "n1", 100), (20, "c0", 0, "n2")],
        [(20, "c0"), (99, "n1")],
    ),
    "a taker sleeps whole milliseconds, rounded down": (
        [(10 * number, "n1", latency_ms) for number, latency_ms in enumerate((1, 1.5, 2, 2.5))],
        [(0, "n1"), (11, "n1"), (21, "n1"), (32, "n1")],
    ),
    "partitions are looked at when a message is taken": (
        [(0, "n1", 100), ("cut", 1, "n1"), (2, "n1", 0)],
        [(99, "n1")],
    ),
    "a taker does not sleep for a message that is cut off": (
        [("cut", 0, "n1"), (0, "n1", 100), (1, "c0", 0)],
        [(1, "c0")],
    ),
    "when-due: messages overtake one another, and partitions drop at the end": (
        [(0, "n1", 100), (0, "n2", 50), (20, "c0", 0), ("cut", 60, "n1")],
        [(20, "c0"), (50, "n2")],
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_when_messages_arrive(case: str) -> None:
    steps, arrived = WAITS[case]
    rig = Arrivals("when-due" if case.startswith("when-due") else IN_TURN)
    for step in steps:
        what, at_ms, *arguments = step if isinstance(step[0], str) else ("send", *step)
        rig.loop.call_at(at_ms * MS, rig.does[what], *arguments)
    pass_until(rig.loop, 10_000 * MS)
    assert rig.arrived == arrived


# ---------------------------------------------------------------- faults of links


N0 = frozenset(["n0"])


@pytest.mark.parametrize(
    ("src", "dest", "arrive"),
    [
        ("n0", "n1", 0),
        ("n1", "n0", 0),
        ("n0", "lin-kv", 0),
        ("lin-kv", "n0", 0),
        ("n1", "n2", 1),
        ("lin-kv", "n1", 1),
        ("c0", "n0", 1),
        ("n0", "c0", 1),
    ],
)
def test_loss_is_on_every_link_of_its_nodes_but_those_to_clients(
    src: str, dest: str, arrive: int
) -> None:
    rig = Rig(5, loss=LinkFault(N0, 1.0))
    assert len(rig.times(src, dest)) == arrive
    assert [event["type"] for event in rig.events()] == ["send", "recv"][: 1 + arrive]


@pytest.mark.parametrize(
    ("src", "dest", "arrive"),
    [("n0", "n1", 2), ("n1", "n0", 2), ("lin-kv", "n0", 2), ("n0", "lin-kv", 1), ("n1", "n2", 1)],
)
def test_a_request_to_a_service_is_never_doubled(src: str, dest: str, arrive: int) -> None:
    assert len(Rig(5, duplicate=LinkFault(N0, 1.0)).times(src, dest)) == arrive


def test_a_copy_has_the_number_of_its_message_and_comes_within_two_seconds() -> None:
    rig = Rig(5, duplicate=LinkFault(N0, 1.0))
    rig.times("n0", "n1")
    events = [(event["type"], event["message"]["id"]) for event in rig.events()]
    assert events == [("send", 0), ("recv", 0), ("recv", 0)]
    times = rig.times("n0", "n1", 200)
    copies = sorted(times)[200:]
    assert times.count(5) >= 200
    assert 5 <= copies[0] <= copies[100] < 500  # most of them soon
    assert 1_500 < copies[-1] <= 2_005


def test_a_share_is_a_share() -> None:
    assert 60 < len(Rig(loss=LinkFault(N0, 0.2)).times("n0", "n1", 100)) < 95
    assert 105 < len(Rig(duplicate=LinkFault(N0, 0.2)).times("n0", "n1", 100)) < 140


@pytest.mark.parametrize(
    ("faults", "times"),
    [
        ({}, {("n0", "n1"): [5], ("c0", "n0"): [0]}),
        (
            {"slow": LinkFault(N0, 10)},
            {("n0", "n1"): [50], ("n1", "n2"): [5], ("c0", "n0"): [0]},
        ),
        # No latency counts as one millisecond.
        (
            {"latency_ms": 0, "has_latency": False, "slow": LinkFault(N0, 10)},
            {("n0", "n1"): [10]},
        ),
        # They come together.
        (
            {"slow": LinkFault(N0, 2), "loss": LinkFault(frozenset(["n1"]), 1.0)},
            {("n0", "n1"): [], ("n0", "n2"): [10]},
        ),
    ],
)
def test_slow_multiplies_the_latency_of_its_nodes(
    faults: dict[str, Any], times: dict[tuple[str, str], list[int]]
) -> None:
    faults = {"latency_ms": 5} | faults
    rig = Rig(**faults)
    assert {link: rig.times(*link) for link in times} == times
    doubled = Rig(**faults, duplicate=LinkFault(N0, 1.0))
    assert {link: doubled.times(*link)[:1] for link in times} == times
