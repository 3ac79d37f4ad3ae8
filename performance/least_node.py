"""The least that a node must do: the same messages as a real one, and nothing else.

    python -m performance.least_node cas|leaderless

It stands beside `performance.node_throughput`, to show which part of a node's CPU is the price of its messages.
It checks no input, waits for nothing, expects that the store answers each call at once and with success, and
forgets all when it ends. It is alone: `leaderless` has no other node, so it never reads the head.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import orjson

Body = dict[str, Any]
Asked = tuple[str, Body]  # a request: by whom, and its body
CHUNK_BYTES = 1 << 16
SEAL_BYTES = 8_192  # as `leaderless.core.shape.Shape` has it


class LeastNode(ABC):
    """Lines in, lines out: `out` has those to be written."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.logs: dict[str, list[Any]] = {}
        self._me = ""
        self._waiting_calls: dict[int, Callable[[Body], None]] = {}
        self._calls = 0

    def receive(self, line: bytes) -> None:
        """Take a line."""
        message = orjson.loads(line)
        src, body = message["src"], message["body"]
        kind = body["type"]
        if "in_reply_to" in body:
            self._waiting_calls.pop(body["in_reply_to"])(body)
        elif kind == "send":
            self.send(src, body)
        elif kind == "poll":
            self.poll(src, body)
        else:
            self._me = body["node_id"]
            self.answer(src, body, {"type": "init_ok"})

    @abstractmethod
    def send(self, src: str, body: Body) -> None:
        """Take a message of a client."""

    @abstractmethod
    def poll(self, src: str, body: Body) -> None:
        """Take a poll."""

    def chunk_ends(self) -> None:  # noqa: B027 - some have nothing to do then
        """All lines of a chunk were taken."""

    def answer(self, src: str, asked: Body, body: Body) -> None:
        """Answer a client."""
        body["in_reply_to"] = asked["msg_id"]
        self._say(src, body)

    def call(self, body: Body, answered: Callable[[Body], None]) -> None:
        """Ask the store."""
        self._calls += 1
        body["msg_id"] = self._calls
        self._waiting_calls[self._calls] = answered
        self._say("lin-kv", body)

    def _say(self, dest: str, body: Body) -> None:
        message = {"src": self._me, "dest": dest, "body": body}
        self.out.append(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))


class LeastCas(LeastNode):
    """The messages of `leaderless.core.strategies.cas`: a register a key, one call a poll and key."""

    def __init__(self) -> None:
        super().__init__()
        self._sends: dict[str, list[Asked]] = {}

    def send(self, src: str, body: Body) -> None:
        key = body["key"]
        if key in self._sends:
            self._sends[key].append((src, body))
        else:
            self._sends[key] = [(src, body)]
            self._append(key)

    def _append(self, key: str) -> None:
        sends, self._sends[key] = self._sends[key], []
        old = self.logs.get(key, [])
        new = old + [["n", 0, body["msg"]] for _, body in sends]

        def appended(_: Body) -> None:
            self.logs[key] = new
            for offset, (src, asked) in enumerate(sends, len(old)):
                self.answer(src, asked, {"type": "send_ok", "offset": offset})
            if self._sends[key]:
                self._append(key)
            else:
                del self._sends[key]

        cas = {"type": "cas", "key": f"log/{key}", "from": old, "to": new}
        self.call(cas | {"create_if_not_exists": not old}, appended)

    def poll(self, src: str, body: Body) -> None:
        [(key, first)] = body["offsets"].items()

        def found(reply: Body) -> None:
            log = reply.get("value", ())
            pairs = [[at, log[at][2]] for at in range(first, len(log))]
            self.answer(src, body, {"type": "poll_ok", "msgs": {key: pairs} if pairs else {}})

        self.call({"type": "read", "key": f"log/{key}"}, found)


class LeastLeaderless(LeastNode):
    """The messages of the log on one head: all sends of a chunk in one call, polls from memory."""

    def __init__(self) -> None:
        super().__init__()
        self._sends: list[Asked] = []
        self._committing = False
        self._tail: list[Any] = []
        self._tail_bytes = self._version = 0

    def send(self, src: str, body: Body) -> None:
        self._sends.append((src, body))

    def poll(self, src: str, body: Body) -> None:
        msgs = {}
        for key, first in body["offsets"].items():
            log = self.logs.get(key, ())
            if first < len(log):
                msgs[key] = [[at, log[at]] for at in range(first, len(log))]
        self.answer(src, body, {"type": "poll_ok", "msgs": msgs})

    def chunk_ends(self) -> None:
        if self._sends and not self._committing:
            self._commit()

    def _commit(self) -> None:
        sends, self._sends, self._committing = self._sends, [], True
        appends: dict[str, list[Any]] = {}
        for _, body in sends:
            appends.setdefault(body["key"], []).append(body["msg"])
        blocks = {key: [len(self.logs.get(key, ())), msgs] for key, msgs in appends.items()}
        entry = ["n", self._version, blocks, {}]
        self._tail_bytes += len(orjson.dumps(entry))
        tail = [*self._tail, entry] if self._tail_bytes < SEAL_BYTES else [entry]
        self._tail_bytes *= len(tail) > 1

        def committed(_: Body) -> None:
            self._tail, self._committing = tail, False
            for src, asked in sends:
                log = self.logs.setdefault(asked["key"], [])
                self.answer(src, asked, {"type": "send_ok", "offset": len(log)})
                log.append(asked["msg"])

        old = {"version": self._version, "tail": self._tail}
        self._version += 1
        new = {"version": self._version, "tail": tail}
        cas = {"type": "cas", "key": "head", "from": old, "to": new}
        self.call(cas | {"create_if_not_exists": True}, committed)


LEAST: dict[str, Callable[[], LeastNode]] = {"cas": LeastCas, "leaderless": LeastLeaderless}


def main(strategy: str) -> None:
    """Serve until stdin ends."""
    node, rest = LEAST[strategy](), b""
    while chunk := os.read(0, CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            node.receive(line)
        node.chunk_ends()
        data = b"".join(node.out)
        node.out.clear()
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
