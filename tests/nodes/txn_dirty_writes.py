#!/usr/bin/env python3
"""Tells others of each write by itself, and each node takes them as they come: writes of two transactions mix.

Reads of a transaction see what came in between. Even read uncommitted forbids writes that mix.
"""

from maelstrom_node import Node

node = Node()
lists = {}


@node.on("txn")
def txn(request):
    done = []
    for f, key, value in request["body"]["txn"]:
        if f == "append":
            lists.setdefault(key, []).append(value)
            for other in node.others:
                node.send(other, {"type": "append", "key": key, "value": value})
            done.append([f, key, value])
        else:
            done.append([f, key, list(lists.get(key, []))])
    node.reply(request, {"type": "txn_ok", "txn": done})


@node.on("append")
def append(message):
    lists.setdefault(message["body"]["key"], []).append(message["body"]["value"])


node.run()
