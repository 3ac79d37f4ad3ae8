"""A run's nodes: initialised at the start and after a restart, gone from the network while killed."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from bench.cluster import Cluster
from bench.loop import VirtualLoop
from bench.net import Network
from bench.worker import client_names
from runs.writing import Journal
from tests.passing import pass_until

SECOND = 1_000_000_000


class FakeHost:
    """Answers `init` after `think_s` unless it is paused meanwhile; notes everything."""

    def __init__(self, name: str, rig: "Rig", think_s: float) -> None:
        self.name, self.rig, self.think_s = name, rig, think_s
        self.did: list[Any] = []
        self.inbox: list[Any] = []
        self.paused, self.life = False, 0

    def deliver(self, message: bytes) -> None:
        self.inbox.append(message)
        if b'"init"' in message:
            self.rig.later(self.think_s, self.answer, self.life)

    def answer(self, life: int) -> None:
        if life != self.life:
            return
        if self.paused:
            self.rig.later(1, self.answer, life)
            return
        client = f"c{self.rig.inits - 1}"
        line = '{"src":"%s","dest":"%s","body":{"type":"init_ok","in_reply_to":1}}'
        self.rig.network.send_line(self.name, (line % (self.name, client)).encode())

    def start(self) -> None:
        self.did.append("start")

    def kill(self) -> None:
        self.did.append("kill")
        self.life += 1

    def restart(self) -> None:
        self.did.append("restart")
        self.paused = False

    def pause(self) -> None:
        self.did.append("pause")
        self.paused = True

    def resume(self) -> None:
        self.did.append("resume")
        self.paused = False

    def postmortem(self) -> str:
        return "a fake"


class Rig:
    def __init__(self, think_s: float = 0.5) -> None:
        self.loop = VirtualLoop()
        self.network = Network(self.loop, Journal(io.BytesIO()), lambda: 0)
        self.failures: list[Any] = []
        self.network.add("lin-kv", lambda *_: None)
        fail = self.failures.append
        self.cluster = Cluster(
            ("n0", "n1"), self.loop, self.network, client_names(), fail, self.make
        )
        self.hosts: list[Any] = [FakeHost(name, self, think_s) for name in ("n0", "n1")]
        self.n0, self.n1 = self.hosts
        self.inits = 0

    def make(self, name: str) -> Any:
        self.hosts.append(FakeHost(name, self, 0.5))
        self.inits += 1
        return self.hosts[-1]

    def later(self, wait_s: float, function: Callable[..., Any], *arguments: int) -> None:
        self.loop.call_at(self.loop.now_ns() + int(wait_s * SECOND), function, *arguments)

    def connect(self) -> None:
        """One node only, so that it is clear whose init is whose."""
        self.inits += 1
        self.cluster.start([self.n0], lambda: 0)
        self.run(0)

    def restart(self) -> None:
        self.inits += 1
        self.cluster.restart("n0")

    def run(self, seconds: float) -> None:
        pass_until(self.loop, self.loop.now_ns() + int(seconds * SECOND))


@pytest.fixture
def rig() -> Rig:
    made = Rig()
    made.connect()
    return made


def test_nodes_serve_once_they_have_answered_init(rig: Rig) -> None:
    assert not rig.cluster.ready
    assert "n0" not in rig.cluster.serving
    rig.run(1)
    assert rig.cluster.ready
    assert "n0" in rig.cluster.serving
    assert not rig.failures


def test_what_is_sent_to_a_killed_node_is_lost(rig: Rig) -> None:
    rig.run(1)
    rig.cluster.kill("n0")
    before = list(rig.n0.inbox)
    received = rig.network.servers.received
    rig.network.send("lin-kv", "n0", {"type": "read_ok"})
    assert rig.n0.inbox == before
    assert rig.network.servers.received == received
    assert rig.cluster.killed == ["n0"]
    assert rig.cluster.serving == ["n1"]


def test_a_restarted_node_is_initialised_again_by_another_client(rig: Rig) -> None:
    rig.run(1)
    rig.cluster.kill("n0")
    rig.restart()
    assert not rig.cluster.ready
    assert rig.n0.inbox[-1].startswith(b'{"id":2,"src":"c1","dest":"n0","body":{"type":"init"')
    rig.run(1)
    assert rig.cluster.ready
    assert rig.n0.did == ["start", "kill", "restart"]


@pytest.mark.parametrize(
    ("think_s", "steps", "outcome"),
    [
        (0.5, ["kill", 20.0], "ready"),  # a node that is killed is not waited for
        (11, [10.5], "failed"),
        # One that is paused in its init has ten seconds after that.
        (9, [5.0, "pause", 30.0, "resume", 5.0], "ready"),
        (90, ["pause", 30.0, "resume", 9.0], "waiting"),
        (90, ["pause", 30.0, "resume", 21.0], "failed"),
    ],
)
def test_a_node_without_an_answer_to_init_within_ten_seconds_ends_the_run(
    think_s: float, steps: list[Any], outcome: str
) -> None:
    rig = Rig(think_s)
    rig.connect()
    for step in steps:
        act: Any = rig.run if isinstance(step, float) else getattr(rig.cluster, step)
        act(step if isinstance(step, float) else "n0")
    assert rig.cluster.ready is (outcome == "ready")
    said = "Node n0 did not answer its init message within 10 s: a fake"
    assert [str(each).partition("\n")[0] for each in rig.failures] == [said] * (outcome == "failed")


def test_a_killed_node_is_not_paused_any_more(rig: Rig) -> None:
    rig.run(1)
    rig.cluster.pause("n0")
    assert rig.cluster.paused == ["n0"]
    rig.cluster.kill("n0")
    assert rig.cluster.paused == []


def test_a_new_node_joins_in_the_place_of_one_that_left(rig: Rig) -> None:
    rig.run(1)
    cluster = rig.cluster
    assert cluster.leave("n0") == "n2"
    assert (cluster.members, cluster.at(0), cluster.at(1)) == (["n1"], "n1", "n1")
    assert rig.n0.did == ["start", "kill"]
    assert cluster.killed == []  # or `kill` would start it again
    assert cluster.join() == ["n2"]
    assert (cluster.members, cluster.at(0), cluster.at(1)) == (["n2", "n1"], "n2", "n1")
    assert b'"node_id":"n2","node_ids":["n2","n1"]' in rig.hosts[-1].inbox[0]
    assert not cluster.ready
    rig.run(1)
    assert cluster.ready
    assert cluster.join() == []
    assert not rig.failures


def test_what_is_sent_to_a_node_that_left_is_lost_and_mutes_nobody(rig: Rig) -> None:
    rig.run(1)
    rig.cluster.leave("n0")
    rig.cluster.join()
    rig.run(1)
    rig.network.send_line("n2", b'{"src":"n2","dest":"n0","body":{"type":"gossip"}}')
    assert not rig.network.hearing.mute


@pytest.mark.parametrize("nodes", [("n1", "n2"), ("a", "n2")])
def test_no_two_nodes_ever_have_the_same_name(rig: Rig, nodes: tuple[str, ...]) -> None:
    cluster = Cluster(nodes, rig.loop, rig.network, lambda: "c99", rig.failures.append, rig.make)
    hosts: list[Any] = [FakeHost(name, rig, 99) for name in nodes]
    cluster.start(hosts, lambda: 0)
    assert cluster.leave(nodes[0]) == "n3"
    cluster.join()
    assert cluster.leave("n3") == "n4"
