"""A stranger's node on the bench: right, naive, and slow, because it serves one request after the other.

On the real tool such nodes are valid at small latencies. At 100 ms they answer clients that have given up, and
go mute. The node is the one of tests/nodes, run in this process on the virtual clock.
"""

import json
from functools import cache
from typing import Any

import pytest

from bench.failure import RunFailure
from bench.run import RunResult
from runs.operations import operation_count
from simulation.hosts import NodeSession
from tests.nodes.kafka_lin_kv import Node
from tests.toy_log import VirtualRun, judged, verdict_of


class OneByOne(Node):
    """The node as if under one lock. Its output is kept instead of printed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[bytes] = []
        self.requests: list[dict[str, Any]] = []

    def receive(self, message: dict[str, Any]) -> None:
        if "in_reply_to" in message["body"]:
            super().receive(message)
        else:
            self.requests.append(message)
        while self.requests and not self.waiting:
            super().receive(self.requests.pop(0))

    def send(self, dest: str, body: dict[str, Any]) -> None:
        self.lines.append(
            json.dumps({"src": self.name, "dest": dest, "body": body}).encode() + b"\n"
        )


class Stranger(NodeSession):
    """The node as a `NodeSession`; it has no timers."""

    deadline = None

    def __init__(self) -> None:
        self._node = OneByOne()

    def receive(self, line: bytes, _now: float, _arrived_at: float | None = None) -> None:
        self._node.receive(json.loads(line))

    def pass_time(self, now: float) -> None:
        """Nothing happens by itself."""

    def take(self) -> bytes:
        lines, self._node.lines = self._node.lines, []
        return b"".join(lines)


@cache
def run(latency_ms: int, arrival: str = "in-turn", **options: Any) -> VirtualRun:
    return VirtualRun(
        make=lambda _name, _start: Stranger(),
        nodes=("n0", "n1", "n2", "n3", "n4"),
        concurrency=20,
        rate=200.0,
        time_limit_s=10,
        latency_ms=latency_ms,
        latency_dist="exponential",
        arrival=arrival,
        **options,
    )


def operations(done: VirtualRun) -> int:
    return operation_count(done.history)


def mute(done: VirtualRun) -> set[str]:
    return {op.value["node"] for op in done.history if op.f == "mute"}


@pytest.mark.parametrize(
    ("latency_ms", "faults"),
    [(0, {}), (10, {"nemesis": ("partition",), "nemesis_interval_s": 3.0})],
)
def test_it_is_valid_at_small_latencies(latency_ms: int, faults: dict[str, Any]) -> None:
    done = run(latency_ms, **faults)
    assert (done.check()["valid?"], mute(done)) == (True, set())


def test_at_100_ms_it_goes_mute_and_messages_are_unseen() -> None:
    done = run(100)
    assert mute(done)
    assert "unseen" in done.check()["bad-error-types"]


def test_the_verdict_and_the_results_name_its_mute_nodes() -> None:
    done = run(100)
    faults, text = judged(done).results["faults"], verdict_of(done)
    assert len({each["text"] for each in faults if each["fault"] == "mute"}) == len(mute(done))
    assert all(f"Node {node} is mute from " in text for node in mute(done))
    assert text.count("Answer within that time or not at all") == 1


def test_a_lenient_bench_counts_its_late_answers_also_if_it_was_stopped() -> None:
    done = run(100, lenient=True)
    failure = RunFailure("Stopped.", interrupted=True)
    stopped = RunResult(done.history, done.network, failure, done.outcome.history_origin_ns)
    found, text = judged(done, stopped).results, verdict_of(done)
    assert found["dropped-lines"] == judged(done).results["dropped-lines"] != {}
    assert (found["valid?"], mute(done)) == ("unknown", set())
    lines = [f"{count} lines of {node} were" for node, count in found["dropped-lines"].items()]
    assert [line for line in lines if line not in text] == []


def test_in_turn_it_gets_less_done_than_when_each_message_arrives_when_it_is_due() -> None:
    assert operations(run(100)) < 0.9 * operations(run(100, "when-due"))
