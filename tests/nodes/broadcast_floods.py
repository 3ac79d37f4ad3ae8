#!/usr/bin/env python3
"""Passes on what is new to its neighbours, once: right while a message finds a way round each partition."""

from maelstrom_node import Node

node = Node()
messages = set()
neighbours = []


@node.on("topology")
def topology(request):
    neighbours.extend(request["body"]["topology"][node.id])
    node.reply(request, {"type": "topology_ok"})


@node.on("broadcast")
def broadcast(request):
    node.reply(request, {"type": "broadcast_ok"})
    learn(request)


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "messages": sorted(messages)})


@node.on("gossip")
def learn(message):
    new = message["body"]["message"]
    if new not in messages:
        messages.add(new)
        for neighbour in neighbours:
            node.send(neighbour, {"type": "gossip", "message": new})


node.run()
