"""Fencing under any schedule: refused for certain means never appended, and no epoch lets an old batch in.

Messages arrive in any order, twice, late or never; nodes fence, open and send at the same time. The oracle of
the simulation watches the store and all answers; it knows the invariants by their names.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.core.limits import Limits
from simulation.headlog import HeadLogOracle
from simulation.oracle import Body, Promises
from tests.stepped import SteppedCluster

NODES = ["n0", "n1", "n2"]
KEYS = ["k0", "k1"]
# A fence goes on for its client's patience, and a call.
FENCED_LATE_S = 2 * Limits().client_patience_s
ACTS = st.tuples(
    st.sampled_from(
        ["send"] * 4 + ["fence", "unfence", "wait", "drop", "copy", "poll"] + ["deliver"] * 12
    ),
    st.integers(0, 11),
)


class Fenced(SteppedCluster):
    """Three nodes of a log that is fenced and opened, and judged at every step."""

    def __init__(self) -> None:
        self.oracle = HeadLogOracle(Promises())
        super().__init__(NODES, "leaderless", oracle=self.oracle)

    @property
    def head(self) -> dict[str, Any]:
        head: dict[str, Any] = self.store.registers["head"]
        return head

    def act(self, kind: str, which: int) -> None:
        """One thing happens; `which` names a node or a message in flight."""
        node, flying = NODES[which % 3], [*self.flying]
        match kind:
            case "send":
                number = self.last_msg_id
                self.request("c1", node, {"type": "send", "key": KEYS[number % 2], "msg": number})
            case "poll":
                self.request("c1", node, {"type": "poll", "offsets": dict.fromkeys(KEYS, 0)})
            case "fence" | "unfence":
                self.request("c1", node, {"type": kind})
            case "wait":
                self.pass_time(0.2 * (1 + which % 6))
            case _ if flying:
                getattr(self, kind)(flying[which % len(flying)])


@pytest.mark.simulation
@settings(max_examples=150)
@given(st.lists(ACTS, min_size=30, max_size=120))
def test_any_schedule(acts: list[tuple[str, int]]) -> None:
    log = Fenced()
    for kind, which in acts:
        log.act(kind, which)
    log.finish()
    log.pass_time(FENCED_LATE_S)
    log.finish()
    log.ask("n0", {"type": "unfence"})
    log.converge(KEYS)
    for node in NODES:
        msgs = log.ask(node, {"type": "poll", "offsets": dict.fromkeys(log.oracle.messages, 0)})[
            "msgs"
        ]
        assert {
            key: [msg for _, msg in pairs] for key, pairs in msgs.items()
        } == log.oracle.messages


@given(st.lists(st.integers(0, 5), max_size=20), st.booleans())
def test_two_fences_at_once_are_one(order: list[int], used: bool) -> None:
    log = Fenced()
    if used:  # a log that has a head already
        log.act("send", 0)
        log.finish()
    for node in NODES[:2]:
        log.request("c1", node, {"type": "fence"})
    asked = log.last_msg_id
    for which in order:
        log.act("deliver", which)
    log.finish()
    answers = [log.answers[msg_id] for msg_id in (asked - 1, asked)]
    assert [(each["type"], each["epoch"]) for each in answers] == [("fence_ok", 1)] * 2
    assert (log.head["state"], log.head["epoch"]) == ("fenced", 1)


@pytest.mark.parametrize("again", [False, True], ids=["fenced", "open again"])
@pytest.mark.parametrize("knows", [False, True], ids=["who has not heard", "who has"])
def test_a_batch_of_an_old_epoch_that_is_handed_over_late_stays_out(
    again: bool, knows: bool
) -> None:
    log = Fenced()
    log.act("send", 0)
    log.finish()
    for kind in ("fence", "unfence")[: 1 + again]:
        log.ask("n1", {"type": kind})
    batch: Body = {"writer": "n2.old/0", "seq": 1, "epoch": 0, "appends": {"k0": ["old"]}}
    node = "n1" if knows else "n0"
    before = log.head["entries"]
    log.request("n2", node, {"type": "hand_over", "slot": 0, "commits": {}, **batch})
    log.run(4.0, every_s=0.2)
    assert log.head["entries"] == before
