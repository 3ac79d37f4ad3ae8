"""Who is asked to commit, how long a silent peer is left alone, and how fresh a hand-over's answer is."""

from typing import Any

import pytest

from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.strategies.leaderless import LeaderlessLog
from simulation.nodes import LINEARIZABLE, StrategyMaker
from tests.stepped import Flying, SteppedCluster

PEER = "n1"


def contended(strategy: str | StrategyMaker = "leaderless") -> SteppedCluster:
    """n0 knows that n1 commits often, and its own view is old: it hands its next batch over."""
    cluster = SteppedCluster(["n0", "n1", "n2"], strategy)
    ask(cluster, "n0", {"type": "poll", "offsets": {"other": 0}})
    contend(cluster)
    return cluster


def contend(cluster: SteppedCluster) -> None:
    for number in range(4):
        ask(cluster, PEER, {"type": "send", "key": "other", "msg": number})
        cluster.pass_time(0.05)
    ask(cluster, "n0", {"type": "poll", "offsets": {"other": 0}})
    cluster.pass_time(0.3)


def ask(cluster: SteppedCluster, node: str, body: dict[str, Any]) -> None:
    cluster.request("c1", node, body)
    cluster.run(0.016, every_s=0.002)


def handed_over(cluster: SteppedCluster) -> list[Flying]:
    """Messages under way that hand a batch over."""
    return [m for m in cluster.flying.values() if m.body["type"] == "hand_over"]


def drop(cluster: SteppedCluster, messages: list[Flying]) -> None:
    for message in messages:
        cluster.drop(message.number)


def late_peers(cluster: SteppedCluster) -> Any:
    """Whom n0 suspects."""
    before = len(cluster.to_clients)
    cluster.request("c9", "n0", {"type": "status"})
    [answer] = [m for m in cluster.to_clients[before:] if m.dest == "c9"]
    return answer.body["late_peers"]


def send(cluster: SteppedCluster, msg: Any) -> None:
    cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": msg})
    cluster.pass_time(0.005)


def test_under_contention_the_newest_writer_is_asked() -> None:
    cluster = contended()
    send(cluster, 1)
    assert [message.dest for message in handed_over(cluster)] == [PEER]


def test_without_contention_nobody_is_asked() -> None:
    cluster = contended()
    cluster.pass_time(30.0)
    ask(cluster, "n0", {"type": "poll", "offsets": {"other": 0}})
    send(cluster, 1)
    assert handed_over(cluster) == []
    assert [m.body["type"] for m in cluster.flying.values()] == ["cas"]


def test_the_own_node_is_never_asked() -> None:
    cluster = contended()
    for number in range(5):
        cluster.request("c1", PEER, {"type": "send", "key": "k", "msg": number})
    cluster.pass_time(0.005)
    assert handed_over(cluster) == []


def test_a_batch_that_waits_too_long_goes_to_another_and_then_is_committed_here() -> None:
    """It keeps its name, so it is in the log once, whichever copy comes first."""
    cluster = contended()
    ask(cluster, "n2", {"type": "send", "key": "other", "msg": 9})
    ask(cluster, "n0", {"type": "poll", "offsets": {"other": 0}})  # n0 knows of another peer to ask
    contend(cluster)
    send(cluster, 1)
    (first,) = handed_over(cluster)
    cluster.pass_time(1.0)
    second = handed_over(cluster)[-1]
    assert {first.dest, second.dest} == {PEER, "n2"}
    assert first.body["appends"] == second.body["appends"] == {"k": [1]}
    assert (first.body["writer"], first.body["seq"]) == (second.body["writer"], second.body["seq"])
    cluster.pass_time(1.0)
    assert "cas" in {m.body["type"] for m in cluster.flying.values()}
    cluster.settle()
    logs = [entry[2] for entry in cluster.store.registers["head"]["entries"]]
    assert sum(appends.get("k", [0, []])[1] == [1] for appends in logs) == 1


def test_nothing_waits_for_a_suspect_until_it_answers() -> None:
    cluster = contended()
    send(cluster, 1)
    drop(cluster, handed_over(cluster))
    cluster.pass_time(1.0)
    assert late_peers(cluster) == [PEER]
    cluster.settle()
    contend(cluster)
    cluster.pass_time(2.0)
    send(cluster, 2)
    (probe,) = handed_over(cluster)
    others = {m.body["type"] for m in cluster.flying.values() if m is not probe}
    assert "cas" in others
    contend(cluster)
    assert [m.number for m in handed_over(cluster)] == []  # delivered: the peer is known to answer
    assert late_peers(cluster) == []


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_silent_peer_costs_one_patience(lost: str) -> None:
    """Either way n0 commits alone, and the batch is in the log once."""
    cluster = contended()
    send(cluster, 1)
    (question,) = handed_over(cluster)
    if lost == "answer":
        cluster.deliver(question.number)
        while not any(m.body["type"] == "hand_over_ok" for m in cluster.flying.values()):
            cluster.pass_time(0.002)
            for message in [*cluster.flying.values()]:
                if message.body["type"] != "hand_over_ok":
                    cluster.deliver(message.number)
    drop(cluster, [*cluster.flying.values()])
    for _ in range(60):
        cluster.pass_time(0.05)
        cluster.settle()
    sent = [m.body for m in cluster.to_clients if m.body["type"] == "send_ok"]
    assert sent[-1]["offset"] == 0
    logs = [entry[2] for entry in cluster.store.registers["head"]["entries"]]
    assert sum(appends.get("k", [0, []])[1] == [1] for appends in logs) == 1


def test_a_batch_whose_answer_was_lost_is_found_in_the_log_that_is_read() -> None:
    """The client need not wait until the batch goes another way, too."""
    cluster = contended()
    send(cluster, 1)
    [question] = handed_over(cluster)
    cluster.deliver(question.number)
    while not (answers := [m for m in cluster.flying.values() if m.body["type"] == "hand_over_ok"]):
        cluster.pass_time(0.001)
        for message in [*cluster.flying.values()]:
            if message.body["type"] != "hand_over_ok":
                cluster.deliver(message.number)
    drop(cluster, answers)
    cluster.request("c2", "n0", {"type": "poll", "offsets": {"k": 0}})
    cluster.settle()
    answered = [m.body for m in cluster.to_clients if m.dest in ("c1", "c2")][-2:]
    assert {body["type"] for body in answered} == {"send_ok", "poll_ok"}


class InManyLanes(CommitPolicy):
    """Begins a batch for each send, and waits as long for each peer."""

    hedge_s = 0.05

    def needs_lane(self, waiting: int) -> bool:
        return waiting > 0


def test_when_one_batch_goes_another_way_all_that_wait_for_that_peer_do() -> None:
    cluster = contended(lambda context: LeaderlessLog(context, InManyLanes))
    send(cluster, 1)
    cluster.pass_time(0.02)
    send(cluster, 2)
    assert [m.dest for m in handed_over(cluster)] == [PEER, PEER]
    cluster.pass_time(0.03)  # the first has waited long enough, the second only half of that
    (attempt,) = [m.body for m in cluster.flying.values() if m.body["type"] == "cas"]
    assert [entry[2]["k"][1] for entry in attempt["to"]["entries"][-2:]] == [[1], [2]]


# ---------------------------------------------------------------- how fresh an answer is


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
