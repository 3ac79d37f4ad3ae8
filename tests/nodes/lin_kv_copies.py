#!/usr/bin/env python3
"""Each node has a copy of all registers, and tells the others what it has written: two nodes write at once."""

from maelstrom_node import Node

MISSING, MISMATCH = 20, 22
node = Node()
values = {}


@node.on("read")
def read(request):
    key = request["body"]["key"]
    if key in values:
        node.reply(request, {"type": "read_ok", "value": values[key]})
    else:
        node.reply(request, {"type": "error", "code": MISSING, "text": "no such key"})


@node.on("write")
def write(request):
    change(request, request["body"]["value"])


@node.on("cas")
def cas(request):
    body = request["body"]
    if values.get(body["key"]) == body["from"]:
        change(request, body["to"])
    else:
        node.reply(request, {"type": "error", "code": MISMATCH, "text": "another value"})


def change(request, value):
    key = request["body"]["key"]
    values[key] = value
    for other in node.others:
        node.send(other, {"type": "copy", "key": key, "value": value})
    node.reply(request, {"type": f"{request['body']['type']}_ok"})


@node.on("copy")
def copy(message):
    values[message["body"]["key"]] = message["body"]["value"]


node.run()
