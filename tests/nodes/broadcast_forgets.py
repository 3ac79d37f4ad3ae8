#!/usr/bin/env python3
"""Tells every other node once, and never again: what a partition drops stays unknown there."""

from maelstrom_node import Node

node = Node()
messages = []


@node.on("topology")
def topology(request):
    node.reply(request, {"type": "topology_ok"})


@node.on("broadcast")
def broadcast(request):
    node.reply(request, {"type": "broadcast_ok"})
    messages.append(request["body"]["message"])
    for other in node.others:
        node.send(other, {"type": "gossip", "message": request["body"]["message"]})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "messages": messages})


@node.on("gossip")
def gossip(message):
    messages.append(message["body"]["message"])


node.run()
