"""How long a store call may take: as long as round trips take, and less and less often while it errs."""

from typing import Any

import orjson
import pytest

from leaderless.core.messages import Cas, Get
from leaderless.core.pace import FAR_S, Pace
from leaderless.core.strategy import Options
from leaderless.core.timeouts import StoreTimeouts
from leaderless.hosting.place import bounds_of
from leaderless.store.memory import MemoryStore
from simulation.judge import simulate
from simulation.scenario import Scenario
from tests.stepped import SteppedCluster


def test_it_follows_what_was_measured_and_is_never_less_than_the_first() -> None:
    timeouts = StoreTimeouts(Pace())
    for _ in range(100):
        timeouts.answered(Get, 0.001)
    assert timeouts.timeout_s == 1.0
    for _ in range(100):
        timeouts.answered(Get, 3.0)
    assert 3.0 < timeouts.timeout_s < 3.5


def test_it_doubles_once_while_the_store_is_silent() -> None:
    timeouts = StoreTimeouts(Pace(store_timeout_s=0.1))
    for _ in range(20):
        timeouts.answered(Get, 0.4)
    measured_s = timeouts.timeout_s
    for _ in range(5):
        timeouts.timed_out(asked_at=0.0, now=1.0)
        assert timeouts.timeout_s == 2 * measured_s
    timeouts.answered(Get, 0.4)
    assert timeouts.timeout_s < measured_s


def test_late_answers_make_it_no_longer_than_its_bound() -> None:
    timeouts = StoreTimeouts(Pace())
    for number in range(40):
        timeouts.answered(Get, 0.001 if number % 4 else 9.0)
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s == Pace().lease_s


@pytest.mark.parametrize("slow_s", [5.0, 16.0, 60.0])
def test_a_slow_call_of_upkeep_does_not_spoil_the_timeout_of_appends(slow_s: float) -> None:
    pace, quick_s = bounds_of(MemoryStore(), 30.0, 1.0).pace, 0.05
    timeouts = StoreTimeouts(pace)
    for _ in range(100):
        timeouts.answered(Cas, quick_s)
    before_s = timeouts.timeout_s
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s == before_s
    timeouts.answered(Cas, slow_s)  # the late answer of the same call
    assert before_s < timeouts.timeout_s <= max(pace.lease_s, slow_s / 4 + 2 * quick_s)
    for _ in range(60):
        timeouts.answered(Cas, quick_s)
    assert timeouts.timeout_s == before_s


def test_a_store_that_is_far_away_has_no_bound() -> None:
    timeouts = StoreTimeouts(Pace())
    for _ in range(40):
        timeouts.answered(Get, 9.0)
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s > 9.0


def test_pauses_after_errors_grow_until_the_same_operation_succeeds() -> None:
    timeouts = StoreTimeouts(Pace())
    pauses = [timeouts.pause_s(Cas) for _ in range(9)]
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    timeouts.answered(Get, 0.1)  # reads go on, which says nothing of writes
    assert timeouts.pause_s(Cas) == 1.0
    timeouts.answered(Cas, 0.1)
    assert timeouts.pause_s(Cas) == 0.01


def test_while_nothing_was_measured_it_is_longer_after_a_loss() -> None:
    timeouts = StoreTimeouts(Pace(store_timeout_s=0.02))
    grown = []
    for number in range(3):
        grown.append(timeouts.timeout_s)
        timeouts.timed_out(asked_at=number, now=number + 0.5)
    assert grown == [0.02, FAR_S, FAR_S]
    for _ in range(10):
        timeouts.answered(Get, 0.1)
    assert 0.1 < timeouts.timeout_s < 0.2


FAR = {"nodes": 3, "latency_ms": 50, "store_timeout_ms": 20.0, "time_limit_s": 1.0}


@pytest.mark.parametrize("strategy", ["cas", "leaderless", "prefetch-sealed"])
def test_a_round_trip_above_the_store_timeout_is_no_obstacle(strategy: str) -> None:
    """Every first call times out. The attempts of one request ended before the first answer came."""
    for seed in range(20):
        report = simulate(Scenario.draw(seed, FAR | {"strategy": strategy}))
        assert report.failures == [], seed


@pytest.mark.parametrize("strategy", ["leader", "prefetch"])
def test_nor_for_a_strategy_with_anomalies_of_its_own(strategy: str) -> None:
    """Its polls skip messages, as its module says, but every node serves."""
    for seed in range(5):
        given = FAR | {"strategy": strategy, "nemesis": ()}
        report = simulate(Scenario.draw(seed, given))
        assert set(report.names) <= {"poll-skip", "int-poll-skip"}, (seed, report.failures)


@pytest.mark.parametrize("code", [11, 21])
@pytest.mark.parametrize("asked", [{"type": "send", "key": "k", "msg": 1}, {"type": "fence"}])
def test_a_store_that_refuses_is_not_asked_as_fast_as_it_answers(
    code: int, asked: dict[str, object]
) -> None:
    """It was 30 000 messages for one send within 6 s, and 190 000 for one fence."""
    cluster = SteppedCluster(["n0"], "leaderless", Options(freshness_s=0.0))
    asked_of_the_store = 0
    cluster.request("c1", "n0", asked)
    for _ in range(600):
        for number in [*cluster.flying]:
            message = cluster.flying[number]
            if message.body.get("type") == "cas":
                asked_of_the_store += 1
                cluster.drop(number)
                body = {"type": "error", "code": code, "in_reply_to": message.body["msg_id"]}
                cluster.raw("n0", _line(body))
            else:
                cluster.deliver(number)
        cluster.pass_time(0.01)
    assert 5 <= asked_of_the_store <= 20
    assert [message.body["code"] for message in cluster.to_clients[-1:]] == [0]


def test_a_batch_that_the_store_refuses_holds_up_no_other() -> None:
    """A store may refuse a large value, as etcd does. 20 small sends behind one got no answer in 20 s."""
    cluster = SteppedCluster(["n0"], "leaderless", Options(freshness_s=0.0))
    for msg in ("x" * 60_000, *range(20)):
        cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": msg})
    for _ in range(400):
        for number in [*cluster.flying]:
            message = cluster.flying[number]
            if len(str(message.body)) > 50_000:
                cluster.drop(number)
                body = {"type": "error", "code": 12, "in_reply_to": message.body["msg_id"]}
                cluster.raw("n0", _line(body))
            elif number in cluster.flying:
                cluster.deliver(number)
        cluster.pass_time(0.01)
        if len(cluster.to_clients) > 20:
            break
    kinds = [message.body["type"] for message in cluster.to_clients]
    assert kinds.count("send_ok") == 20
    cluster.pass_time(5.0)
    assert kinds.count("send_ok") == 20, "the large one is answered by an indefinite error only"


REFUSED_S = 2.0
BODIES: list[dict[str, object]] = [
    {"type": "send", "key": "k", "msg": 1},
    {"type": "poll", "offsets": {"k": 0}},
    {"type": "commit_offsets", "offsets": {"k": 0}},
    {"type": "list_committed_offsets", "keys": ["k"]},
]


class Refusing:
    """A node whose store answers every request at once with an error."""

    def __init__(self, code: int, strategy: str = "leaderless") -> None:
        self.cluster = SteppedCluster(["n0"], strategy, Options(freshness_s=0.0))
        self.code = code
        self.refused = 0

    def run(self, seconds: float, *, refuses: bool = True) -> list[Any]:
        """Let time pass; what clients have heard by then."""
        cluster = self.cluster
        for _ in range(round(seconds / 0.01)):
            for number in [*cluster.flying]:
                if refuses and cluster.flying[number].dest == "lin-kv":
                    message = cluster.flying[number]
                    cluster.drop(number)
                    self.refused += 1
                    reply = {"type": "error", "code": self.code}
                    cluster.raw("n0", _line(reply | {"in_reply_to": message.body["msg_id"]}))
                else:
                    cluster.deliver(number)
            cluster.pass_time(0.01)
        return [message.body for message in cluster.to_clients if message.dest == "c1"]


@pytest.mark.parametrize("strategy", ["cas", "leaderless"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(body["type"]))
def test_a_brief_refusal_costs_latency_and_no_error(body: dict[str, Any], strategy: str) -> None:
    """Three errors, with pauses of 10 and 20 ms, were an indefinite error after less than 0.1 s."""
    store = Refusing(11, strategy)
    store.cluster.request("c1", "n0", body)
    assert store.run(REFUSED_S) == []
    assert store.refused <= 10
    [answer] = store.run(Pace().error_pause_max_s + 0.5, refuses=False)
    assert answer["type"] == f"{body['type']}_ok"


@pytest.mark.parametrize("strategy", ["cas", "leaderless"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(body["type"]))
def test_a_store_that_refuses_for_long_is_asked_a_few_times_until_shortly_before_the_deadline(
    body: dict[str, Any], strategy: str
) -> None:
    store = Refusing(11, strategy)
    store.cluster.request("c1", "n0", body)
    assert store.run(Pace().error_patience_s) == []
    [answer] = store.run(Options().limits.client_patience_s - Pace().error_patience_s)
    assert (answer["type"], answer["code"]) == ("error", 0)
    store.run(10.0)
    assert store.refused <= 20


@pytest.mark.parametrize("body", BODIES[1:], ids=lambda body: str(body["type"]))
def test_a_definite_refusal_is_told_at_once(body: dict[str, Any]) -> None:
    store = Refusing(12)
    store.cluster.request("c1", "n0", body)
    [answer] = store.run(0.1)
    assert (answer["type"], answer["code"], store.refused) == ("error", 0, 1)


def _line(body: dict[str, object]) -> bytes:
    return orjson.dumps({"src": "lin-kv", "dest": "n0", "body": body})
