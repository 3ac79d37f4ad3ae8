#!/usr/bin/env python3
"""unique-ids without asking anybody: who gave it out, since when, and the how manieth it is.

The start is part of an ID, so that a node which is killed and started again does not repeat itself.
"""

import time
from itertools import count

from maelstrom_node import Node

node = Node()
started = time.time_ns()
numbers = count()


@node.on("generate")
def generate(request):
    node.reply(request, {"type": "generate_ok", "id": f"{node.id}-{started}-{next(numbers)}"})


if __name__ == "__main__":
    node.run()
