"""The simulated network."""

import io
from random import Random

import orjson
import pytest

from bench.failure import RunFailure
from bench.loop import VirtualLoop
from bench.mute import Departure, Hearing
from bench.net import Network, latency
from runs.journal import Journal

MS = 1_000_000


class Rig:
    """A network with nodes n0 and n1, client c0 and service lin-kv, and what each has received."""

    def __init__(self, latency_ms: int = 0, *, lenient: bool = False) -> None:
        self.loop = VirtualLoop()
        self.file = io.BytesIO()
        self.journal = Journal(self.file)
        hearing = Hearing(lenient=lenient)
        self.net = Network(self.loop, self.journal, lambda: latency_ms * MS, hearing=hearing)
        self.received: list[tuple[str, str, str, int]] = []
        for name in ("n0", "n1", "c0", "lin-kv"):
            self.net.add(name, self.collector(name))

    def collector(self, name):
        def deliver(src, body, wire):
            message = orjson.loads(wire)
            assert (message["src"], message["dest"], message["body"]) == (src, name, body)
            self.received.append((src, name, body["type"], self.loop.now_ns()))

        return deliver

    def pass_time(self, until_ms: int) -> None:
        over: list[bool] = []
        self.loop.call_at(until_ms * MS, over.append, True)  # after all else at that time
        self.loop.run_until(lambda: bool(over))

    def line(self, src, dest, **more) -> bytes:
        return orjson.dumps({"src": src, "dest": dest, "body": {"type": "hello"}} | more)

    def events(self):
        self.journal.flush()
        return [orjson.loads(line) for line in self.file.getvalue().splitlines()]


def test_messages_to_and_from_clients_take_no_time():
    rig = Rig(latency_ms=10)
    rig.net.send("c0", "n0", {"type": "ask"})
    rig.net.send_line("n0", rig.line("n0", "c0"))
    assert rig.received == [("c0", "n0", "ask", 0), ("n0", "c0", "hello", 0)]


def test_messages_between_servers_take_the_latency():
    rig = Rig(latency_ms=10)
    rig.net.send_line("n0", rig.line("n0", "n1"))
    rig.net.send_line("n0", rig.line("n0", "lin-kv"))
    assert rig.received == []
    rig.pass_time(10)
    assert {(dest, time) for _, dest, _, time in rig.received} == {
        ("n1", 10 * MS),
        ("lin-kv", 10 * MS),
    }


def test_a_message_without_latency_arrives_in_the_same_turn():
    rig = Rig()
    rig.net.send_line("n0", rig.line("n0", "n1"))
    assert rig.received == [("n0", "n1", "hello", 0)]


def test_a_partition_drops_at_the_receiver_and_only_between_those_named():
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


def test_a_partition_that_begins_while_a_message_flies_drops_it():
    rig = Rig(latency_ms=10)
    rig.net.send("n0", "n1", {"type": "x"})
    rig.net.partition({"n1": {"n0"}})
    rig.pass_time(20)
    assert rig.received == []
    assert [event["type"] for event in rig.events()] == ["send"]


def test_traffic_counts_clients_and_servers():
    rig = Rig()
    rig.net.send("c0", "n0", {"type": "init"})
    rig.net.send("n0", "n1", {"type": "x"})
    rig.net.partition({"n1": {"n0"}})
    rig.net.send("n0", "n1", {"type": "x"})
    assert (rig.net.clients.sent, rig.net.clients.received) == (1, 1)
    assert (rig.net.servers.sent, rig.net.servers.received) == (2, 1)


def test_the_journal_has_the_nodes_own_bytes_with_an_id():
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


def test_a_nodes_own_id_is_replaced():
    rig = Rig()
    rig.net.send("c0", "n0", {"type": "x"})
    rig.net.send_line("n0", rig.line("n0", "n1", id=77))
    assert [event["message"]["id"] for event in rig.events()] == [0, 0, 1, 1]


def test_leading_white_space_is_no_error():
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
def test_a_line_that_is_no_message_is_reported_with_node_and_line(line, part):
    rig = Rig()
    with pytest.raises(RunFailure) as caught:
        rig.net.send_line("n0", line)
    report = str(caught.value)
    assert part in report
    assert "Node n0" in report
    assert line.decode(errors="replace") in report
    assert rig.received == []


def test_a_lenient_network_drops_and_counts_what_is_no_message():
    rig = Rig(lenient=True)
    rig.net.send_line("n0", b"Starting up")
    rig.net.send_line("n0", rig.line("n0", "n7"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    assert [dest for _, dest, _, _ in rig.received] == ["n1"]
    assert rig.net.hearing.dropped == {"n0": 2}


def test_a_message_with_a_wrong_name_mutes_its_node_alone():
    rig = Rig()
    rig.net.leave("c0", Departure(0))
    rig.net.send_line("n0", rig.line("n0", "c0"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    rig.net.send_line("n0", b"no message")
    assert rig.received == rig.events() == []
    rig.net.send_line("n1", rig.line("n1", "n0"))
    assert rig.received == [("n1", "n0", "hello", 0)]


def test_a_mute_node_that_is_started_again_is_heard():
    rig = Rig()
    rig.net.send_line("n0", rig.line("n0", "n7"))
    rig.net.remove("n0")
    rig.net.add("n0", rig.collector("n0"))
    rig.net.send_line("n0", rig.line("n0", "n1"))
    assert rig.received == [("n0", "n1", "hello", 0)]


def test_a_message_to_a_node_that_is_down_is_lost_and_mutes_nobody():
    rig = Rig()
    rig.net.remove("n1")
    rig.net.send_line("n0", rig.line("n0", "n1"))
    rig.net.send_line("n0", rig.line("n0", "c0"))
    assert rig.received == [("n0", "c0", "hello", 0)]
    assert [event["type"] for event in rig.events()] == ["send", "send", "recv"]


@pytest.mark.parametrize("mean_ms", [0, 1, 10])
def test_latency_distributions(mean_ms):
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
