"""Promises of the leaderless strategy that no single part keeps: it needs no peer, and bounds what waits."""

from dataclasses import replace
from typing import Any

import pytest

from leaderless.core.headlog.pending import SEND_BYTES
from leaderless.core.limits import Limits
from leaderless.core.strategy import Options
from simulation.scenario import Scenario
from tests.simulation.counting import counted
from tests.stepped import SteppedCluster
from tests.toy_log import run_of

DEFERRED = Options(freshness_s=0.0, durable_commits=False)
COMMITS_IDLE_S = Limits().commits_idle_s
pytestmark = pytest.mark.usefixtures("garbage_collected")
BUSY = Scenario(
    seed=5, nodes=4, clients=4, rate=400.0, time_limit_s=2.0, latency_ms=5, freshness_ms=0.0
)


def test_without_combining_nobody_is_asked_and_everything_commits() -> None:
    _, counts = counted(replace(BUSY, combine=False))
    assert counts["hand_over"] == 0
    assert counts["send_ok"] > 100


def test_combining_saves_calls_of_the_store_under_contention() -> None:
    alone, together = (counted(replace(BUSY, combine=combine))[1] for combine in (False, True))
    assert together["hand_over"] > 20
    assert together["cas"] + together["read"] < 0.8 * (alone["cas"] + alone["read"])


def test_silent_peers_hold_nobody_up() -> None:
    """Nodes never hear from each other: every send still commits through the store."""

    cluster = SteppedCluster(["n0", "n1", "n2"], "leaderless")
    for number in range(30):
        cluster.request("c1", f"n{number % 3}", {"type": "send", "key": "k", "msg": number})
    for _ in range(400):
        cluster.pass_time(0.02)
        while cluster.flying:
            number, src, dest, _ = next(iter(cluster.flying.values()))
            (cluster.deliver if "lin-kv" in (src, dest) else cluster.drop)(number)
    offsets = [m.body["offset"] for m in cluster.to_clients if m.body["type"] == "send_ok"]
    assert sorted(offsets) == list(range(30))


def answers(cluster: SteppedCluster, node: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a node answers, everything delivered."""
    cluster.request("c1", node, body)
    cluster.run(0.05, every_s=0.005)
    return cluster.to_clients[-1].body


def test_a_key_nobody_wrote_is_left_out() -> None:
    cluster = SteppedCluster(["n0"], "leaderless")
    assert answers(cluster, "n0", {"type": "poll", "offsets": {"k": 0}})["msgs"] == {}
    listed = answers(cluster, "n0", {"type": "list_committed_offsets", "keys": ["k"]})
    assert listed["offsets"] == {}


def test_the_highest_committed_offset_is_listed_wherever_it_is_known_from() -> None:
    """n1 asks for 3 and has not written it yet, when it learns of n0's 7."""
    cluster = SteppedCluster(["n0", "n1"], "leaderless", DEFERRED._replace(combine=False))
    answers(cluster, "n1", {"type": "poll", "offsets": {"k": 0}})
    answers(cluster, "n0", {"type": "commit_offsets", "offsets": {"k": 7}})
    answers(cluster, "n0", {"type": "send", "key": "k", "msg": 1})
    answers(cluster, "n1", {"type": "commit_offsets", "offsets": {"k": 3}})
    listed = answers(cluster, "n1", {"type": "list_committed_offsets", "keys": ["k"]})
    assert listed["offsets"] == {"k": 7}


def test_a_poll_for_no_key_asks_nobody() -> None:
    cluster = SteppedCluster(["n0"], "leaderless")
    cluster.request("c1", "n0", {"type": "poll", "offsets": {}})
    assert [message.body["type"] for message in cluster.to_clients][-1] == "poll_ok"
    assert not cluster.flying


def test_a_repeated_commit_costs_nothing() -> None:
    cluster = SteppedCluster(["n0"], "leaderless", DEFERRED)
    answers(cluster, "n0", {"type": "poll", "offsets": {}})
    for _ in range(3):
        answers(cluster, "n0", {"type": "commit_offsets", "offsets": {"k": 7}})
        cluster.pass_time(COMMITS_IDLE_S)
        cluster.settle()
    assert cluster.store.registers["head"]["version"] == 1


@pytest.mark.parametrize("meanwhile", ["fenced", "silent"])
def test_committed_offsets_outlive_what_keeps_them_from_the_log(meanwhile: str) -> None:
    """No send follows that they could ride with: they are tried again on their own."""
    cluster = SteppedCluster(["n0", "n1"], "leaderless", DEFERRED)
    answers(cluster, "n0", {"type": "send", "key": "k", "msg": 1})
    answers(cluster, "n0", {"type": "commit_offsets", "offsets": {"k": 0}})
    if meanwhile == "fenced":
        answers(cluster, "n1", {"type": "fence"})
    for _ in range(10):  # nothing that n0 asks for arrives, or it is refused
        cluster.pass_time(COMMITS_IDLE_S / 2)
        if meanwhile == "fenced":
            cluster.settle()
        cluster.flying.clear()
    answers(cluster, "n1", {"type": "unfence"})
    for _ in range(10):
        cluster.pass_time(COMMITS_IDLE_S / 2)
        cluster.settle()
    listed = answers(cluster, "n1", {"type": "list_committed_offsets", "keys": ["k"]})
    assert listed["offsets"] == {"k": 0}


def test_two_groups_that_cannot_hand_over_take_turns_at_the_store() -> None:
    """One node is cut off from four. Its commits in a row, each with a look at the head beside it, went
    uncounted, so it never rested: all the others waited for the partition to end, 3.3 s with this seed.
    """
    cut_off = run_of(
        "leaderless",
        nodes=tuple(f"n{number}" for number in range(5)),
        concurrency=10,
        rate=1000.0,
        latency_ms=10,
        time_limit_s=4,
        nemesis=("partition",),
        nemesis_interval_s=4,
        seed="5",
    )
    asked_ns: dict[Any, int] = {}
    waits_ns = []
    for op in cut_off.history:
        if op.type == "invoke":
            asked_ns[op.process] = op.time
        elif op.f == "send":
            waits_ns.append(op.time - asked_ns[op.process])
    assert max(waits_ns) < 1e9


@pytest.mark.parametrize(("first", "then", "epochs"), [("fence", "unfence", [1, 2, 2, 3])])
def test_fencing_twice_is_fencing_once(first: str, then: str, epochs: list[int]) -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless")
    told = [answers(cluster, "n0", {"type": first})["epoch"]]
    told += [answers(cluster, node, {"type": then})["epoch"] for node in ("n1", "n0")]
    told += [answers(cluster, "n1", {"type": first})["epoch"]]
    assert told == epochs


def test_too_much_that_waits_is_refused_for_certain() -> None:
    """The store is silent; memory is bounded. What is refused is in no batch."""
    options = Options(freshness_s=0.0, limits=Limits(waiting_bytes=1_000))
    cluster = SteppedCluster(["n0"], "leaderless", options)
    for number in range(40):
        body = {"type": "send", "key": "k", "msg": f"{number}" + "x" * 100}
        cluster.request("c1", "n0", body)
    refused = [m.body for m in cluster.to_clients if m.body["type"] == "error"]
    assert refused
    assert {body["code"] for body in refused} == {11}


def test_small_sends_that_wait_count_by_the_memory_that_they_take() -> None:
    """They counted as 8 bytes and took 357, so a node with 64 MiB for them grew to 3 GB."""
    options = Options(freshness_s=0.0, limits=Limits(waiting_bytes=100_000))
    cluster = SteppedCluster(["n0"], "leaderless", options)
    for number in range(1_000):
        cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": number})
    refused = sum(each.body["type"] == "error" for each in cluster.to_clients)
    assert 0 < 1_000 - refused <= 100_000 / SEND_BYTES + 1


def test_a_silent_store_is_no_certain_failure() -> None:
    cluster = SteppedCluster(["n0"], "leaderless")
    cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": 1})
    for _ in range(6):
        cluster.pass_time(1.0)
        for number in [*cluster.flying]:
            cluster.drop(number)
    assert [m.body.get("code") for m in cluster.to_clients if m.body["type"] != "init_ok"] == [0]
