#!/usr/bin/env python3
"""broadcast with few messages: one hub, the first node, numbers all messages and tells them to everyone.

A node tells the hub its new messages once in `FLUSH_S`, and the hub tells all nodes what is new once in
`HUB_S`. Nobody acknowledges. A message has arrived at the hub when the hub tells it; until then its node tells
it again after `RETRY_S`. A node that sees a gap in the numbers, or hears nothing, asks the hub for the rest.

So nothing spreads while the hub is cut off. A hub that was killed begins again at number 0, and no other node
takes its messages.
"""

from maelstrom_node import Node

FLUSH_S, HUB_S = 0.1, 0.18
RETRY_S = 1.0  # longer than a message and its answer take
NEVER = float("-inf")

node = Node()
numbered = []  # the messages in the hub's order, as far as this node knows
known = set()  # those, and the messages of clients here
mine = {}  # message of a client here that the hub has not told yet -> when this node told it
# How many messages the hub has told; when this node heard it last.
state = {"told": 0, "heard": 0.0}


@node.on("topology")
def topology(request):
    node.reply(request, {"type": "topology_ok"})


@node.on("broadcast")
def broadcast(request):
    node.reply(request, {"type": "broadcast_ok"})
    message = request["body"]["message"]
    if message not in known:
        known.add(message)
        mine[message] = NEVER


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "messages": sorted(known)})


@node.on("new")
def new(request):
    """The hub gets messages of a node, some perhaps again."""
    fresh = [message for message in request["body"]["messages"] if message not in known]
    take(len(numbered), fresh)


@node.on("tell")
def tell(request):
    """A node gets messages of the hub, of which it may know the first."""
    state["heard"] = node.now
    first = request["body"]["first"]
    if first > len(numbered):
        ask()
    else:
        take(first, request["body"]["messages"])


@node.on("ask")
def asked(request):
    """The hub is asked for its messages from a number on."""
    tell_from(request["src"], request["body"]["first"])


def is_hub():
    return node.ids[:1] == [node.id]


def take(first, messages):
    """Take what is new of messages that have the numbers from `first` on."""
    for message in messages[len(numbered) - first :]:
        numbered.append(message)
        known.add(message)
        mine.pop(message, None)


def tell_from(dest, first):
    if first < len(numbered):
        node.send(dest, {"type": "tell", "first": first, "messages": numbered[first:]})


def ask():
    node.send(node.ids[0], {"type": "ask", "first": len(numbered)})


def flush():
    """Tell the hub what it may lack; the hub numbers its own."""
    some = [message for message, when in mine.items() if when <= node.now - RETRY_S]
    if is_hub():
        take(len(numbered), some)
    elif some:
        mine.update(dict.fromkeys(some, node.now))
        node.send(node.ids[0], {"type": "new", "messages": some})


def tell_all():
    if is_hub():
        for other in node.others:
            tell_from(other, state["told"])
        state["told"] = len(numbered)


def ask_if_silent():
    if node.ids and not is_hub() and node.now - state["heard"] > RETRY_S:
        ask()


node.every(FLUSH_S, flush)
node.every(HUB_S, tell_all)
node.every(RETRY_S, ask_if_silent)

if __name__ == "__main__":
    node.run()
