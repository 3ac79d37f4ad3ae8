#!/usr/bin/env python3
"""A right kafka node: each key's log is one lin-kv register, appended to by compare-and-set.

Simple and slow on purpose: the bench is tested with it, and the faulty nodes beside it are it with
one thing broken. `Node` handles a line at a time; a request is a generator that yields what it
asks lin-kv.
"""

import json
import sys

LOG, COMMITTED = "log/", "committed/"
NO_KEY, NOT_SUPPORTED = 20, 10


class Node:
    """One node; `main` feeds it lines."""

    def __init__(self):
        self.name = None
        self.last_id = 0
        self.handlers = {
            "send": self.append_message,
            "poll": self.poll,
            "commit_offsets": self.commit_offsets,
            "list_committed_offsets": self.list_committed_offsets,
        }
        self.waiting = {}  # msg_id of a request to lin-kv -> (the generator, the client's message)

    def send(self, dest, body):
        print(json.dumps({"src": self.name, "dest": dest, "body": body}), flush=True)

    def receive(self, message):
        body = message["body"]
        if body["type"] == "init":
            self.name = body["node_id"]
            self.send(message["src"], {"type": "init_ok", "in_reply_to": body["msg_id"]})
        elif "in_reply_to" in body:
            steps, client = self.waiting.pop(body["in_reply_to"])
            self.resume(steps, client, body)
        else:
            self.resume(self.serve(body), message, None)

    def resume(self, steps, client, answer):
        try:
            request = steps.send(answer)
        except StopIteration as done:
            reply = done.value | {"in_reply_to": client["body"]["msg_id"]}
            self.send(client["src"], reply)
            return
        self.last_id += 1
        self.waiting[self.last_id] = steps, client
        self.send("lin-kv", request | {"msg_id": self.last_id})

    def serve(self, body):
        handler = self.handlers.get(body["type"])
        if handler is None:
            return {"type": "error", "code": NOT_SUPPORTED, "text": body["type"]}
        return (yield from handler(body)) | {"type": body["type"] + "_ok"}

    def append_message(self, body):
        offset = yield from self.append(body["key"], body["msg"])
        return {"offset": offset}

    def append(self, key, message):
        """Append to the key's log; the offset is the message's place in it."""
        while True:
            log = yield from self.read(LOG + key, [])
            if (yield from self.cas(LOG + key, log, [*log, message])):
                return len(log)

    def poll(self, body):
        messages = {}
        for key, offset in body["offsets"].items():
            log = yield from self.read(LOG + key, [])
            if offset < len(log):
                pairs = enumerate(log[offset:], offset)
                messages[key] = [[place, message] for place, message in pairs]
        return {"msgs": messages}

    def commit_offsets(self, body):
        for key, offset in body["offsets"].items():
            while True:
                known = yield from self.read(COMMITTED + key, None)
                if known is not None and known >= offset:
                    break
                if (yield from self.cas(COMMITTED + key, known, offset)):
                    break
        return {}

    def list_committed_offsets(self, body):
        offsets = {}
        for key in body["keys"]:
            offset = yield from self.read(COMMITTED + key, None)
            if offset is not None:
                offsets[key] = offset
        return {"offsets": offsets}

    def read(self, key, default):
        answer = yield {"type": "read", "key": key}
        return default if answer.get("code") == NO_KEY else answer["value"]

    def cas(self, key, old, new):
        request = {"type": "cas", "key": key, "from": old, "to": new, "create_if_not_exists": True}
        answer = yield request
        return answer["type"] == "cas_ok"


def main(node):
    for line in sys.stdin:
        node.receive(json.loads(line))


if __name__ == "__main__":
    main(Node())
