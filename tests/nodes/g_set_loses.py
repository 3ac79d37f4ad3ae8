#!/usr/bin/env python3
"""Takes the set of whoever spoke last for its own, instead of joining it."""

from maelstrom_node import Node

node = Node()
elements = []


@node.on("add")
def add(request):
    elements.append(request["body"]["element"])
    node.reply(request, {"type": "add_ok"})
    for other in node.others:
        node.send(other, {"type": "replace", "elements": elements})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "value": elements})


@node.on("replace")
def replace(message):
    elements[:] = message["body"]["elements"]


node.run()
