#!/usr/bin/env python3
"""Applies the writes of some transactions and then says that they failed: aborted reads."""

from maelstrom_node import Node

CONFLICT = 30

node = Node()
registers = {}
count = 0


@node.on("txn")
def txn(request):
    global count
    count += 1
    done = []
    for f, key, value in request["body"]["txn"]:
        if f == "w":
            registers[key] = value
        done.append([f, key, registers.get(key)])
    if count % 5 == 0:
        node.reply(request, {"type": "error", "code": CONFLICT, "text": "try again"})
    else:
        node.reply(request, {"type": "txn_ok", "txn": done})


node.run()
