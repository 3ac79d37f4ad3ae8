"""Whole runs with faults, on the virtual clock: what is recorded, and that nothing acknowledged is lost."""

import itertools
import math
from typing import Any

import pytest

from runs.faults import FAULTS, OPERATIONS, action_of, injections
from tests.toy_log import MemoryLog, VirtualRun, run_of

NODES = ("n0", "n1", "n2")


def run(
    *faults: str, strategy: str = "leaderless", **options: int | str | tuple[str, str]
) -> VirtualRun:
    chosen = {
        "nodes": NODES,
        "concurrency": 6,
        "time_limit_s": 6,
        "latency_ms": 2,
        "nemesis": faults,
        "nemesis_interval_s": 0.7,
        "strict": True,
    }
    return run_of(strategy, **chosen | options)


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


@pytest.fixture(scope="module", params=FAULTS)
def one_fault(request: pytest.FixtureRequest) -> tuple[str, VirtualRun]:
    return request.param, run(request.param)


def test_each_fault_is_survived(one_fault: tuple[str, VirtualRun]) -> None:
    sane(one_fault[1])


def test_each_fault_is_recorded_in_pairs_that_begin_and_end_it(
    one_fault: tuple[str, VirtualRun],
) -> None:
    fault, done = one_fault
    fs = [f for _, f, _ in deeds(done)]
    assert fs[::2] == fs[1::2]
    begin, end = OPERATIONS[fault]
    turns = fs[::2]
    # The last one is the end of the run, which is recorded also when nothing was in force.
    assert turns[:-1] == [
        f for _, f in zip(turns[:-1], itertools.cycle([begin, end]), strict=False)
    ]
    assert turns[-1] == end
    assert turns.count(begin) >= 3


def test_each_fault_can_be_told_in_words(one_fault: tuple[str, VirtualRun]) -> None:
    fault, done = one_fault
    told = injections(done.history)
    assert {each.fault for each in told} == {fault}
    assert not any(each.text.startswith(f"{fault}:") for each in told)


def test_everything_has_ended_before_the_final_phase(one_fault: tuple[str, VirtualRun]) -> None:
    _, done = one_fault
    last_deed = deeds(done)[-1][0]
    final = next(op for op in done.history if "seek-to-beginning?" in op.extra)
    assert final.time - last_deed >= 10_000_000_000


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


class Forgets(MemoryLog):
    """Keeps its log in memory only."""

    def __init__(self, name: str, _shared: dict[str, Any]) -> None:
        super().__init__(name, {})


def test_a_node_that_keeps_its_log_in_memory_is_caught() -> None:
    done = VirtualRun(
        Forgets, nodes=("n0",), nemesis=("kill",), nemesis_interval_s=1, nemesis_targets="all"
    )
    assert done.outcome.failure is None
    assert done.check()["valid?"] is False


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
