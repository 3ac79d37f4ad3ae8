"""A kafka node in a few lines, right or broken by a subclass, and runs of the bench with such nodes.

The bench itself is tested with them, so they share nothing with the real node.
"""

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from bench.net import WHEN_DUE
from bench.options import TestOptions
from bench.run import RunResult
from bench.verdict.checkers import judge
from bench.verdict.judgement import Judgement
from bench.verdict.printing import print_verdict
from runs.facts import Results, Settings, Told
from runs.figures import measure
from simulation.hosts import MakeNode, NodeSession
from simulation.nodes import StrategyMaker, new_session
from simulation.run import SimulatedRun

OPTIONS = TestOptions(
    workload="kafka",
    bin="in-process",
    args=(),
    nodes=("n0", "n1"),
    concurrency=4,
    rate=100.0,
    time_limit_s=10,
    seed="1",
    arrival=WHEN_DUE,  # messages overtake one another more often than in turn
)


class MemoryLog(NodeSession):
    """A right kafka node (a `NodeSession`); nodes that are given the same `shared` behave as one."""

    def __init__(self, name: str, shared: dict[str, Any]) -> None:
        self.name = name
        self.logs = shared.setdefault("logs", {})
        self.committed = shared.setdefault("committed", {})
        self._answers: list[tuple[float, bytes]] = []  # when it may be written, what
        self._now = 0.0

    def delay_s(self, body: dict[str, Any]) -> float:
        """How long an answer is held back."""
        return 0.0

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        message = orjson.loads(line)
        body = message["body"]
        reply = self.answer(body)
        if reply is not None:
            content = {"type": body["type"] + "_ok", "in_reply_to": body["msg_id"], **reply}
            answer = {"src": self.name, "dest": message["src"], "body": content}
            self._answers.append((now + self.delay_s(body), orjson.dumps(answer) + b"\n"))
        self.pass_time(now)

    @property
    def deadline(self) -> float | None:
        return min((at for at, _ in self._answers), default=None)

    def pass_time(self, now: float) -> None:
        self._now = now

    def take(self) -> bytes:
        due = [line for at, line in self._answers if at <= self._now]
        self._answers = [each for each in self._answers if each[0] > self._now]
        return b"".join(due)

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """The reply to one request, or None for silence."""
        match body["type"]:
            case "init":
                return {}
            case "send":
                log = self.logs.setdefault(body["key"], [])
                log.append([len(log), body["msg"]])
                return {"offset": len(log) - 1}
            case "poll":
                return {"msgs": self.poll(body["offsets"])}
            case "commit_offsets":
                self.committed.update(body["offsets"])
                return {}
            case "list_committed_offsets":
                known = self.committed
                return {"offsets": {key: known[key] for key in body["keys"] if key in known}}
        raise AssertionError(body)

    def poll(self, offsets: dict[str, int]) -> dict[str, list[Any]]:
        found = {key: self.logs.get(key, [])[offset:] for key, offset in offsets.items()}
        return {key: pairs for key, pairs in found.items() if pairs}


Answer = dict[str, Any] | None
Odd = Callable[[dict[str, Any], Callable[[], Answer]], Answer]


def answering(
    *, delay_s: Callable[[dict[str, Any]], float] = lambda _: 0.0, **odd: Odd
) -> type[MemoryLog]:
    """A node that answers requests of some types otherwise.

    Args:
        delay_s: how long the answer to a request is held back.
        odd: by the type of a request, a function of its body and of what carries it out rightly.
    """

    class Node(MemoryLog):
        def answer(self, body: dict[str, Any]) -> Answer:
            right = partial(super().answer, body)
            return odd[body["type"]](body, right) if body["type"] in odd else right()

        def delay_s(self, body: dict[str, Any]) -> float:
            return delay_s(body)

    return Node


def silent(*_: Any) -> None:
    """Neither carries a request out nor answers it."""


def refusing(code: int, text: str = "no") -> Odd:
    """Does not carry a request out, and answers with an error."""
    return lambda *_: {"type": "error", "code": code, "text": text}


NEVER_ANSWERS = answering(
    send=silent, poll=silent, commit_offsets=silent, list_committed_offsets=silent
)


class VirtualRun(SimulatedRun):
    """A finished run, its history and journal. `make` gives the nodes, if not `node_class`."""

    def __init__(
        self,
        node_class: Callable[[str, dict[str, Any]], NodeSession] = MemoryLog,
        make: MakeNode | None = None,
        **options: Any,
    ) -> None:
        shared: dict[str, Any] = {}
        make = make or (lambda name, _start: node_class(name, shared))
        super().__init__(replace(OPTIONS, **options), make, keep=True)
        self.outcome: RunResult = self.execute()
        self.history = self.outcome.history


def run_of(strategy: str | StrategyMaker, **options: Any) -> VirtualRun:
    """A run of the real node; see `VirtualRun` for the options."""
    return VirtualRun(make=lambda _name, start: new_session(strategy, start), **options)


def judged(run: VirtualRun, outcome: RunResult | None = None) -> Judgement:
    """The judgement of a run, or of another `outcome` of it; reasons are found in its journal."""
    lines = run.journal_file.content.splitlines()
    return judge(
        outcome or run.outcome, run.options, run.workload, lambda: map(orjson.loads, lines)
    )


def verdict_of(run: VirtualRun, outcome: RunResult | None = None) -> str:
    """The verdict of a run for people, on wide lines."""
    found, written = judged(run, outcome), io.StringIO()
    told = Told(
        Settings("simulation", time_limit_s=run.options.time_limit_s), Results(found.results)
    )
    print_verdict(
        Console(file=written, width=1000),
        Path("run"),
        found,
        outcome or run.outcome,
        run.options,
        figures=measure(found.history, (), told),
    )
    return written.getvalue()
