#!/usr/bin/env python3
"""Tells its neighbours all that it knows when it learns something, never again: right if the end is calm."""

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
    learn({request["body"]["message"]})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "messages": sorted(messages)})


@node.on("gossip")
def gossip(message):
    learn(set(message["body"]["messages"]))


def learn(told):
    if told - messages:
        messages.update(told)
        for neighbour in neighbours:
            node.send(neighbour, {"type": "gossip", "messages": sorted(messages)})


node.run()
