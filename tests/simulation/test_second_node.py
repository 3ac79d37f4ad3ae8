"""Nodes of ours and of a second implementation in one cluster; a node is the other one after each start."""

import json
from collections import Counter
from collections.abc import Generator
from contextlib import nullcontext
from typing import Any

import anyio
import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.records import Head, head_of
from leaderless.core.messages import Heading
from leaderless.core.shape import Shape
from leaderless.store.format import format_of
from leaderless.store.memory import MemoryStore
from leaderless.upkeep.fsck import check
from leaderless.upkeep.laws import Laws
from simulation import strangers
from simulation.hosts import NodeSession
from simulation.nodes import new_session
from simulation.registers import Store
from tests.scripted import ROOT, node_of
from tests.second import second_log
from tests.toy_log import VirtualRun

SMALL = Shape(seal_entries=4, segments_per_run=2, page_children=2)
MADE = Head(Heading(version=1, by="nobody", shape=SMALL), []).value
FAULTS = ("kill", "partition", "pause")
OPTIONS: dict[str, Any] = {
    "nodes": ("n0", "n1", "n2"),
    "concurrency": 6,
    "rate": 100.0,
    "time_limit_s": 6,
    "latency_ms": 5,
    "nemesis": FAULTS,
    "nemesis_interval_s": 0.7,
    "strict": True,
}
second = node_of(ROOT / "workloads/examples/second_node.py")


class Mixed(VirtualRun):
    """A run whose registers are judged with every change; `entries` counts those of each implementation."""

    def __init__(self, seed: str) -> None:
        self.entries: Counter[str] = Counter()
        self.laws = Laws()
        self.laws.changed("head", MADE)
        self.store = Store(self._changed, {"head": (MADE,)})
        super().__init__(make=self._node, seed=seed, **OPTIONS)

    def _node(self, name: str, start: int) -> NodeSession:
        if (int(name[1:]) + start) % 2:
            return new_session("leaderless", start)
        return second(name, start)

    def _services(self) -> Any:
        return {**super()._services(), "lin-kv": self.store}

    def _changed(self, register: str, _old: Any, new: Any) -> None:
        for entry in self.laws.changed(register, new):
            self.entries["ours" if ".i" in entry.writer else "second"] += 1


async def findings(registers: dict[str, Any]) -> list[Any]:
    """What a check of the log finds in these registers."""
    store = MemoryStore()
    await store.write("format", format_of(head_of(registers["head"]).shape, "a test"))
    for name, value in registers.items():
        await store.write(name, json.dumps(value).encode())
    return [*(await check(store)).findings]


@pytest.mark.parametrize("seed", ["1", "7", "10"])
def test_two_implementations_share_a_log(seed: str) -> None:
    run = Mixed(seed)
    assert run.outcome.failure is None
    assert {op.f for op in run.history if op.process == "nemesis"} >= {"kill", "start-partition"}
    assert run.check()["valid?"] is True
    assert min(run.entries["ours"], run.entries["second"]) > 10
    folders = {name.partition("/")[0] for name in run.store.registers}
    assert folders >= {"segment", "run", "page", "compacted", "committed"}
    assert anyio.run(findings, run.store.registers) == []


def test_one_that_lets_go_of_a_tail_before_its_segment_stands_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seal(self: Any) -> Generator[Any, Any, int]:
        yield ("read", "head")
        return len(self.head["entries"])

    monkeypatch.setattr(second_log.Log, "_seal", seal)
    monkeypatch.setattr(strangers, "_own_modules", lambda _: nullcontext())  # it is the nodes' too
    with pytest.raises(InvariantBroken, match="CommittedReadable"):
        Mixed("1")
