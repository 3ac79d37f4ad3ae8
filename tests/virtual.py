"""The whole bench on a virtual clock: nodes are Python objects in this process, and nothing waits."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

import workloads
from bench.hosts import Host, OnLine
from bench.loop import VirtualLoop
from bench.options import TestOptions
from bench.run import Outcome, Run

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
    """A right kafka node; nodes that are given the same `logs` and `committed` behave as one."""

    def think_ns(self, body: dict[str, Any]) -> int:
        """How long it takes to answer."""
        return THINK_NS

    def __init__(self, name: str, shared: dict[str, Any]) -> None:
        self.name = name
        self.logs = shared.setdefault("logs", {})
        self.committed = shared.setdefault("committed", {})

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


class InProcessHost:
    """Runs one node object on the loop."""

    def __init__(self, loop, node, on_line):
        self.name = node.name
        self._loop, self._node, self._on_line = loop, node, on_line

    def start(self):
        """Nothing to start."""

    def postmortem(self):
        return "an object in this process"

    def deliver(self, message: bytes) -> None:
        message = orjson.loads(message)
        think_ns = self._node.think_ns(message["body"])
        self._loop.call_at(self._loop.now_ns() + think_ns, self._handle, message)

    def _handle(self, message):
        body = message["body"]
        reply = self._node.answer(body)
        if reply is not None:
            content = {"type": body["type"] + "_ok", "in_reply_to": body["msg_id"], **reply}
            line = {"src": self.name, "dest": message["src"], "body": content}
            self._on_line(self.name, orjson.dumps(line))


class InProcessHosts:
    def __init__(self, hosts):
        self._hosts = hosts
        self.stopped = False

    def start(self):
        return self._hosts

    def stop(self):
        self.stopped = True


class Silent:
    """A watcher that shows nothing."""

    def phase(self, name):
        """Not shown."""

    def trace(self, event, message):
        """Not shown."""


class Buffer(io.BytesIO):
    """A file whose content can still be read after it was closed."""

    content = b""

    def close(self) -> None:
        self.content = self.getvalue()
        super().close()


class VirtualRun:
    """One finished run and what it wrote."""

    def __init__(
        self,
        node_class: type[MemoryLog] = MemoryLog,
        make_host: Callable[[VirtualLoop, str, OnLine], Host] | None = None,
        **options: Any,
    ) -> None:
        chosen = replace(OPTIONS, **options)
        loop = VirtualLoop()
        shared: dict[str, Any] = {}

        def host_of_object(loop, name, on_line):
            return InProcessHost(loop, node_class(name, shared), on_line)

        def make_hosts(on_line, on_failure):
            make = make_host or host_of_object
            self.hosts = InProcessHosts([make(loop, name, on_line) for name in chosen.nodes])
            return self.hosts

        history_file, journal_file = Buffer(), Buffer()
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
