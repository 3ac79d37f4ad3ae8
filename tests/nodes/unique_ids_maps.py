#!/usr/bin/env python3
"""Gives out maps, which have no order: the real tool cannot judge them."""

from maelstrom_node import Node

node = Node()
count = 0


@node.on("generate")
def generate(request):
    global count
    count += 1
    node.reply(request, {"type": "generate_ok", "id": {"node": node.id, "count": count}})


node.run()
