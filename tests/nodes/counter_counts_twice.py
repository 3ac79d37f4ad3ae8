#!/usr/bin/env python3
"""Tells others of an add until they acknowledge it, and adds whatever it is told, again and again."""

from maelstrom_node import Node

node = Node()
total = 0


@node.on("add")
def add(request):
    change(request["body"]["delta"])
    node.reply(request, {"type": "add_ok"})
    for other in node.others:
        for _ in range(2):  # the first may be lost
            node.send(other, {"type": "change", "delta": request["body"]["delta"]})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "value": total})


@node.on("change")
def changed(message):
    change(message["body"]["delta"])


def change(delta):
    global total
    total += delta


node.run()
