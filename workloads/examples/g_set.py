#!/usr/bin/env python3
"""g-set as a CRDT: every node sends its whole set to all others twice a second, and joins what it gets.

Joining is a union, so messages may be lost, come twice or in any order.
"""

from maelstrom_node import Node

node = Node()
elements = set()


@node.on("add")
def add(request):
    elements.add(request["body"]["element"])
    node.reply(request, {"type": "add_ok"})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "value": sorted(elements)})


@node.on("join")
def join(message):
    elements.update(message["body"]["elements"])


def tell_all():
    for other in node.others:
        node.send(other, {"type": "join", "elements": sorted(elements)})


node.every(0.5, tell_all)

if __name__ == "__main__":
    node.run()
