"""Runs with faults on the virtual clock: nodes that are replaced; every fault, and all together."""

import math
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import orjson
import pytest

from bench.cluster import Cluster
from bench.nemesis.fault import TARGET_WORDS
from bench.nemesis.members import Membership
from runs.faults import FAULTS, OPERATIONS, action_of, injections, members
from runs.history import Op
from tests.datadriven.nodes_of_a_run import NodesOfARun
from tests.toy_log import MemoryLog, VirtualRun, answering, run_of, silent
from workloads.interface import NODE, Placement

NODES = ("n0", "n1", "n2")
CHOSEN: dict[str, Any] = {
    "nodes": NODES,
    "concurrency": 6,
    "time_limit_s": 6,
    "latency_ms": 2,
    "rate": 50.0,
    "nemesis": ("membership",),
    "nemesis_interval_s": 0.7,
    "strict": True,
}


def cluster_of(size: int) -> Cluster:
    """A cluster of a bench, with hosts that only tell what happens to them."""
    player = NodesOfARun()
    player.command(f"nodes {' '.join(f'n{number}' for number in range(size))}")
    player.cluster.start([*player.hosts.values()][1:], lambda: 0)  # the player starts the first one
    return player.cluster


@pytest.mark.parametrize("word", TARGET_WORDS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_many_leave_as_the_targets_say_but_one_always_stays(word: str, size: int) -> None:
    cluster = cluster_of(size)
    prepared: list[str] = []
    fault, random, sizes = Membership(cluster, word, prepared.append), Random(1), set()
    assert fault.possible is (size > 1)
    for _ in range(50):
        effects: list[Any] = []
        plan = fault.plan(random)
        assert cluster.members == cluster.names
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
    cluster = cluster_of(3)
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
    sane(replaced)
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


class NeverCatchesUp(MemoryLog):
    """Every node takes every message and commit at once; a new one never learns what came before it."""

    def __init__(self, name: str, shared: dict[str, Any]) -> None:
        super().__init__(name, {})
        self.everyone: list[MemoryLog] = shared.setdefault("everyone", [])
        self.everyone.append(self)

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        answers = {id(each): MemoryLog.answer(each, body) for each in self.everyone}
        return answers[id(self)]


class Forgets(MemoryLog):
    """Keeps its log in memory only."""

    def __init__(self, name: str, _shared: dict[str, Any]) -> None:
        super().__init__(name, {})


OFTEN: dict[str, Any] = {"nemesis_interval_s": 1}
# A run, and whether its nodes bear its faults: those that keep their log on a store do.
BORNE: list[tuple[Any, bool]] = [
    (partial(run_of, "cas", **CHOSEN), True),
    (partial(run_of, "prefetch-sealed", **CHOSEN), True),
    (partial(run_of, "leader", **CHOSEN), False),
    (partial(VirtualRun, NeverCatchesUp, **CHOSEN | {"nemesis": ()}), True),
    (partial(VirtualRun, NeverCatchesUp, **CHOSEN), False),
    (partial(VirtualRun, nemesis=("membership",), strict=True, **OFTEN), True),
    (partial(VirtualRun, Forgets, nodes=("n0",), nemesis=("kill",), nemesis_targets="all", **OFTEN), False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "valid"), BORNE)
def test_whether_nodes_bear_faults(make: Callable[[], VirtualRun], valid: bool) -> None:
    done = make()
    assert done.outcome.failure is None
    assert done.check()["valid?"] is valid


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


def run(
    *faults: str, strategy: str = "leaderless", **options: int | str | tuple[str, str]
) -> VirtualRun:
    return run_of(strategy, **CHOSEN | {"nemesis": faults} | options)


def deeds(done: VirtualRun, fault: str | None = None) -> list[Any]:
    """(time, f, value) of the nemesis's operations, or of those that begin or end a fault."""
    return [
        (op.time, op.f, op.value)
        for op in done.history
        if op.process == "nemesis" and fault in (None, getattr(action_of(op.f), "fault", None))
    ]


def sane(done: VirtualRun) -> None:
    assert done.outcome.failure is None
    result = done.check()
    assert result["valid?"] is True, result["bad-error-types"]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_survived_recorded_in_pairs_and_told_in_words(fault: str) -> None:
    done = run(fault)
    sane(done)
    fs = [f for _, f, _ in deeds(done)]
    assert fs[::2] == fs[1::2]
    begin, end = OPERATIONS[fault]
    turns = fs[::2]
    # The last one is the end of the run, which is recorded also when nothing was in force.
    assert turns[:-1] == ([begin, end] * len(turns))[: len(turns) - 1]
    assert turns[-1] == end
    assert turns.count(begin) >= 3
    told = injections(done.history)
    assert {each.fault for each in told} == {fault}
    assert not any(each.text.startswith(f"{fault}:") for each in told)
    final = next(op for op in done.history if "seek-to-beginning?" in op.extra)
    assert final.time - deeds(done)[-1][0] >= 10e9


def test_faults_do_not_shift_one_another() -> None:
    alone, beside = run("slow"), run("slow", "loss")
    assert deeds(alone, "slow")[:-2] == deeds(beside, "slow")[: len(deeds(alone, "slow")) - 2]


def test_the_shapes_of_partitions_are_those_asked_for() -> None:
    done = run("partition", partition_shapes=("bridge", "one-way"))
    shapes = {value for _, f, value in deeds(done)[::2] if f == "start-partition"}
    assert shapes == {"bridge", "one-way"}


@pytest.mark.parametrize(("word", "sizes"), [("one", {1}), ("majority", {2}), ("all", {3})])
def test_targets_are_those_asked_for(word: str, sizes: set[int]) -> None:
    done = run("slow", nemesis_targets=word)
    begun = [value for _, f, value in deeds(done)[1::2] if f == "start-slow"]
    assert {len(value["nodes"]) for value in begun} == sizes


def test_while_the_log_is_fenced_sends_fail_and_polls_go_on() -> None:
    done = run("fence", nemesis_interval_s=2)
    (fenced, open_again) = deeds(done)[1], deeds(done)[2]
    assert fenced[1:] == ("start-fence", [{"epoch": 1}, fenced[2][1]])
    during = [op for op in done.history if fenced[0] < op.time < open_again[0]]
    assert {op.type for op in during if op.f == "send"} >= {"fail"}
    assert not any(op.type == "ok" and op.f == "send" for op in during[20:])
    assert any(op.type == "ok" and op.f == "poll" for op in during)


def test_nodes_that_know_no_fence_are_recorded_so_and_left_in_peace() -> None:
    done = run("fence", strategy="cas")
    sane(done)
    (_, begin, node), (_, _, told), *end = deeds(done)
    assert begin == "start-fence"
    assert told == ["not-supported", node]
    assert [(f, value) for _, f, value in end] == [
        ("stop-fence", None),
        ("stop-fence", "not-supported"),
    ]
    assert injections(done.history)[0].text == "fencing failed: not-supported"


def test_a_node_that_hides_from_the_fence_does_not_hold_up_the_run() -> None:
    mute = answering(fence=silent, unfence=silent)
    done = VirtualRun(mute, nemesis=("fence",), nemesis_interval_s=1)
    assert done.outcome.failure is None
    assert deeds(done)[1][2][0] == "unknown"
    assert deeds(done)[-1][2][0] == "unknown"
    assert done.check()["valid?"] is True
    assert done.virtual_s < 40


class Reluctant(MemoryLog):
    """Fences without a word and `late_s` later. Says `doubts` times that it cannot tell whether it unfenced."""

    late_s = 0.0
    doubts = 0

    def __init__(self) -> None:
        super().__init__("n0", {})
        self.fenced_s = math.inf

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        self._now = now
        super().receive(line, now, arrived_at)

    def answer(self, body: dict[str, Any]) -> Any:
        match body["type"]:
            case "fence":
                self.fenced_s = self._now + self.late_s
                return None
            case "unfence" if self.doubts:
                self.doubts -= 1
                return {"type": "error", "code": 0, "text": "no outcome"}
            case "unfence":
                if self.fenced_s <= self._now:
                    self.fenced_s = math.inf
                return {"type": "fence_ok", "epoch": 1}
        return super().answer(body)


@pytest.mark.parametrize(("late_s", "doubts"), [(0.0, 0), (0.0, 9), (9.0, 0), (12.0, 3)])
def test_a_fence_is_undone_however_late_it_comes_and_however_often_its_node_is_in_doubt(
    late_s: float, doubts: int
) -> None:
    node = Reluctant()
    node.late_s, node.doubts = late_s, doubts
    done = VirtualRun(
        make=lambda _name, _start: node, nodes=("n0",), nemesis=("fence",), nemesis_interval_s=1
    )
    sane(done)
    assert deeds(done)[1][2] == ["unknown", "n0"]
    assert deeds(done)[-1][2] == [{"epoch": 1}, "n0"]
    assert node.fenced_s == math.inf
