"""The bench's `Run` with toy nodes on a virtual clock, to test the bench itself; nothing waits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

import workloads
from bench.loop import VirtualLoop
from bench.options import TestOptions
from bench.run import Outcome, Run
from simulation.files import Ledger
from simulation.hosts import SimulatedHost, SimulatedHosts
from simulation.nodes import MakeSpeaker, Speaker
from simulation.world import Silent

THINK_NS = 100_000  # what a node takes for a message

OPTIONS = TestOptions(
    workload="kafka",
    bin="in-process",
    args=(),
    nodes=("n0", "n1"),
    concurrency=4,
    rate=100.0,
    time_limit_s=10,
    seed="1",
)


class MemoryLog:
    """A right kafka node (a `Speaker`); nodes that are given the same `shared` behave as one."""

    def __init__(self, name: str, shared: dict[str, Any]) -> None:
        self.name = name
        self.logs = shared.setdefault("logs", {})
        self.committed = shared.setdefault("committed", {})
        self._answers: list[tuple[float, bytes]] = []  # when it may be said, what

    def delay_s(self, body: dict[str, Any]) -> float:
        """How long an answer is held back."""
        return 0.0

    def receive(self, line: bytes, now: float) -> None:
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


class VirtualRun:
    """One finished run and what it wrote. `make` gives the nodes, if not `node_class`."""

    def __init__(
        self,
        node_class: Callable[[str, dict[str, Any]], Speaker] = MemoryLog,
        make: MakeSpeaker | None = None,
        **options: Any,
    ) -> None:
        chosen = replace(OPTIONS, **options)
        loop = VirtualLoop()
        shared: dict[str, Any] = {}
        make = make or (lambda name, _start: node_class(name, shared))

        def make_hosts(on_line, on_failure):
            self.hosts = [
                SimulatedHost(name, loop, on_line, make, lambda: THINK_NS) for name in chosen.nodes
            ]
            return SimulatedHosts(self.hosts)

        history_file, journal_file = Ledger(keep=True), Ledger(keep=True)
        self.run = Run(
            chosen,
            lambda setting: workloads.build(chosen.workload, setting),
            loop,
            make_hosts,
            history_file=history_file,
            journal_file=journal_file,
            watcher=Silent(),
        )
        self.outcome: Outcome = self.run.execute()
        self.history = self.outcome.history
        self.history_jsonl = history_file.content
        self.journal = journal_file.content
        self.seconds = loop.now_ns() / 1e9

    def check(self) -> dict[str, Any]:
        """The workload's result."""
        return self.run.workload.check(self.history, self.run.options.as_dict())
