"""Fencing under any schedule: refused for certain means never appended, and no epoch lets an old batch in.

Messages arrive in any order, twice, late or never; nodes fence, open and send at the same time. The oracle of
the simulation watches the store and all answers; it knows the invariants by their names.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.oracle import Asked, Oracle
from tests.cluster import Cluster, Flying
from tests.fakes import Body, LinKv

NODES = ["n0", "n1", "n2"]
ACTS = st.tuples(
    st.sampled_from(
        ["send"] * 4 + ["fence", "unfence", "wait", "drop", "copy", "poll"] + ["deliver"] * 12
    ),
    st.integers(0, 11),
)


class Watched(LinKv):
    """A store that shows the oracle what changes."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__()
        self._oracle = oracle

    def handle(self, body: Body) -> Body:
        old = self.registers.get(body["key"])
        reply = super().handle(body)
        new = self.registers.get(body["key"])
        if new is not old:
            self._oracle.changed(body["key"], old, new, 0.0)
        return reply


class Run:
    """A cluster, and what the oracle says of it."""

    def __init__(self) -> None:
        self.oracle = Oracle(freshness_s=float("inf"))
        self.cluster = Cluster(NODES, "leaderless")
        self.cluster.store = Watched(self.oracle)
        self._asked: dict[int, Asked] = {}
        self._told = len(self.cluster.to_clients)
        self.answers: list[tuple[Body, Body]] = []

    @property
    def head(self) -> dict[str, Any]:
        head: dict[str, Any] = self.cluster.store.registers["head"]
        return head

    def act(self, kind: str, which: int) -> None:
        """One thing happens; `which` names a node or a message in flight."""
        cluster, node = self.cluster, NODES[which % 3]
        flying = [*cluster.flying]
        match kind:
            case "send":
                number = cluster.last_msg_id
                self.ask(node, {"type": "send", "key": f"k{number % 2}", "msg": number})
            case "poll":
                self.ask(node, {"type": "poll", "offsets": {"k0": 0, "k1": 0}})
            case "fence" | "unfence":
                self.ask(node, {"type": kind})
            case "wait":
                cluster.pass_time(0.2 * (1 + which % 6))
            case _ if flying:
                getattr(cluster, kind)(flying[which % len(flying)])
        self._hear()

    def ask(self, node: str, body: Body) -> None:
        """A client asks."""
        self.oracle.asked(body)
        self._asked[self.cluster.last_msg_id + 1] = Asked(node, body, 0.0)
        self.cluster.request("c1", node, body)
        self._hear()

    def finish(self) -> None:
        """Deliver everything until every request is answered, and nothing is late any more."""
        for _ in range(200):
            self.cluster.settle(100_000)
            self._hear()
            if not self._asked:
                return
            self.cluster.pass_time(0.2)
        raise AssertionError(f"unanswered: {self._asked}")

    def _hear(self) -> None:
        told: list[Flying] = self.cluster.to_clients[self._told :]
        self._told += len(told)
        for reply in told:
            asked = self._asked.pop(reply.body["in_reply_to"])
            self.oracle.answered(asked, reply.body)
            self.answers.append((asked.body, reply.body))


@settings(max_examples=150)
@given(st.lists(ACTS, min_size=30, max_size=120))
def test_any_schedule(acts: list[tuple[str, int]]) -> None:
    run = Run()
    for kind, which in acts:
        run.act(kind, which)
    run.finish()
    run.ask("n0", {"type": "unfence"})
    run.finish()
    for node in NODES:
        run.ask(node, {"type": "send", "key": "last", "msg": node})
    run.finish()
    assert [reply["type"] for _, reply in run.answers[-3:]] == ["send_ok"] * 3
    for node in NODES:
        run.ask(node, {"type": "poll", "offsets": dict.fromkeys(run.oracle.messages, 0)})
        run.finish()
        polled = {key: [msg for _, msg in run_] for key, run_ in run.answers[-1][1]["msgs"].items()}
        assert polled == run.oracle.messages


@given(st.lists(st.integers(0, 5), max_size=20), st.booleans())
def test_two_fences_at_once_are_one(order: list[int], used: bool) -> None:
    run = Run()
    if used:  # a log that has a head already
        run.act("send", 0)
        run.finish()
    for node in NODES[:2]:
        run.ask(node, {"type": "fence"})
    for which in order:
        run.act("deliver", which)
    run.finish()
    assert [reply for _, reply in run.answers[-2:]] == [
        {"type": "fence_ok", "epoch": 1, "in_reply_to": reply["in_reply_to"]}
        for _, reply in run.answers[-2:]
    ]
    assert (run.head["state"], run.head["epoch"]) == ("fenced", 1)


@pytest.mark.parametrize("node", NODES)
def test_a_fenced_log_is_read_and_refuses(node: str) -> None:
    run = Run()
    run.act("send", 0)
    run.finish()
    run.ask("n1", {"type": "fence"})
    run.finish()
    run.ask(node, {"type": "send", "key": "k0", "msg": "refused"})
    run.ask(node, {"type": "poll", "offsets": {"k0": 0, "k1": 0}})
    run.ask(node, {"type": "fence"})  # again: nothing changes
    run.finish()
    replies = {asked["type"]: reply for asked, reply in run.answers[-3:]}
    assert replies["send"]["code"] == 11
    assert sum(map(len, replies["poll"]["msgs"].values())) == 1
    assert replies["fence"]["epoch"] == run.head["epoch"] == 1
    run.ask(node, {"type": "unfence"})
    run.finish()
    assert (run.head["state"], run.head["epoch"]) == ("open", 2)


@pytest.mark.parametrize("again", [False, True], ids=["fenced", "open again"])
@pytest.mark.parametrize("knows", [False, True], ids=["who has not heard", "who has"])
def test_a_batch_of_an_old_epoch_that_is_handed_over_late_stays_out(
    again: bool, knows: bool
) -> None:
    run = Run()
    run.act("send", 0)
    run.finish()
    for kind in ("fence", "unfence")[: 1 + again]:
        run.ask("n1", {"type": kind})
        run.finish()
    batch: Body = {"writer": "n2.old/0", "seq": 1, "epoch": 0, "appends": {"k0": ["old"]}}
    node = "n1" if knows else "n0"
    before = run.head["tail"]
    run.cluster.request("n2", node, {"type": "hand_over", "slot": 0, "commits": {}, **batch})
    for _ in range(20):
        run.cluster.settle()
        run.cluster.pass_time(0.2)
    assert run.head["tail"] == before
