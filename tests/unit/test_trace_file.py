"""The node's trace in a file: its lines, what a second life adds, and what is told of registers."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from leaderless.core.machine import Machine
from leaderless.core.messages import Cas, Get, Mismatch, Ok, Put, StoreAnswer, StoreCall
from leaderless.core.process import Process
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Clock, Context, Identity, Options, Trace
from leaderless.runtime.trace_file import TracedMachine, TraceFile

N0 = Identity("n0", ("n0", "n1"), "n0.a")


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_nodes_share_a_file_and_each_start_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    for node in ("n0", "n1", "n0"):
        TraceFile(path, node)("Fence", lambda epoch: {"epoch": epoch}, 3)
    assert [(line["node"], line["step"]) for line in lines(path)] == [
        *(("n0", "Start"), ("n0", "Fence")),
        *(("n1", "Start"), ("n1", "Fence")),
        *(("n0", "Start"), ("n0", "Fence")),
    ]
    assert lines(path)[1] == {"step": "Fence", "node": "n0", "epoch": 3}


def test_fields_are_made_only_when_somebody_listens() -> None:
    Trace()("Fence", lambda: pytest.fail("nobody listens"))


def asks(op: Get | Put | Cas) -> Process[None]:
    yield op


def test_changes_of_registers_are_told_by_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    strategy = LeaderlessLog(Context(N0, Clock(), Options()))
    machine: Machine = TracedMachine(TraceFile(path, "n0"), strategy)

    calls: list[tuple[Get | Put | Cas, Ok | Mismatch]] = [
        (Cas("head", None, {"a": 1, "b": 2}, create=True), Ok()),
        (Get("head"), Ok({"b": 2, "a": 1})),
        (Put("run/0", 1), Mismatch()),
        (Put("index", 1), Ok()),
    ]
    for op, outcome in calls:
        [effect] = machine.run(asks(op), 0.0)
        assert isinstance(effect, StoreCall)
        machine.step(StoreAnswer(effect.call, outcome), 0.1)
    _, asked, told, read, put = lines(path)
    assert asked == {
        **{"step": "Asked", "node": "n0", "register": "head", "old": None, "new": told["new"]},
        "value": {"a": 1, "b": 2},
    }
    assert read == told == {"step": "Told", "node": "n0", "register": "head", "new": asked["new"]}
    assert (put["step"], put["register"]) == ("Asked", "run/0")
