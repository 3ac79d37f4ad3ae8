"""A node for Maelstrom in a few lines: JSON lines in, JSON lines out, nothing but Python's standard library.

    node = Node()

    @node.on("echo")
    def echo(request):
        node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"]})

    node.run()

One message at a time, no threads. A handler that needs an answer from elsewhere gives `call` a function for it,
and `every` calls a function again and again.
"""

import json
import os
import select
import sys
import time
from itertools import count

NOT_SUPPORTED = 10


class Node:
    """Speaks Maelstrom's protocol; `id` and `ids` are known once `init` has come. `now` is in seconds."""

    def __init__(self):
        self.id = None
        self.ids = []
        self.now = 0.0
        self._handlers = {"init": self._init}
        self._waiting = {}
        self._msg_ids = count(1)
        self._timers = []  # [seconds, when it is due, function]

    def on(self, kind):
        """Decorate the handler of a type of request."""

        def register(handler):
            self._handlers[kind] = handler
            return handler

        return register

    def every(self, seconds, do):
        """Call `do` every so many seconds."""
        self._timers.append([seconds, None, do])

    def send(self, dest, body):
        """Send a message that nobody answers."""
        print(json.dumps({"src": self.id, "dest": dest, "body": body}), flush=True)

    def reply(self, request, body):
        """Answer a request."""
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
        """Serve until stdin ends."""
        unread = b""
        while True:
            due = self.tick(time.monotonic())
            wait_s = None if due is None else max(0, due - time.monotonic())
            if select.select([sys.stdin], [], [], wait_s)[0]:
                chunk = os.read(sys.stdin.fileno(), 65536)
                if not chunk:
                    return
                self.now = time.monotonic()
                *lines, unread = (unread + chunk).split(b"\n")
                for line in lines:
                    self.receive(json.loads(line))

    def tick(self, now):
        """It is `now`: do what is due, and tell when something is due next, or None."""
        self.now = now
        for timer in self._timers:
            seconds, due, do = timer
            if due is not None and due <= now:
                do()
            if due is None or due <= now:
                timer[1] = now + seconds
        return min((due for _, due, _ in self._timers), default=None)

    def receive(self, message):
        """Take one message."""
        body = message["body"]
        if self.id is None and body["type"] != "init":
            return  # from a node that does not know that this one was killed; it has no name to answer in yet
        if "in_reply_to" in body:
            self._waiting.pop(body["in_reply_to"], _ignore)(body)
        elif body["type"] in self._handlers:
            self._handlers[body["type"]](message)
        else:
            text = f"this node does not know messages of type {body['type']}"
            self.reply(message, {"type": "error", "code": NOT_SUPPORTED, "text": text})

    def _init(self, request):
        self.id = request["body"]["node_id"]
        self.ids = request["body"]["node_ids"]
        self.reply(request, {"type": "init_ok"})

    @property
    def others(self):
        """All nodes but this one."""
        return [each for each in self.ids if each != self.id]


def _content(body):
    return {key: value for key, value in body.items() if key not in ("in_reply_to", "msg_id")}


def _ignore(_body):
    """A reply that nobody waits for any more."""
