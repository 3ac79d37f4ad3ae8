#!/usr/bin/env python3
"""Votes as Raft does, with the same first timeout at every node; the values stay in the service lin-kv.

Half a second after `init` each node asks for votes. Where all do so at one instant each has voted for itself,
nobody wins, and the next try comes two to four seconds later. A node serves once it knows of a leader.
"""

import random

from maelstrom_node import Node

FIRST_TIMEOUT_S = 0.5
RETRY_S = 2
NOT_NOW = 11

node = Node()
leader = None
term = 0
votes = set()
deadline = None  # of this node's next candidacy


def look():
    global deadline, term, votes
    if node.id is None or leader is not None:
        return
    if deadline is None:
        deadline = node.now + FIRST_TIMEOUT_S
    elif node.now >= deadline:
        deadline = node.now + RETRY_S * (1 + random.random())
        term += 1
        votes = {node.id}
        count()
        for other in node.others:
            node.send(other, {"type": "vote_for_me", "term": term})


def count():
    if 2 * len(votes) > len(node.ids):
        follow(node.id)
        for other in node.others:
            node.send(other, {"type": "leader"})


def follow(name):
    global leader
    leader = name


@node.on("vote_for_me")
def vote_for_me(message):
    global term
    if message["body"]["term"] > term:
        term = message["body"]["term"]
        node.send(message["src"], {"type": "vote", "term": term})


@node.on("vote")
def vote(message):
    if message["body"]["term"] == term and leader is None:
        votes.add(message["src"])
        count()


@node.on("leader")
def new_leader(message):
    follow(message["src"])


def serve(request):
    if leader is None:
        node.reply(request, {"type": "error", "code": NOT_NOW, "text": "there is no leader yet"})
    else:
        node.forward(request, "lin-kv")


for kind in ("read", "write", "cas"):
    node.on(kind)(serve)
node.every(0.001, look)

if __name__ == "__main__":
    node.run()
