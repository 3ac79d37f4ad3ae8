"""The simulated network: when messages arrive, and which are lost, doubled or slow."""

import io
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
import pytest

from bench.failure import RunFailure
from bench.loop import VirtualLoop
from bench.nemesis.faults import LinkFault, LinkFaults
from bench.net import (
    ARRIVALS,
    IN_TURN,
    Departure,
    Hearing,
    InTurn,
    Message,
    Network,
    WhenDue,
    latency,
)
from runs.writing import Journal
from tests.passing import pass_until

MS = 1_000_000


class Rig:
    """A network of three nodes, a service and a client; what each has received: src, dest, type, time in ns."""

    def __init__(
        self,
        latency_ms: int = 0,
        *,
        lenient: bool = False,
        has_latency: bool = True,
        **in_force: LinkFault,
    ) -> None:
        self.loop = VirtualLoop()
        self.file = io.BytesIO()
        self.journal = Journal(self.file)
        hearing = Hearing(lenient=lenient)
        self.net = Network(self.loop, self.journal, lambda: latency_ms * MS, hearing=hearing)
        faults = LinkFaults(("n0", "n1", "n2"), has_latency, Random(1))
        faults.in_force.update(in_force)
        self.net.copies_ns = faults.delays_ns
        self.received: list[tuple[str, str, str, int]] = []
        for name in ("n0", "n1", "n2", "c0", "lin-kv"):
            self.net.add(name, self.collector(name))

    def collector(self, name: str) -> Callable[..., Any]:
        def deliver(src: str, body: dict[str, Any], wire: bytes) -> None:
            message = orjson.loads(wire)
            assert (message["src"], message["dest"], message["body"]) == (src, name, body)
            self.received.append((src, name, body["type"], self.loop.now_ns()))

        return deliver

    def pass_time(self, until_ms: int) -> None:
        pass_until(self.loop, until_ms * MS)

    def times(self, src: str, dest: str, count: int = 1) -> list[int]:
        """Send so many messages at once; after how many ms copies arrived."""
        start_ns = self.loop.now_ns()
        for _ in range(count):
            self.net.send(src, dest, {"type": "hello"})
        pass_until(self.loop, start_ns + 10_000 * MS)
        arrived = [at for *link, _, at in self.received if link == [src, dest] and at >= start_ns]
        return [(at - start_ns) // MS for at in arrived]

    def line(self, src: str, dest: str, **more: int) -> bytes:
        return orjson.dumps({"src": src, "dest": dest, "body": {"type": "hello"}} | more)

    def events(self) -> list[Any]:
        self.journal.flush()
        return [orjson.loads(line) for line in self.file.getvalue().splitlines()]


@pytest.mark.parametrize("latency_ms", [0, 10])
def test_messages_between_servers_take_the_latency_and_others_arrive_in_the_same_turn(
    latency_ms: int,
) -> None:
    rig = Rig(latency_ms)
    rig.net.send("c0", "n0", {"type": "ask"})
    for dest in ("c0", "n1", "lin-kv"):
        rig.net.send_line("n0", rig.line("n0", dest))
    at_once = [("c0", "n0", "ask", 0), ("n0", "c0", "hello", 0)]
    later = [("n0", dest, "hello", latency_ms * MS) for dest in ("n1", "lin-kv")]
    assert rig.received == (at_once if latency_ms else at_once + later)
    rig.pass_time(10)
    assert rig.received == at_once + later


def test_a_partition_drops_at_the_receiver_and_only_between_those_named() -> None:
    rig = Rig()
    rig.net.partition({"n1": {"n0"}})
    for src, dest in (("n0", "n1"), ("n1", "n0"), ("n0", "lin-kv"), ("lin-kv", "n1"), ("c0", "n1")):
        rig.net.send(src, dest, {"type": "x"})
    assert [(src, dest) for src, dest, _, _ in rig.received] == [
        ("n1", "n0"),
        ("n0", "lin-kv"),
        ("lin-kv", "n1"),
        ("c0", "n1"),
    ]
    rig.net.heal()
    rig.net.send("n0", "n1", {"type": "x"})
    assert rig.received[-1][:2] == ("n0", "n1")


def test_a_partition_that_begins_while_a_message_flies_drops_it() -> None:
    rig = Rig(latency_ms=10)
    rig.net.send("n0", "n1", {"type": "x"})
    rig.net.partition({"n1": {"n0"}})
    rig.pass_time(20)
    assert rig.received == []
    assert [event["type"] for event in rig.events()] == ["send"]


def test_traffic_counts_clients_and_servers() -> None:
    rig = Rig()
    rig.net.send("c0", "n0", {"type": "init"})
    rig.net.send("n0", "n1", {"type": "x"})
    rig.net.partition({"n1": {"n0"}})
    rig.net.send("n0", "n1", {"type": "x"})
    assert (rig.net.clients.sent, rig.net.clients.received) == (1, 1)
    assert (rig.net.servers.sent, rig.net.servers.received) == (2, 1)


def test_the_journal_has_the_nodes_own_bytes_with_an_id() -> None:
    rig = Rig()
    rig.net.send_line("n0", b'{"src":"n0", "dest":"n1", "body":{"type":"x","deep":{"a":[1,null]}}}')
    (sent, received) = rig.events()
    assert sent["message"] == received["message"]
    assert sent["message"] == {
        "id": 0,
        "src": "n0",
        "dest": "n1",
        "body": {"type": "x", "deep": {"a": [1, None]}},
    }


def test_a_nodes_own_id_is_replaced() -> None:
    rig = Rig()
    rig.net.send("c0", "n0", {"type": "x"})
    rig.net.send_line("n0", rig.line("n0", "n1", id=77))
    assert [event["message"]["id"] for event in rig.events()] == [0, 0, 1, 1]


def test_leading_white_space_is_no_error() -> None:
    rig = Rig()
    rig.net.send_line("n0", b"  " + rig.line("n0", "n1") + b"\r")
    assert rig.received


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (b"Starting up", "not one JSON object"),
        (b"", "not one JSON object"),
        (b"\xff\xfe", "not one JSON object"),
        (b"[1]", "not an object"),
        (b"null", "not an object"),
        (b'{"dest":"n1","body":{}}', "`src` must be a string"),
        (b'{"src":"n0","dest":3,"body":{}}', "`dest` must be a string"),
        (b'{"src":"n0","dest":"n1","body":"x"}', "`body` must be an object"),
        (b'{"src":"n0","dest":"n1","body":{},"more":1}', "unknown fields ['more']"),
    ],
)
def test_a_line_that_is_no_message_is_reported_with_node_and_line(line: bytes, part: str) -> None:
    rig = Rig()
    with pytest.raises(RunFailure) as caught:
        rig.net.send_line("n0", line)
    report = str(caught.value)
    assert part in report
    assert "Node n0" in report
    assert line.decode(errors="replace") in report
    assert rig.received == []


def test_a_lenient_network_drops_and_counts_what_is_no_message() -> None:
    rig = Rig(lenient=True)
    rig.net.send_line("n0", b"Starting up")
    rig.net.send_line("n0", rig.line("n0", "n7"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    assert [dest for _, dest, _, _ in rig.received] == ["n1"]
    assert rig.net.hearing.dropped == {"n0": 2}


def test_a_message_with_a_wrong_name_mutes_its_node_alone() -> None:
    rig = Rig()
    rig.net.leave("c0", Departure(0))
    rig.net.send_line("n0", rig.line("n0", "c0"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    rig.net.send_line("n0", b"no message")
    assert rig.received == rig.events() == []
    rig.net.send_line("n1", rig.line("n1", "n0"))
    assert rig.received == [("n1", "n0", "hello", 0)]


def test_a_mute_node_that_is_started_again_is_heard() -> None:
    rig = Rig()
    rig.net.send_line("n0", rig.line("n0", "n7"))
    rig.net.remove("n0")
    rig.net.add("n0", rig.collector("n0"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    assert rig.received == [("n0", "n1", "hello", 0)]


def test_a_message_to_a_node_that_is_down_is_lost_and_mutes_nobody() -> None:
    rig = Rig()
    rig.net.remove("n1")
    rig.net.send_line("n0", rig.line("n0", "n1"))
    rig.net.send_line("n0", rig.line("n0", "c0"))
    assert rig.received == [("n0", "c0", "hello", 0)]
    assert [event["type"] for event in rig.events()] == ["send", "send", "recv"]


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
        self.arrival.put(Message(src, dest, {}, b""), int(latency_ms * MS))


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
