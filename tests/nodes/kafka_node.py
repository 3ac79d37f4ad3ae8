#!/usr/bin/env python3
"""A correct kafka node for a cluster of one: a list per key. The faulty ones each change a step."""

from collections import defaultdict

from maelstrom_node import Node


class KafkaNode(Node):
    """Answers the four RPCs from memory; a subclass overrides what it wants to do wrong."""

    def __init__(self):
        super().__init__()
        self.logs = defaultdict(list)  # key -> [[offset, message], ...]
        self.committed = {}
        self.on("send")(self.handle_send)
        self.on("poll")(self.handle_poll)
        self.on("commit_offsets")(self.handle_commit)
        self.on("list_committed_offsets")(self.handle_list)

    def append(self, key, message):
        """Store a message, and return its offset."""
        log = self.logs[key]
        log.append([len(log), message])
        return log[-1][0]

    def read(self, key, offset):
        """The messages of a key from an offset on."""
        return [pair for pair in self.logs[key] if pair[0] >= offset]

    def handle_send(self, request):
        body = request["body"]
        self.reply(request, {"type": "send_ok", "offset": self.append(body["key"], body["msg"])})

    def handle_poll(self, request):
        wanted = request["body"]["offsets"].items()
        found = {key: self.read(key, offset) for key, offset in wanted}
        messages = {key: pairs for key, pairs in found.items() if pairs}
        self.reply(request, {"type": "poll_ok", "msgs": messages})

    def handle_commit(self, request):
        for key, offset in request["body"]["offsets"].items():
            self.committed[key] = max(offset, self.committed.get(key, 0))
        self.reply(request, {"type": "commit_offsets_ok"})

    def handle_list(self, request):
        known = [key for key in request["body"]["keys"] if key in self.committed]
        offsets = {key: self.committed[key] for key in known}
        self.reply(request, {"type": "list_committed_offsets_ok", "offsets": offsets})


if __name__ == "__main__":
    KafkaNode().run()
