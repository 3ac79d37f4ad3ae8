#!/usr/bin/env python3
"""broadcast by gossip along the topology, and again until a neighbour has acknowledged.

A node owes each neighbour the messages that the neighbour may lack. It tells them at once, or collects them
for `--wait SECONDS` first: fewer messages, later. What is not acknowledged after `RETRY_S` is told again, so
nothing is lost under a partition. A node that is killed forgets everything.
"""

import sys

from maelstrom_node import Node

RETRY_S = 1.0  # longer than a message and its answer take
NEVER = float("-inf")

node = Node()
messages = set()
owed = {}  # neighbour -> message that it may lack -> when it was told
wait_s = float(sys.argv[2]) if sys.argv[1:2] == ["--wait"] else 0


@node.on("topology")
def topology(request):
    for neighbour in request["body"]["topology"].get(node.id, []):
        owed.setdefault(neighbour, dict.fromkeys(messages, NEVER))
    node.reply(request, {"type": "topology_ok"})


@node.on("broadcast")
def broadcast(request):
    node.reply(request, {"type": "broadcast_ok"})
    learn({request["body"]["message"]}, request["src"])


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "messages": sorted(messages)})


@node.on("gossip")
def gossip(request):
    node.reply(request, {"type": "gossip_ok"})
    learn(set(request["body"]["messages"]), request["src"])


def learn(told, teller):
    """Pass on what is new, except to the node that told it."""
    new = told - messages
    messages.update(new)
    for neighbour in owed.keys() - {teller}:
        owed[neighbour].update(dict.fromkeys(new, NEVER))
    if new and not wait_s:
        tell_all()


def tell_all():
    """Tell every neighbour what it may lack, except what it was told just now."""
    for neighbour, told_at in owed.items():
        some = sorted(message for message, when in told_at.items() if when <= node.now - RETRY_S)
        if some:
            told_at.update(dict.fromkeys(some, node.now))
            tell(neighbour, some)


def tell(neighbour, some):
    def acknowledged(_reply):
        for message in some:
            owed[neighbour].pop(message, None)

    node.call(neighbour, {"type": "gossip", "messages": some}, acknowledged)


node.every(wait_s or RETRY_S / 2, tell_all)

if __name__ == "__main__":
    node.run()
