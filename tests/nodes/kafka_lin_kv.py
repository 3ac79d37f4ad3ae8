#!/usr/bin/env python3
"""A right kafka node: each key's log is one lin-kv register, appended to by compare-and-set.

Simple and slow on purpose: the bench is tested with it, and the faulty nodes beside it are it with
one thing broken. `Node` handles a line at a time; a request is a generator that yields what it
asks lin-kv.
"""

import json
import sys
from collections.abc import Callable, Generator
from typing import Any

Body = dict[str, Any]
Steps = Generator[Body, Any, Body]  # what it asks lin-kv, and the answer in the end

LOG, COMMITTED = "log/", "committed/"
NO_KEY, NOT_SUPPORTED = 20, 10


class Node:
    """One node; `main` feeds it lines."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.last_id = 0
        self.handlers: dict[str, Callable[[Body], Steps]] = {
            "send": self.append_message,
            "poll": self.poll,
            "commit_offsets": self.commit_offsets,
            "list_committed_offsets": self.list_committed_offsets,
        }
        self.waiting: dict[
            int, tuple[Steps, Body]
        ] = {}  # msg_id of a request to lin-kv -> (the generator, the client's message)

    def send(self, dest: str, body: Body) -> None:
        print(json.dumps({"src": self.name, "dest": dest, "body": body}), flush=True)

    def receive(self, message: Body) -> None:
        body = message["body"]
        if body["type"] == "init":
            self.name = body["node_id"]
            self.send(message["src"], {"type": "init_ok", "in_reply_to": body["msg_id"]})
        elif "in_reply_to" in body:
            steps, client = self.waiting.pop(body["in_reply_to"])
            self.resume(steps, client, body)
        else:
            self.resume(self.serve(body), message, None)

    def resume(self, steps: Steps, client: Body, answer: Body | None) -> None:
        try:
            request = steps.send(answer)
        except StopIteration as done:
            reply = done.value | {"in_reply_to": client["body"]["msg_id"]}
            self.send(client["src"], reply)
            return
        self.last_id += 1
        self.waiting[self.last_id] = steps, client
        self.send("lin-kv", request | {"msg_id": self.last_id})

    def serve(self, body: Body) -> Steps:
        handler = self.handlers.get(body["type"])
        if handler is None:
            return {"type": "error", "code": NOT_SUPPORTED, "text": body["type"]}
        return (yield from handler(body)) | {"type": body["type"] + "_ok"}

    def append_message(self, body: Body) -> Steps:
        offset = yield from self.append(body["key"], body["msg"])
        return {"offset": offset}

    def append(self, key: str, message: Any) -> Generator[Body, Any, int]:
        """Append to the key's log; the offset is the message's place in it."""
        while True:
            log = yield from self.read(LOG + key, [])
            if (yield from self.cas(LOG + key, log, [*log, message])):
                return len(log)

    def poll(self, body: Body) -> Steps:
        messages = {}
        for key, offset in body["offsets"].items():
            log = yield from self.read(LOG + key, [])
            if offset < len(log):
                pairs = enumerate(log[offset:], offset)
                messages[key] = [[place, message] for place, message in pairs]
        return {"msgs": messages}

    def commit_offsets(self, body: Body) -> Steps:
        for key, offset in body["offsets"].items():
            while True:
                known = yield from self.read(COMMITTED + key, None)
                if known is not None and known >= offset:
                    break
                if (yield from self.cas(COMMITTED + key, known, offset)):
                    break
        return {}

    def list_committed_offsets(self, body: Body) -> Steps:
        offsets = {}
        for key in body["keys"]:
            offset = yield from self.read(COMMITTED + key, None)
            if offset is not None:
                offsets[key] = offset
        return {"offsets": offsets}

    def read(self, key: str, default: Any) -> Generator[Body, Any, Any]:
        answer = yield {"type": "read", "key": key}
        return default if answer.get("code") == NO_KEY else answer["value"]

    def cas(self, key: str, old: Any, new: Any) -> Generator[Body, Any, bool]:
        request = {"type": "cas", "key": key, "from": old, "to": new, "create_if_not_exists": True}
        answer = yield request
        done: bool = answer["type"] == "cas_ok"
        return done


def main(node: Node) -> None:
    for line in sys.stdin:
        node.receive(json.loads(line))


if __name__ == "__main__":
    main(Node())
