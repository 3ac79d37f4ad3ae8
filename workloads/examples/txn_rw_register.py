#!/usr/bin/env python3
"""txn-rw-register, totally available and read committed: every node has a copy, and tells others of its writes.

A node is one thread, so a transaction is done before the next one begins: no other sees half of it. The writes
of a transaction go to the others together, and again until they acknowledge. Each transaction has a stamp,
(counter, node), and of two writes of a key that with the greater stamp stays. So all copies agree which of two
transactions came last: that is what forbids dirty writes.
"""

from maelstrom_node import Node

RETRY_S = 1.0

node = Node()
counter = 0
registers = {}  # key -> [stamp, value]
owed = {}  # stamp -> [writes, nodes that have not acknowledged them]


@node.on("txn")
def txn(request):
    global counter
    done, writes = [], {}
    counter += 1
    stamp = (counter, node.id)
    for f, key, value in request["body"]["txn"]:
        if f == "w":
            writes[key] = value
            done.append([f, key, value])
        else:
            done.append([f, key, writes.get(key, registers.get(key, [None, None])[1])])
    store(stamp, list(writes.items()))
    node.reply(request, {"type": "txn_ok", "txn": done})
    if writes:
        owed[stamp] = [list(writes.items()), set(node.others)]
        tell(stamp)


def store(stamp, writes):
    """Apply writes, unless a greater stamp was there first."""
    for key, value in writes:
        known, _ = registers.get(key, [(0, ""), None])
        if stamp > known:
            registers[key] = [stamp, value]


def tell(stamp):
    writes, lacking = owed[stamp]

    def acknowledged_by(other):
        def acknowledged(_reply):
            lacking.discard(other)

        return acknowledged

    for other in sorted(lacking):
        body = {"type": "apply", "stamp": stamp, "writes": writes}
        node.call(other, body, acknowledged_by(other))


@node.on("apply")
def apply(request):
    global counter
    stamp = tuple(request["body"]["stamp"])
    counter = max(counter, stamp[0])
    store(stamp, request["body"]["writes"])
    node.reply(request, {"type": "apply_ok"})


def tell_again():
    for stamp in list(owed):
        if owed[stamp][1]:
            tell(stamp)
        else:
            del owed[stamp]


node.every(RETRY_S, tell_again)

if __name__ == "__main__":
    node.run()
