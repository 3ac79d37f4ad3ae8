#!/usr/bin/env python3
"""Counts on each node alone, so the same IDs come from all of them."""

from itertools import count

from maelstrom_node import Node

node = Node()
numbers = count()


@node.on("generate")
def generate(request):
    node.reply(request, {"type": "generate_ok", "id": next(numbers)})


node.run()
