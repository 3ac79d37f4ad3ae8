"""Faults: their shapes, targets and turns; `membership`; and whole runs with faults on the virtual clock."""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import Mock, call

import orjson
import pytest

from bench.cluster import Cluster
from bench.loop import VirtualLoop
from bench.nemesis.fault import TARGET_WORDS, TARGETS, Nemesis, choose_targets
from bench.nemesis.members import Membership
from bench.nemesis.partitions import REAL_SHAPES, SHAPES, Partition
from runs.faults import FAULTS, OPERATIONS, action_of, injections, members
from runs.history import Op
from runs.keyword import Keyword
from tests.datadriven.nodes_of_a_run import NodesOfARun
from tests.passing import pass_until
from tests.toy_log import MemoryLog, VirtualRun, run_of
from workloads.interface import NODE, Placement

SIZES = [1, 2, 3, 4, 5, 7, 9, 25]
SECOND = 1_000_000_000


def nodes_of(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", SIZES)
def test_everyone_hears_itself_and_only_nodes_are_cut(shape: str, count: int) -> None:
    nodes = nodes_of(count)
    cut = SHAPES[shape](nodes, Random(1))
    assert set(cut) <= set(nodes)
    assert all(node not in senders <= set(nodes) for node, senders in cut.items())


# A shape, how many nodes there are, and (how many nodes, how many they hear) of those that hear the same.
GROUPS: list[tuple[str, int, list[tuple[int, int]]]] = [
    ("one", 1, [(1, 1)]),
    *(("one", count, sorted([(1, 1), (count - 1, count - 1)])) for count in SIZES[1:]),
    ("majority", 1, [(1, 1)]),
    *(
        ("majority", count, sorted([(less, less), (count - less, count - less)]))
        for count in SIZES[1:]
        for less in [count // 2]
    ),
    *(("minority-third", count, [(count, count)]) for count in (1, 2, 3)),
    *(
        ("minority-third", count, [(third, third), (count - third, count - third)])
        for count in (4, 5, 7, 9, 25)
        for third in [(count - 1) // 3]
    ),
    ("majorities-ring", 3, [(1, 2)] * 3),
    ("majorities-ring", 4, [(1, 3)] * 4),
    ("majorities-ring", 5, [(1, 3)] * 5),
    ("bridge", 3, [(1, 2), (1, 2), (1, 3)]),
    ("bridge", 4, [(1, 2), (1, 4), (2, 3)]),
    ("bridge", 5, [(1, 5), (2, 3), (2, 3)]),
    ("bridge", 9, [(1, 9), (4, 5), (4, 5)]),
]


def heard(shape: str, count: int, seed: int = 1) -> dict[str, frozenset[str]]:
    """Whom each node hears."""
    nodes = nodes_of(count)
    cut = SHAPES[shape](nodes, Random(seed))
    return {node: frozenset(nodes) - cut.get(node, set()) for node in nodes}


@pytest.mark.parametrize(("shape", "count", "groups"), GROUPS)
def test_so_many_nodes_hear_the_same(shape: str, count: int, groups: list[tuple[int, int]]) -> None:
    for seed in range(5):
        hears = heard(shape, count, seed)
        same = Counter(hears.values())
        assert sorted((nodes, len(each)) for each, nodes in same.items()) == groups
        # Only in a ring of three or four somebody is heard by a node that it does not hear.
        assert count <= 4 or all(a in hears[b] for a in hears for b in hears[a])


@pytest.mark.parametrize("count", [6, 7, 9, 25])
def test_in_a_majorities_ring_everyone_hears_a_majority(count: int) -> None:
    hears = heard("majorities-ring", count)
    assert all(len(each) > count / 2 for each in hears.values())
    assert all(a in hears[b] for a in hears for b in hears[a])


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_one_way_some_are_heard_by_the_rest_and_do_not_hear_it(count: int) -> None:
    for seed in range(5):
        hears = heard("one-way", count, seed)
        deaf = {node for node, each in hears.items() if len(each) < count}
        assert 0 < len(deaf) < count
        assert all(hears[node] == deaf for node in deaf)


def test_the_sizes_of_targets() -> None:
    nodes = nodes_of(5)

    def sizes(word: str) -> set[int]:
        return {len(choose_targets(word, nodes, Random(seed))[1]) for seed in range(200)}

    assert [sizes(word) for word in ("one", "minority", "majority", "all")] == [{1}, {2}, {3}, {5}]
    assert sizes("random") == {1, 2, 3, 4, 5}
    words = {choose_targets("mixed", nodes, Random(seed))[0] for seed in range(200)}
    assert words == set(TARGETS)
    assert choose_targets("minority", ["n0"], Random(1)) == ("minority", ["n0"])


class Stage:
    """A nemesis on a virtual clock, and what it recorded: (time, f, value)."""

    def __init__(self, *faults: Partition, seed: int | str = "1", limit_s: int = 20_000) -> None:
        self.loop = VirtualLoop()
        self.recorded: list[tuple[int, str, Any]] = []
        self.nemesis = Nemesis(
            faults, self.loop, 10, lambda name: Random(f"{seed}/{name}"), self.record
        )
        self.nemesis.start(limit_s)
        self.run(limit_s)

    def record(self, kind: str, process: str, f: str, value: Keyword | list[Any] | None) -> None:
        assert (kind, process) == ("info", "nemesis")
        self.recorded.append((self.loop.now_ns(), f, value))

    def run(self, until_s: int) -> None:
        pass_until(self.loop, until_s * SECOND)


def test_cutting_and_healing_alternate_and_are_recorded() -> None:
    network = Mock()
    stage = Stage(Partition(network, nodes_of(5)))
    turns = stage.recorded[::2]
    assert len(turns) > 1000
    assert [name for name, *_ in network.method_calls[:4]] == ["partition", "heal"] * 2
    assert [f for _, f, _ in stage.recorded[:4]] == ["start-partition"] * 2 + ["stop-partition"] * 2
    assert turns[0][0] == 0  # as the real tool's
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(turns)]
    assert sum(gaps) / len(gaps) / SECOND == pytest.approx(10, rel=0.05)
    assert 0 <= min(gaps) <= max(gaps) < 20 * SECOND
    assert {value for _, _, value in stage.recorded[::4]} == set(REAL_SHAPES)
    values = [value for _, _, value in stage.recorded[1:4]]
    assert values[0][0] == "isolated"
    assert values[1:] == [None, "network-healed"]


def test_the_same_seed_gives_the_same_faults() -> None:
    def faults(seed: int) -> list[Any]:
        return Stage(Partition(Mock(), nodes_of(5)), seed=seed).recorded

    assert faults(1) == faults(1)
    assert faults(1) != faults(2)


def test_stopping_ends_what_is_active_and_is_recorded_when_nothing_was() -> None:
    network = Mock()
    stage = Stage(Partition(network, nodes_of(5)), limit_s=1)
    before = len(stage.recorded)
    assert not stage.nemesis.over
    stage.nemesis.stop()
    assert stage.nemesis.over
    assert network.method_calls[-1] == call.heal()
    assert [f for _, f, _ in stage.recorded[before:]] == ["stop-partition"] * 2
    stage.run(100)
    assert len(stage.recorded) == before + 2


def test_each_fault_has_operations_that_begin_and_end_it() -> None:
    actions = {f: action_of(f) for pair in OPERATIONS.values() for f in pair}
    assert {action.fault for action in actions.values() if action} == set(FAULTS)
    assert actions["kill"] == ("kill", True)
    assert actions["start"] == ("kill", False)
    assert actions["stop-slow"] == ("slow", False)
    assert len(actions) == 2 * len(FAULTS)


# ---------------------------------------------------------------- membership


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
    player.command(f"nodes {' '.join(nodes_of(size))}")
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


def fault_of(f: str) -> str | None:
    """The fault that an operation of the nemesis begins or ends."""
    action = action_of(f)
    return action.fault if action else None


def deeds(done: VirtualRun, fault: str | None = None) -> list[Any]:
    """(time, f, value) of the nemesis's operations."""
    return [
        (op.time, op.f, op.value)
        for op in done.history
        if op.process == "nemesis" and fault in (None, fault_of(op.f))
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
    assert final.time - deeds(done)[-1][0] >= 10 * SECOND


@pytest.mark.parametrize("strategy", ["leaderless", "cas", "prefetch-sealed"])
def test_all_faults_together_are_survived(strategy: str) -> None:
    done = run(*FAULTS, strategy=strategy)
    sane(done)
    assert {fault_of(f) for _, f, _ in deeds(done)} == set(FAULTS)


def test_killing_every_node_at_once_loses_nothing_acknowledged() -> None:
    done = run("kill", nemesis_targets="all")
    sane(done)
    killed = [value for _, f, value in deeds(done)[1::2] if f == "kill"]
    assert killed
    assert all(value == dict.fromkeys(NODES, "killed") for value in killed)
    assert any(op.type == "info" and op.f == "send" for op in done.history)


def test_faults_do_not_shift_one_another() -> None:
    alone, beside = run("slow"), run("slow", "loss")
    assert deeds(alone, "slow")[:-2] == deeds(beside, "slow")[: len(deeds(alone, "slow")) - 2]


def test_the_same_seed_gives_the_same_files_with_all_faults() -> None:
    first, second = run(*FAULTS, time_limit_s=3), run(*FAULTS, time_limit_s=3)
    assert first.journal_file.content == second.journal_file.content
    assert first.history_file.content == second.history_file.content


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
    class Mute(MemoryLog):
        def answer(self, body: dict[str, Any]) -> Any:
            return None if "fence" in body["type"] else super().answer(body)

    done = VirtualRun(Mute, nemesis=("fence",), nemesis_interval_s=1)
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
