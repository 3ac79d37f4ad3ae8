"""A node in a few lines, for the nodes in this folder: JSON lines in, JSON lines out.

These nodes are programs of their own and import nothing of the project: the bench meets them as it meets a
stranger's node.

    node = Node()

    @node.on("echo")
    def echo(request):
        node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"]})

    node.run()

One message at a time, no threads: a handler that needs an answer from elsewhere passes `call` a
function for it.
"""

import json
import sys
from itertools import count


class Node:
    """Speaks Maelstrom's protocol; `id` and `ids` are known once `init` has come."""

    def __init__(self):
        self.id = None
        self.ids = []
        self._handlers = {"init": self._init}
        self._waiting = {}
        self._msg_ids = count(1)

    def on(self, kind):
        """Decorate the handler of a type of request."""

        def register(handler):
            self._handlers[kind] = handler
            return handler

        return register

    def send(self, dest, body):
        print(json.dumps({"src": self.id, "dest": dest, "body": body}), flush=True)

    def reply(self, request, body):
        self.send(request["src"], body | {"in_reply_to": request["body"]["msg_id"]})

    def call(self, dest, body, then):
        """Send a request; `then` gets the body of the reply, whenever it comes."""
        msg_id = next(self._msg_ids)
        self._waiting[msg_id] = then
        self.send(dest, body | {"msg_id": msg_id})

    def forward(self, request, dest):
        """Let another answer in this node's name, errors and all."""
        body = {key: value for key, value in request["body"].items() if key != "msg_id"}
        self.call(dest, body, lambda answer: self.reply(request, _content(answer)))

    def run(self):
        for line in sys.stdin:
            self.receive(json.loads(line))

    def receive(self, message):
        body = message["body"]
        if "in_reply_to" in body:
            self._waiting.pop(body["in_reply_to"], _ignore)(body)
        else:
            self._handlers[body["type"]](message)

    def _init(self, request):
        self.id = request["body"]["node_id"]
        self.ids = request["body"]["node_ids"]
        self.reply(request, {"type": "init_ok"})


def _content(body):
    return {key: value for key, value in body.items() if key not in ("in_reply_to", "msg_id")}


def _ignore(_body):
    """A reply that nobody waits for any more."""
