#!/usr/bin/env python3
"""Answers a read with the last value this node has seen itself: stale once another node writes."""

from lin_kv_node import LinKvNode


class Stale(LinKvNode):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def handle(self, request):
        body = request["body"]
        if body["type"] == "read" and body["key"] in self.seen:
            self.reply(request, {"type": "read_ok", "value": self.seen[body["key"]]})
        else:
            super().handle(request)
        if body["type"] == "write":
            self.seen[body["key"]] = body["value"]


Stale().run()
