#!/usr/bin/env python3
"""Reads the sum in seq-kv, adds, and writes it back: of two nodes that do so at once, one loses its add."""

from maelstrom_node import Node

STORE, SUM = "seq-kv", "sum"

node = Node()


@node.on("add")
def add(request):
    def got(reply):
        total = reply.get("value", 0) + request["body"]["delta"]
        node.call(STORE, {"type": "write", "key": SUM, "value": total}, written)

    def written(_reply):
        node.reply(request, {"type": "add_ok"})

    node.call(STORE, {"type": "read", "key": SUM}, got)


@node.on("read")
def read(request):
    def got(reply):
        node.reply(request, {"type": "read_ok", "value": reply.get("value", 0)})

    node.call(STORE, {"type": "read", "key": SUM}, got)


node.run()
