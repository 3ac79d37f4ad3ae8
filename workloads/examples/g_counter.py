#!/usr/bin/env python3
"""g-counter in the service seq-kv: each node writes its own sum under its own name; a read adds all of them.

seq-kv may show an old state, but none older than this node's last change, and a write acts on the newest. So a
read writes something new first, and all that it reads afterwards is up to date. One write of the sum is under
way at a time: two could overtake each other, and the older sum would stay.
"""

from maelstrom_node import Node

STORE = "seq-kv"

node = Node()
mine = None  # the sum of this node, once it is known
adds = []  # requests that are not in the store yet
is_writing = False
reads = 0


@node.on("add")
def add(request):
    adds.append(request)
    if mine is None:
        node.call(STORE, {"type": "read", "key": node.id}, start)
    else:
        write()


def start(reply):
    """A node that was killed goes on with the sum in the store."""
    global mine
    if mine is None:
        mine = reply.get("value", 0)
    write()


def write():
    """Put all waiting adds into the store together, and acknowledge them."""
    global mine, is_writing
    if is_writing or not adds:
        return
    is_writing = True
    served = adds.copy()
    adds.clear()
    mine += sum(request["body"]["delta"] for request in served)

    def written(_reply):
        global is_writing
        is_writing = False
        for request in served:
            node.reply(request, {"type": "add_ok"})
        write()

    node.call(STORE, {"type": "write", "key": node.id, "value": mine}, written)


@node.on("read")
def read(request):
    global reads
    reads += 1
    totals = []

    def got(reply):
        totals.append(reply.get("value", 0))  # a node that never added has no key
        if len(totals) == len(node.ids):
            node.reply(request, {"type": "read_ok", "value": sum(totals)})

    def renewed(_reply):
        for other in node.ids:
            node.call(STORE, {"type": "read", "key": other}, got)

    fresh = {"type": "write", "key": f"reads of {node.id}", "value": [reads, request]}
    node.call(STORE, fresh, renewed)


if __name__ == "__main__":
    node.run()
