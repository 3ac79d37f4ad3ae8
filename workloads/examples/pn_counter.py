#!/usr/bin/env python3
"""pn-counter as a CRDT (it serves g-counter too): every node keeps what each node has added so far.

Only a node itself changes its own entry, `[number of adds, their sum]`. Of two states of an entry the one with
more adds is newer, so messages may be lost, come twice or in any order, and nothing is counted twice.
"""

from maelstrom_node import Node

node = Node()
entries = {}  # node -> [adds, sum]


@node.on("add")
def add(request):
    adds, total = entries.get(node.id, [0, 0])
    entries[node.id] = [adds + 1, total + request["body"]["delta"]]
    node.reply(request, {"type": "add_ok"})


@node.on("read")
def read(request):
    total = sum(total for _, total in entries.values())
    node.reply(request, {"type": "read_ok", "value": total})


@node.on("join")
def join(message):
    for other, entry in message["body"]["entries"].items():
        entries[other] = max(entry, entries.get(other, [0, 0]))


def tell_all():
    for other in node.others:
        node.send(other, {"type": "join", "entries": entries})


node.every(0.5, tell_all)

if __name__ == "__main__":
    node.run()
