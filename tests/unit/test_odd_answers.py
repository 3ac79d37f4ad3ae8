"""Answers that no client asked for: to another request, a second time, of a key that nobody named."""

from typing import Any

import orjson
import pytest

import workloads
from bench.verdict import exit_status
from runs.facts import never_succeeded
from runs.history import Op
from runs.keyword import Keyword
from tests.toy_log import MemoryLog, VirtualRun, judged, verdict_of


def told(run: VirtualRun) -> tuple[dict[Any, Any], str]:
    """What was found in a run, and its verdict for people."""
    return judged(run).results, verdict_of(run)


class Twice(MemoryLog):
    """Answers every send twice."""

    def take(self) -> bytes:
        lines = super().take().splitlines(keepends=True)
        return b"".join(line * (1 + (b"send_ok" in line)) for line in lines)


def test_answering_twice_is_valid_and_said() -> None:
    run = VirtualRun(Twice, time_limit_s=2)
    sends = [op for op in run.history if op.f == "send" and op.type == "ok" and op.process % 2 == 0]
    found, text = told(run)
    assert found["valid?"] is True
    assert f"n0 sent {len(sends)} answers to requests that had been answered before." in text
    assert "--strict refuses this" in text
    assert found["answers"]["repeated"]["n0"] == len(sends)


def test_strict_refuses_to_be_answered_twice() -> None:
    run = VirtualRun(Twice, time_limit_s=2, strict=True)
    found, text = told(run)
    assert exit_status(found, run.outcome.failure) == 1
    assert "INVALID: no anomaly was found, but requests were answered more than once." in text
    assert "n1 sent" in text


def test_a_right_node_is_said_to_answer_once() -> None:
    found, text = told(VirtualRun(time_limit_s=2, strict=True))
    assert found["valid?"] is True
    assert "answers" not in text
    assert "answers" not in found


class Late(MemoryLog):
    """Answers one assign only after the client has given up; the client stays, because that changed nothing."""

    is_late = True

    def delay_s(self, body: dict[str, Any]) -> float:
        if body["type"] != "list_committed_offsets" or not self.is_late:
            return 0.0
        self.is_late = False
        return 5.5


def test_a_late_answer_is_no_second_one() -> None:
    run = VirtualRun(Late, time_limit_s=10, nodes=("n0",))
    assert [op for op in run.history if op.extra.get("error") == "net-timeout"]
    assert "answers" not in told(run)[0]


class Says(MemoryLog):
    """Changes its answers to sends."""

    field: tuple[str, Any] = ("in_reply_to", 1)

    def take(self) -> bytes:
        name, value = self.field
        changed = []
        for line in super().take().splitlines():
            message = orjson.loads(line)
            if message["body"]["type"] == "send_ok":
                message["body"][name] = value
            changed.append(orjson.dumps(message) + b"\n")
        return b"".join(changed)


@pytest.mark.parametrize("value", [None, "1", True, 1.0, {"1": 1}, [1], 10**6, -1], ids=repr)
def test_an_answer_to_no_request_is_not_taken_for_one(value: Any) -> None:
    node = type("Node", (Says,), {"field": ("in_reply_to", value)})
    found, text = told(VirtualRun(node, time_limit_s=1))
    assert found["valid?"] is False
    assert never_succeeded(found["stats"]) == ["send"]
    assert "had no answer in time" in text


@pytest.mark.parametrize("value", [None, "1", True, 1.0], ids=repr)
def test_the_msg_id_of_an_answer_is_an_integer(value: Any) -> None:
    node = type("Node", (Says,), {"field": ("msg_id", value)})
    failure = str(VirtualRun(node, time_limit_s=1).outcome.failure)
    assert f"the field msg_id is {value!r}, not an integer" in failure


class TellsMore(MemoryLog):
    """Answers `topology` with a field that nobody asked for."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        return {"more": 1} if body["type"] == "topology" else super().answer(body)


def test_a_malformed_answer_before_the_operations_is_reported_whole() -> None:
    failure = str(VirtualRun(TellsMore, workload="broadcast").outcome.failure)
    assert "sent a malformed reply: nobody asked for the field more" in failure
    assert '"type": "topology_ok"' in failure


class MadeUpKeys(MemoryLog):
    """Hands out keys that nobody asked for."""

    keys = ("x", "", "999", "-1", "9" * 5000)

    def poll(self, offsets: dict[str, int]) -> dict[str, list[Any]]:
        return super().poll(offsets) | {key: [[0, 1]] for key in self.keys if key not in offsets}


def test_keys_that_nobody_asked_for_are_judged() -> None:
    run = VirtualRun(MadeUpKeys, time_limit_s=2)
    found, text = told(run)
    assert run.outcome.failure is None
    assert found["exceptions"] == {"valid?": True}
    assert found["valid?"] is False
    assert "no-writer-of-value" in text
    finals = [op for op in run.history if "seek-to-beginning?" in op.extra and op.type == "ok"]
    assert {"x", "", "999"} <= set(finals[0].value)


@pytest.mark.parametrize(
    ("workload", "write", "right", "odd"),
    [
        ("txn-list-append", "append", [1], [1.0]),
        ("txn-list-append", "append", [1], [True]),
        ("txn-rw-register", "w", 1, 1.0),
        ("txn-rw-register", "w", 1, True),
    ],
)
def test_an_odd_value_is_not_the_integer_that_was_written(
    workload: str, write: str, right: Any, odd: Any
) -> None:
    def anomalies(read: Any) -> str:
        writes, reads = [Keyword(write), 9, 1], [Keyword("r"), 9, read]
        history = [
            Op(0, 0, "invoke", 0, "txn", [writes]),
            Op(1, 1, "fail", 0, "txn", [writes]),
            Op(2, 2, "invoke", 1, "txn", [[Keyword("r"), 9, None]]),
            Op(3, 3, "ok", 1, "txn", [reads]),
        ]
        return str(workloads.judge(workload).check(history, {}))

    assert "G1a" in anomalies(right)
    assert "G1a" not in anomalies(odd)
