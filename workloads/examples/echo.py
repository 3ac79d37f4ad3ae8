#!/usr/bin/env python3
"""echo: the first challenge."""

from maelstrom_node import Node

node = Node()


@node.on("echo")
def echo(request):
    node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"]})


if __name__ == "__main__":
    node.run()
