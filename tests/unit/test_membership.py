"""`membership`: who leaves, who joins, what clients and new nodes see, and who does not bear it."""

from random import Random
from typing import Any

import orjson
import pytest

from bench.nemesis.fault import TARGET_WORDS
from bench.nemesis.faults import Membership
from runs.faults import FAULTS, injections, members
from runs.history import Op
from tests.toy_log import MemoryLog, VirtualRun, run_of
from workloads.interface import NODE, Placement

NODES = ("n0", "n1", "n2")
CHOSEN: dict[str, Any] = {
    "nodes": NODES,
    "concurrency": 6,
    "time_limit_s": 6,
    "latency_ms": 2,
    "nemesis": ("membership",),
    "nemesis_interval_s": 0.7,
    "strict": True,
}


class FakeCluster:
    """Keeps names only, by place."""

    def __init__(self, size: int) -> None:
        self.names = [f"n{number}" for number in range(size)]
        self.gone: dict[str, str] = {}
        self.count = size

    @property
    def members(self) -> list[str]:
        return [name for name in self.names if name not in self.gone]

    def leave(self, name: str) -> str:
        assert name in self.members
        self.gone[name] = f"n{self.count}"
        self.count += 1
        return self.gone[name]

    def join(self) -> list[str]:
        gone, self.gone = self.gone, {}
        self.names = [gone.get(name, name) for name in self.names]
        return [*gone.values()]


@pytest.mark.parametrize("word", TARGET_WORDS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_many_leave_as_the_targets_say_but_one_always_stays(word: str, size: int) -> None:
    cluster: Any = FakeCluster(size)
    prepared: list[str] = []
    fault, random, sizes = Membership(cluster, word, prepared.append), Random(1), set()
    assert fault.possible is (size > 1)
    for _ in range(50):
        effects: list[Any] = []
        plan = fault.plan(random)
        assert set(cluster.gone) == set()
        plan.act(effects.append)
        assert len(cluster.members) == max(1, size - len(effects[0]))
        sizes.add(len(effects[0]))
        fault.end(effects.append)
        assert effects[1] == dict.fromkeys(effects[0].values(), "joined")
        assert len(cluster.members) == size
    least, most = {"one": (1, 1), "minority": (2, 2), "majority": (3, 3), "all": (4, 4)}.get(
        word, (1, 4)
    )
    assert (min(sizes), max(sizes)) == (min(least, size - 1), min(most, size - 1))
    assert prepared[:1] == ([f"n{size}"] if size > 1 else [])


def test_acts_that_are_left_out_break_nothing() -> None:
    cluster: Any = FakeCluster(3)
    fault = Membership(cluster, "all", lambda _: None)
    effects: list[Any] = []
    fault.end(effects.append)  # nobody has left
    for _ in range(3):  # nobody joins in between
        fault.plan(Random(1)).act(effects.append)
    assert effects[0] == effects[2] == effects[3] == {}
    assert len(cluster.members) == 1


@pytest.fixture(scope="module")
def replaced() -> VirtualRun:
    return run_of("leaderless", **CHOSEN)


def test_clients_go_on_with_another_node_as_new_processes(replaced: VirtualRun) -> None:
    history = replaced.history
    place = Placement.of(replaced.options.as_dict(), history)
    assert place
    talked = {op.process: {place.node(op.process)} for op in history if type(op.process) is int}
    for op in history:
        if type(op.process) is int:
            talked[op.process].add(op.extra.get(NODE, place.node(op.process)))
    assert {len(nodes) for nodes in talked.values()} == {1}
    joined = {node for nodes in talked.values() for node in nodes} - {*NODES}
    assert len(joined) > 3
    left: set[str] = set()
    for op in history:
        if op.process == "nemesis":
            left |= {*op.value} if op.f == "leave" and isinstance(op.value, dict) else set()
        elif op.type == "invoke":
            assert place.node(int(op.process)) not in left


def test_a_new_node_is_told_all_that_are_there_and_nobody_else_is_told_anything(
    replaced: VirtualRun,
) -> None:
    sent = [
        event["message"]
        for event in map(orjson.loads, replaced.journal_file.content.splitlines())
        if event["type"] == "send"
    ]
    inits = [each["body"] for each in sent if each["body"]["type"] == "init"]
    assert [each["node_id"] for each in inits[:3]] == [*NODES]
    there = {*NODES}
    changes = [op.value for op in replaced.history if op.f in ("leave", "join") and op.value]
    told = iter(inits[3:])
    for value in (value for value in changes if isinstance(value, dict)):
        if "joined" in value.values():
            there |= value.keys()
            for node in value:
                init = next(told)
                assert (init["node_id"], set(init["node_ids"])) == (node, there)
        else:
            there -= value.keys()
    assert next(told, None) is None
    assert set(members(NODES, replaced.history)) == set(replaced.cluster.members)


def test_nothing_acknowledged_is_lost_and_the_fault_is_told(replaced: VirtualRun) -> None:
    assert replaced.outcome.failure is None
    result = replaced.check()
    assert result["valid?"] is True, result["bad-error-types"]
    assert not replaced.network.hearing.mute
    text = injections(replaced.history)[0].text
    assert " replaced by n3" in text


def test_nodes_take_batches_of_those_that_joined_later(replaced: VirtualRun) -> None:
    known: dict[str, set[str]] = {}  # to each node, by its `init`
    handed = 0
    for event in map(orjson.loads, replaced.journal_file.content.splitlines()):
        src, dest, body = (event["message"][each] for each in ("src", "dest", "body"))
        if body["type"] == "init":
            known[dest] = set(body["node_ids"])
        handed += body["type"] == "hand_over_ok" and dest not in known[src]
        assert body["type"] != "error" or body["code"] != 12, event
    assert handed


@pytest.mark.parametrize("strategy", ["cas", "prefetch-sealed"])
def test_the_other_durable_logs_bear_it(strategy: str) -> None:
    done = run_of(strategy, **CHOSEN)
    assert done.outcome.failure is None
    assert done.check()["valid?"] is True


def test_the_log_in_a_leaders_memory_does_not_bear_it() -> None:
    done = run_of("leader", **CHOSEN)
    assert done.outcome.failure is None
    assert done.check()["valid?"] is False


class NeverCatchesUp(MemoryLog):
    """Every node takes every message and commit at once; a new one never learns what came before it."""

    def __init__(self, name: str, shared: dict[str, Any]) -> None:
        super().__init__(name, {})
        self.everyone: list[MemoryLog] = shared.setdefault("everyone", [])
        self.everyone.append(self)

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        answers = {id(each): MemoryLog.answer(each, body) for each in self.everyone}
        return answers[id(self)]


@pytest.mark.parametrize(("faults", "valid"), [((), True), (("membership",), False)])
def test_a_strangers_node_whose_newcomers_do_not_catch_up_does_not_bear_it(
    faults: tuple[str, ...], valid: bool
) -> None:
    chosen = CHOSEN | {"nemesis": faults}
    done = VirtualRun(NeverCatchesUp, **chosen)
    assert done.outcome.failure is None
    assert done.check()["valid?"] is valid


def test_a_strangers_nodes_that_share_a_store_bear_it() -> None:
    done = VirtualRun(nemesis=("membership",), nemesis_interval_s=1, strict=True)
    assert members((), done.history)
    assert done.check()["valid?"] is True


def test_one_node_alone_is_never_replaced() -> None:
    done = run_of("leaderless", **CHOSEN | {"nodes": ("n0",), "concurrency": 2})
    assert done.check()["valid?"] is True
    assert {op.f for op in done.history if op.process == "nemesis"} == {"leave", "join"}
    assert injections(done.history)[0].text == "nobody was replaced"


def test_members_are_read_from_the_nemesis_alone() -> None:
    def op(process: Any, f: str, value: Any) -> Op:
        return Op(0, 0, "info", process, f, value)

    history = [
        op("nemesis", "leave", "one"),
        op("nemesis", "leave", {"n1": "n3"}),
        op("nemesis", "join", {"n3": "joined"}),
        op(0, "leave", {"n0": "n9"}),
        op("nemesis", "kill", {"n0": "killed"}),
    ]
    assert members(NODES, history) == ["n0", "n2", "n3"]


@pytest.mark.parametrize(
    "workload", ["broadcast", "lin-kv", "unique-ids", "g-set", "txn-rw-register"]
)
def test_a_new_node_is_told_what_the_workload_says_to_every_node(workload: str) -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    class Talks(MemoryLog):
        def answer(self, body: dict[str, Any]) -> Any:
            if body["type"] == "topology":
                told.append((self.name, body["topology"]))
            return {} if body["type"] in ("init", "topology") else None

    done = VirtualRun(Talks, **CHOSEN | {"workload": workload, "rate": 1.0})
    assert done.outcome.failure is None
    joined = members((), done.history)
    assert joined
    later = told[len(NODES) :]
    if workload == "broadcast":
        assert {node for node, _ in later} >= set(joined)
        assert all(node in topology and len(topology) == 3 for node, topology in later)
    else:
        assert told == []


def test_all_faults_together_are_borne_by_durable_nodes() -> None:
    done = run_of("leaderless", **CHOSEN | {"nemesis": FAULTS, "time_limit_s": 10})
    assert done.outcome.failure is None
    assert done.check()["valid?"] is True
