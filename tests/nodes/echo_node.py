#!/usr/bin/env python3
"""A correct echo node."""

from maelstrom_node import Node

node = Node()


@node.on("echo")
def echo(request):
    node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"]})


node.run()
