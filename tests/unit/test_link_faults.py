"""Loss, duplication and slowness of messages between servers."""

import io
from collections import Counter
from random import Random

import orjson
import pytest

from bench.loop import VirtualLoop
from bench.nemesis.link_faults import LinkFault, LinkFaults
from bench.net import Network
from runs.journal import Journal

MS = 1_000_000
NAMES = ("n0", "n1", "n2", "lin-kv", "c0")
N0 = frozenset(["n0"])


class Rig:
    """A network of three nodes, a service and a client; what each received, by link, with times in ms."""

    def __init__(self, latency_ms=5, has_latency=True, **in_force):
        self.loop = VirtualLoop()
        self.file = io.BytesIO()
        self.journal = Journal(self.file)
        self.net = Network(self.loop, self.journal, lambda: latency_ms * MS)
        faults = LinkFaults(("n0", "n1", "n2"), has_latency, Random(1))
        faults.in_force.update(in_force)
        self.net.copies_ns = faults.delays_ns
        self.received = {}
        for name in NAMES:
            self.net.add(name, self.collector(name))

    def collector(self, name):
        def deliver(src, _body, _wire):
            self.received.setdefault((src, name), []).append(self.loop.now_ns() // MS)

        return deliver

    def send(self, src, dest, times=1):
        """Send so many messages at once; the times at which copies arrived."""
        start_ms = self.loop.now_ns() // MS
        for _ in range(times):
            self.net.send(src, dest, {"type": "hello"})
        over = []
        self.loop.call_at(self.loop.now_ns() + 10_000 * MS, over.append, True)
        self.loop.run_until(lambda: bool(over))
        return [at - start_ms for at in self.received.pop((src, dest), [])]


def test_without_a_fault_nothing_changes():
    assert Rig().send("n0", "n1", 3) == [5, 5, 5]


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
def test_loss_is_on_every_link_of_its_nodes_but_those_to_clients(src, dest, arrive):
    rig = Rig(loss=LinkFault(N0, 1.0))
    assert len(rig.send(src, dest)) == arrive
    rig.journal.flush()
    kinds = Counter(orjson.loads(line)["type"] for line in rig.file.getvalue().splitlines())
    assert kinds == Counter(send=1, recv=arrive)


@pytest.mark.parametrize(
    ("src", "dest", "arrive"),
    [("n0", "n1", 2), ("n1", "n0", 2), ("lin-kv", "n0", 2), ("n0", "lin-kv", 1), ("n1", "n2", 1)],
)
def test_a_request_to_a_service_is_never_doubled(src, dest, arrive):
    assert len(Rig(duplicate=LinkFault(N0, 1.0)).send(src, dest)) == arrive


def test_a_copy_comes_after_the_first_and_within_two_seconds():
    times = Rig(duplicate=LinkFault(N0, 1.0)).send("n0", "n1", 200)
    copies = sorted(times)[200:]
    assert times.count(5) >= 200
    assert copies[0] >= 5
    assert 1_500 < copies[-1] <= 2_005
    assert copies[100] < 500  # most of them soon


def test_a_copy_has_the_number_of_its_message():
    rig = Rig(duplicate=LinkFault(N0, 1.0))
    rig.send("n0", "n1")
    rig.journal.flush()
    lines = [orjson.loads(line) for line in rig.file.getvalue().splitlines()]
    assert [(line["type"], line["message"]["id"]) for line in lines] == [
        ("send", 0),
        ("recv", 0),
        ("recv", 0),
    ]


def test_a_share_is_a_share():
    assert 60 < len(Rig(loss=LinkFault(N0, 0.2)).send("n0", "n1", 100)) < 95
    assert 105 < len(Rig(duplicate=LinkFault(N0, 0.2)).send("n0", "n1", 100)) < 140


def test_slow_multiplies_the_latency_of_its_nodes():
    rig = Rig(slow=LinkFault(N0, 10))
    assert rig.send("n0", "n1") == [50]
    assert rig.send("n1", "n2") == [5]
    assert rig.send("c0", "n0") == [0]


def test_slow_takes_no_latency_for_one_millisecond():
    assert Rig(latency_ms=0, has_latency=False, slow=LinkFault(N0, 10)).send("n0", "n1") == [10]


def test_they_come_together():
    rig = Rig(
        slow=LinkFault(N0, 2), duplicate=LinkFault(N0, 1.0), loss=LinkFault(frozenset(["n1"]), 1.0)
    )
    assert rig.send("n0", "n1") == []
    assert rig.send("n0", "n2")[0] == 10
    assert len(rig.send("n2", "n0")) == 2
