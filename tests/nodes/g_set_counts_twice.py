#!/usr/bin/env python3
"""Keeps a list where a set is asked for: an element that is added again is there twice."""

from maelstrom_node import Node

node = Node()
elements = []


@node.on("add")
def add(request):
    elements.append(request["body"]["element"])
    node.reply(request, {"type": "add_ok"})


@node.on("read")
def read(request):
    node.reply(request, {"type": "read_ok", "value": elements})


node.run()
