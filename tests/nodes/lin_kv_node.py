#!/usr/bin/env python3
"""A correct lin-kv node: everything is asked of the service lin-kv."""

from maelstrom_node import Node


class LinKvNode(Node):
    def __init__(self):
        super().__init__()
        for kind in ("read", "write", "cas"):
            self.on(kind)(self.handle)

    def handle(self, request):
        self.forward(request, "lin-kv")


if __name__ == "__main__":
    LinKvNode().run()
