"""What the nodes of tests/mistakes/table.toml share. `stdin` gives messages; they use the rest if they like."""

import itertools
import json
import sys
import threading
import time  # noqa: F401 - for nodes

stdin = map(json.loads, sys.stdin)
nodes = []  # the names of all, this one first
_early = []
_numbers = itertools.count(1)


def say(src, dest, body):
    """Print a message."""
    print(json.dumps({"src": src, "dest": dest, "body": body}), flush=True)


def send(dest, body):
    """Send a message."""
    say(nodes[0], dest, body)


def reply(message, body):
    """Answer a request."""
    send(message["src"], {**body, "in_reply_to": message["body"]["msg_id"]})


def requests():
    """Messages, and the body of each, after `init`, which is answered here."""
    while message := _early.pop(0) if _early else next(stdin, None):
        body = message["body"]
        if body["type"] == "init":
            others = (each for each in body["node_ids"] if each != body["node_id"])
            nodes[:] = [body["node_id"], *others]
            reply(message, {"type": "init_ok"})
        else:
            yield message, body


def ask(dest, body):
    """Send a request, and return the body of its answer. What else comes meanwhile waits."""
    number = next(_numbers)
    send(dest, {**body, "msg_id": number})
    for message in stdin:
        if message["body"].get("in_reply_to") == number:
            return message["body"]
        _early.append(message)
    sys.exit()


def wait(seconds):
    """Wait so long by the clock of the bench: with --latency 1000 a message takes a second."""
    for _ in range(0, seconds, 2):
        ask("lin-kv", {"type": "read", "key": 0})


def hang():
    """Do nothing any more."""
    threading.Event().wait()
