"""How fresh the answer to a hand-over is: it tells when the peer looked at the store, not when it answered."""

from typing import Any

from simulation.nodes import LINEARIZABLE
from simulation.stepped import Flying, SteppedCluster

BATCH = {
    "type": "hand_over",
    "slot": 0,
    "writer": "n0.i1/0",
    "seq": 1,
    "epoch": 0,
    "appends": {"k": [1]},
    "commits": {},
}


def answers(sent: list[Flying]) -> list[dict[str, Any]]:
    return [message.body for message in sent if message.body["type"] == "hand_over_ok"]


def test_a_batch_is_held_until_the_peer_asked_the_store_not_until_it_answers() -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless", LINEARIZABLE)
    cluster.ask("n1", {"type": "poll", "offsets": {"k": 0}})
    sent = cluster.forge("n0", "n1", {**BATCH, "msg_id": 7}) + cluster.pass_time(0.1)
    [cas] = [message for message in sent if message.body["type"] == "cas"]
    cluster.pass_time(0.3)  # the call to the store takes so long, and its answer as long again
    [reply] = [message for message in cluster.deliver(cas.number) if message.dest == "n1"]
    cluster.pass_time(0.3)
    [answer] = answers(cluster.deliver(reply.number))
    assert 0 <= answer["held_s"] < 0.1


def test_what_a_peer_looked_at_before_it_was_asked_counts_from_then() -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless", LINEARIZABLE)
    cluster.ask("n1", {"type": "poll", "offsets": {"k": 0}})
    cluster.forge("n0", "n1", {**BATCH, "msg_id": 7})
    cluster.run(0.2, 0.01)
    cluster.pass_time(1.0)
    again = cluster.forge("n0", "n1", {**BATCH, "msg_id": 8}) + cluster.pass_time(0.1)
    [answer] = answers(again)
    assert answer["held_s"] < -1.0
