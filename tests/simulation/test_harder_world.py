"""What the simulator does to nodes beside the faults of the bench, and what it asks of them afterwards."""

from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import orjson
import pytest

from bench.loop import VirtualLoop
from runs.collection import collected_quietly
from runs.faults import MUTE
from runs.history import Keyword
from simulation.aftermath import require_compacted
from simulation.headlog import HeadLogOracle
from simulation.judge import Report, judged, simulate
from simulation.oracle import Violation
from simulation.registers import Store
from simulation.scenario import HEAVY, Scenario
from simulation.story import Story, text_of
from simulation.trouble import StoreTrouble
from simulation.world import World
from tests.toy_log import answering

pytestmark = pytest.mark.simulation
SHORT: dict[str, Any] = {"time_limit_s": 2.0, "nodes": 2, "latency_ms": 1, "strategy": "leaderless"}
READ = {"type": "read", "key": "k"}
Event = dict[str, Any]


def run(**options: Any) -> tuple[World, Report, list[Event]]:
    """A run in which nothing was wrong, and its journal."""
    with collected_quietly():
        world = World(Scenario(1, **SHORT | options), keep=True)
        report = judged(world)
    assert report.failures == []
    return world, report, [orjson.loads(line) for line in world.journal_file.content.splitlines()]


def troubled(**options: Any) -> tuple[StoreTrouble, VirtualLoop, Store]:
    loop, store = VirtualLoop(), Store()
    trouble = StoreTrouble(Scenario(1, **options), store, loop, Random(1))
    trouble.begin()
    return trouble, loop, store


# ---------------------------------------------------------------- the store


def test_late_requests_are_carried_out_when_they_are_answered() -> None:
    trouble, loop, store = troubled(store_late_s=120.0)
    carried_out: list[float] = []
    serve = trouble.around(lambda _client, execute, answer: answer(execute()))
    for number in range(300):
        write = {"type": "write", "key": f"k{number}", "value": 1}
        execute = partial(store.handle, "n0", write)
        serve("n0", execute, lambda _: carried_out.append(loop.now_ns()))
    at_once = len(carried_out)
    assert 270 < at_once < 300
    loop.run_until(lambda: len(carried_out) == 300)
    assert len(store.registers) == 300
    assert 60e9 < trouble.last_ns == max(carried_out) <= 120e9


@pytest.mark.parametrize("code", [11, 13, 14, 21])
def test_a_definite_error_is_not_carried_out_and_any_other_may_be(code: int) -> None:
    trouble, _, store = troubled(refusal_code=code)
    replies = [
        trouble.handle("n0", {"type": "write", "key": f"k{number}", "value": 1})
        for number in range(400)
    ]
    refused = {f"k{number}" for number, reply in enumerate(replies) if reply["type"] == "error"}
    assert 20 < len(refused) < 80
    done = refused & store.registers.keys()
    assert bool(done) == (code == 13)
    assert refused - done


def test_all_requests_are_refused_for_a_while() -> None:
    trouble, loop, _ = troubled(refusal_code=11, refusing_s=1.0, rate=30.0)
    answers: list[str] = []
    for at_ns in range(0, 6_000_000_000, 100_000_000):
        loop.call_at(at_ns, lambda: answers.append(trouble.handle("n0", READ).get("text", "")))
    loop.run_until(lambda: len(answers) == 60)
    refused = [place for place, text in enumerate(answers) if text == "the store says so"]
    assert refused == list(range(refused[0], refused[0] + 10))


def test_a_node_that_asks_a_refusing_store_as_fast_as_it_answers_is_found() -> None:
    trouble, loop, _ = troubled(refusal_code=21, refusing_s=4.0, rate=1.0)
    loop.call_at(trouble._refusing_ns.start, lambda: None)
    loop.run_until(lambda: loop.now_ns() > 0)
    for _ in range(404):
        trouble.handle("n0", READ)
    with pytest.raises(Violation, match="StoreSpared"):
        trouble.handle("n0", READ)


def test_a_value_above_the_limit_is_never_stored() -> None:
    trouble, _, store = troubled(store_value_kib=1)
    for size, kind in ((900, "write_ok"), (1_100, "error")):
        write = {"type": "write", "key": f"k{size}", "value": "x" * size}
        assert trouble.handle("n0", write)["type"] == kind
    assert [*store.registers] == ["k900"]


def test_requests_of_a_node_share_a_pipe() -> None:
    trouble, loop, _ = troubled(store_kib_per_s=1)
    answered: list[float] = []
    serve = trouble.around(lambda _client, execute, answer: answer(execute()))
    for client in ("n0", "n0", "n1"):
        write = {"type": "write", "key": client, "value": "x" * 1_000}
        execute = partial(trouble.handle, client, write)
        serve(client, execute, lambda _: answered.append(loop.now_ns() / 1e9))
    loop.run_until(lambda: len(answered) == 3)
    assert [round(at_s) for at_s in answered] == [1, 1, 2]


# ---------------------------------------------------------------- whole runs


def test_strays_come_when_a_node_lives_again() -> None:
    options = {"nemesis": ("kill",), "nemesis_interval_s": 0.5, "strays": 20}
    _, _, events = run(**options)
    received = Counter(each["message"]["id"] for each in events if each["type"] == "recv")
    assert sum(count > 1 for count in received.values()) >= 5


def test_auditors_and_large_senders_ask_through_all_nodes() -> None:
    _, _, events = run(auditors=2, large_kib=8, idle_nodes=1)
    asked = Counter(
        (each["message"]["dest"], each["message"]["body"].get("key", "")[:5])
        for each in events
        if each["type"] == "recv" and each["message"]["body"]["type"] in ("send", "commit_offsets")
    )
    assert asked["n0", "large"]
    assert asked["n1", "large"]
    assert asked["n0", ""] > 3
    assert asked["n1", ""] > 1
    workload = {key for node, key in asked if node == "n1" and key not in ("", "large")}
    assert workload <= {"probe"}, "an idle node gets no send of the workload"


def test_an_old_log_is_read_by_everybody() -> None:
    world, _, _ = run(backlog=40, seal_entries=3, segments_per_run=2, memory_kib=4)
    oracle = world.watch.oracle
    assert isinstance(oracle, HeadLogOracle)
    assert [len(oracle.messages[f"old{number}"]) for number in range(4)] == [10] * 4
    assert world.store.registers["compacted"]["listed"]


def test_the_aftermath_waits_for_what_is_late_and_compacts() -> None:
    world, report, _ = run(aftermath=True, store_late_s=120.0, segments_per_run=2)
    assert world._trouble.last_ns > 20e9
    assert report.virtual_s * 1e9 > world._trouble.last_ns
    assert world.store.registers["compacted"]["cursor"] > 2


def test_a_strategy_with_a_log_in_one_register_is_spared_what_it_cannot_bear() -> None:
    drawn = [Scenario.draw(seed, {"strategy": "cas"}) for seed in range(40)]
    assert not any(getattr(each, name) for each in drawn for name in HEAVY)
    assert Scenario.draw(1, {"strategy": "cas", "backlog": 7}).backlog == 7


def test_there_is_always_a_node_that_is_not_idle() -> None:
    assert Scenario(1, nodes=1, idle_nodes=2).idle_names == ()
    assert Scenario(1, nodes=3, idle_nodes=2).idle_names == ("n1", "n2")


LATE = answering(delay_s=lambda body: 6.0 * (body["type"] != "init"))


@pytest.mark.parametrize("lenient", [False, True])
def test_a_late_answer_mutes_a_node_unless_the_bench_is_lenient(lenient: bool) -> None:
    scenario = Scenario(1, nodes=2, rate=5.0, time_limit_s=15.0, strategy="leader", lenient=lenient)
    report = simulate(scenario, node=lambda name, _start: LATE(name, {}))
    mute = {node for op in report.history if op.f == MUTE for node in [op.value[Keyword("node")]]}
    assert mute == (set() if lenient else {"n0", "n1"})
    assert report.failures


# ---------------------------------------------------------------- judges

LISTED = [[1, 0, 1, 0, 8, 1, 90], [0, 2, 3, 8, 16, 1, 90]]
INDEX = {"format": 4, "epoch": 1, "cursor": 4, "listed": LISTED}
RUN = {"base": 0, "end": 8, "keys": {}, "commits": {}, "writers": {}}
SOUND = {
    "head": {"sealed": 6},
    "compacted": INDEX,
    "page/1/0-1/0-of-1": RUN | {"children": [[0, 0, 1, 0, 8, 1, 90]]},
    "run/0-1": RUN,
    "run/2-3": RUN,
    "segment/3": {"deleted": True},
    "segment/4": {},
    "segment/6": {},
}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, None),
        ({"head": {"sealed": 40}}, "CompactionMoves"),
        ({"segment/3": {}}, "GarbageCollected"),
        ({"run/0-3": {}}, "GarbageCollected"),
        ({"page/1/0-1/1-of-2": {}}, "GarbageCollected"),
        ({"run/0-3": {"deleted": True}}, None),
    ],
)
def test_what_is_left_in_the_end_is_judged(change: dict[str, Any], name: str | None) -> None:
    if name is None:
        require_compacted(SOUND | change, 2)
        return
    with pytest.raises(Violation, match=name):
        require_compacted(SOUND | change, 2)


def test_each_life_of_a_node_in_a_mixed_cluster_has_options_of_its_own() -> None:
    scenario = Scenario.draw(3, {"strategy": "leaderless", "mixed": True, "nodes": 3})
    lives = [(node, life) for node in ("n0", "n1", "old") for life in (1, 2)]
    assert len({str(scenario.options_of(*life)) for life in lives}) == len(lives)
    assert len({scenario.options_of(*life).limits.line_bytes for life in lives}) == 1
    alike = replace(scenario, mixed=False)
    assert {alike.options_of(*life) for life in lives} == {alike.node_options}
    assert not Scenario.draw(3, {"strategy": "leaderless", "lanes": 1}).mixed
    assert not Scenario.draw(3, {"strategy": "cas"}).mixed


def test_a_story_says_when_a_late_message_was_sent() -> None:
    message = {"id": 7, "src": "n0", "dest": "n1", "body": {"type": "hand_over"}}
    events = [
        {"time": time, "type": kind, "message": message}
        for time, kind in ((0, "send"), (5_000_000, "recv"), (3_200_000_000, "recv"))
    ]
    told = list(text_of(Story(None, events)))
    assert [" s before)" in line for line in told] == [False, False, True]
    assert told[-1].endswith("(sent 3.2 s before)")
