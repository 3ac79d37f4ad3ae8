#!/usr/bin/env python3
"""Every list begins with an element that nobody appended, and some registers hold what nobody wrote."""

from maelstrom_node import Node

NOBODYS = -1

node = Node()
values = {}


@node.on("txn")
def txn(request):
    done = []
    for f, key, value in request["body"]["txn"]:
        if f == "append":
            values[key] = [*values.get(key, [NOBODYS]), value]
        elif f == "w":
            values[key] = value if value % 5 else NOBODYS
        done.append([f, key, values.get(key) if f == "r" else value])
    node.reply(request, {"type": "txn_ok", "txn": done})


node.run()
