"""Answers that no client asked for: to another request, a second time, of a key that nobody named."""

import re
from typing import Any

import orjson
import pytest

import workloads
from bench.verdict.last_line import exit_status
from runs.history import Keyword, Op
from tests.toy_log import MemoryLog, VirtualRun, answering, judged, verdict_of


class Twice(MemoryLog):
    """Answers every send twice."""

    def take(self) -> bytes:
        lines = super().take().splitlines(keepends=True)
        return b"".join(line * (1 + (b"send_ok" in line)) for line in lines)


def late() -> type[MemoryLog]:
    """Answers one assign only after the client has given up; the client stays, because that changed nothing."""
    left = iter([5.5])
    assign = "list_committed_offsets"
    return answering(delay_s=lambda body: next(left, 0.0) if body["type"] == assign else 0.0)


def says(**fields: Any) -> type[MemoryLog]:
    """A node whose answers to sends have other fields."""
    return answering(send=lambda _, right: (right() or {}) | fields)


@pytest.mark.parametrize("value", [None, "1", True, 1.0], ids=repr)
def test_the_msg_id_of_an_answer_is_an_integer(value: Any) -> None:
    failure = str(VirtualRun(says(msg_id=value), time_limit_s=1).outcome.failure)
    assert f"the field msg_id is {orjson.dumps(value).decode()}, not an integer" in failure


def test_a_malformed_answer_before_the_operations_is_reported_whole() -> None:
    failure = str(
        VirtualRun(answering(topology=lambda *_: {"more": 1}), workload="broadcast").outcome.failure
    )
    assert "sent a malformed reply: nobody asked for the field more" in failure
    assert '"type": "topology_ok"' in failure


class MadeUpKeys(MemoryLog):
    """Hands out keys that nobody asked for."""

    keys = ("x", "", "999", "-1", "9" * 5000)

    def poll(self, offsets: dict[str, int]) -> dict[str, list[Any]]:
        return super().poll(offsets) | {key: [[0, 1]] for key in self.keys if key not in offsets}


SHORT: dict[str, Any] = {"time_limit_s": 2}
STRICT = SHORT | {"strict": True}
OTHERS = [None, "1", True, 1.0, {"1": 1}, [1], 10**6, -1]  # numbers that no request has
# A node and options of its run; exit status; what the verdict says, and what it does not.
TOLD: list[tuple[type[MemoryLog], dict[str, Any], int, str, str]] = [
    (
        Twice,
        SHORT,
        0,
        r"n0 sent \d+ answers to requests that had been answered before\. .*--strict refuses this",
        "✘",
    ),
    (Twice, STRICT, 1, "n1 sent .*no anomaly was found, but requests were answered more than", "•"),
    (MemoryLog, STRICT, 0, "✔ VALID", "answers"),
    (late(), {"time_limit_s": 10, "nodes": ("n0",)}, 0, "✔ VALID", "answers"),
    (MadeUpKeys, SHORT, 1, "✘ no-writer-of-value", "exceptions"),
    *(
        (says(in_reply_to=each), SHORT, 1, "send never succeeded: .* no answer in time", "•")
        for each in OTHERS
    ),
]


@pytest.mark.parametrize(("node", "options", "status", "said", "not_said"), TOLD)
def test_what_the_verdict_says_of_odd_answers(
    node: type[MemoryLog], options: dict[str, Any], status: int, said: str, not_said: str
) -> None:
    run = VirtualRun(node, **options)
    results, text = judged(run).results, verdict_of(run)
    assert exit_status(results, run.outcome.failure) == status
    assert re.search(said, text, re.DOTALL)
    assert not re.search(not_said, text)


def test_every_second_answer_is_counted_and_a_late_one_is_none() -> None:
    run = VirtualRun(Twice, **SHORT)
    sends = [op for op in run.history if op.f == "send" and op.type == "ok" and op.process % 2 == 0]
    assert judged(run).results["answers"]["repeated"]["n0"] == len(sends)
    waited = VirtualRun(late(), time_limit_s=10, nodes=("n0",))
    assert [op for op in waited.history if op.extra.get("error") == "net-timeout"]


def test_keys_that_nobody_asked_for_are_read_at_the_end() -> None:
    history = VirtualRun(MadeUpKeys, **SHORT).history
    finals = [op for op in history if "seek-to-beginning?" in op.extra and op.type == "ok"]
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
