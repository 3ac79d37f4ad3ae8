#!/usr/bin/env python3
"""An echo node that answers something else."""

from maelstrom_node import Node

node = Node()


@node.on("echo")
def echo(request):
    node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"][::-1]})


node.run()
