#!/usr/bin/env python3
"""lin-kv by Raft: nodes agree on one log of requests, and each node carries it out in its order.

After Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm (2014), figure 2. Places count
from 0: `commit` entries are committed, and `after` entries stand before those of a message. Reads are entries,
too. The node that a client asks hands the request to the leader, and answers when it has carried the entry out.

A node keeps term, vote and log in a file, so a kill loses none of them: the bench names a folder in
`NODE_FILES`. Without that variable all is in memory, and a kill may undo what was acknowledged. Nothing is
synced: files survive a process, not a machine. The log only grows: there are no snapshots.

Members change one at a time, as an entry (Ongaro's thesis, chapter 4). Who hears of no leader says `hello`.
The first nodes begin when each knows that no other has a log; a node that comes later waits to be added.
"""

import json
import os
import random
from pathlib import Path

from maelstrom_node import Node

HEARTBEAT_S = 0.1
ELECTION_S = 0.4  # the shortest patience with a leader; the longest is twice that
SILENT_S = 0.3  # a member that is silent for so long, and that a new node was not told of, has left
CLIENT_S = 0.9  # a client waits a second, and an answer to one that has given up mutes the node
BATCH = 100  # entries of a message
UNAVAILABLE, MISSING, MISMATCH = 11, 20, 22
FOLLOWER, CANDIDATE, LEADER = "follower", "candidate", "leader"


class Disk:
    """A file of lines, each a change of what a node keeps; without a folder it keeps nothing."""

    def __init__(self, folder, name):
        self.path, self.changes = folder and Path(folder, name), []
        if self.path and self.path.exists():
            content = self.path.read_bytes()
            # Nobody was told of a line that a kill tore.
            whole = content[: content.rfind(b"\n") + 1]
            os.truncate(self.path, len(whole))
            self.changes = [json.loads(line) for line in whole.splitlines()]

    def keep(self, **change):
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(json.dumps(change).encode() + b"\n")


class Raft(Node):
    def __init__(self):
        super().__init__()
        self.term, self.vote, self.log, self.members = 0, None, [], []
        self.role, self.leader, self.votes = FOLLOWER, None, set()
        self.commit, self.values, self.done = 0, {}, set()
        self.next, self.match, self.answered = {}, {}, {}  # what a leader knows of each node
        self.heard = self.patience = self.beat = 0.0
        self.looked = self.awake = 0.0
        self.asked = {}  # number of a request -> when it came, and the request
        self.number = random.getrandbits(48)  # those of an earlier life were others
        self.empty = {}  # a node without a log -> the nodes that its first init named
        for kind in ("read", "write", "cas"):
            self.on(kind)(self.request)
        for handle in (self.hello, self.submit):
            self.on(handle.__name__)(lambda m, do=handle: do(m["src"], m["body"]))
        for handle in (self.ask_vote, self.give_vote, self.append, self.appended):
            self.on(handle.__name__)(self.in_its_term(handle))
        self.every(0.02, self.look)

    def _init(self, request):
        super()._init(request)
        self.first = self.ids
        self.disk = Disk(os.environ.get("NODE_FILES"), f"{self.id}.jsonl")
        for change in self.disk.changes:
            self.replay(**change)
        if not self.disk.changes:
            self.disk.keep(first=self.first)
        self.looked = self.now
        self.wait()
        self.say_hello()

    def replay(self, first=None, term=None, vote=None, after=None, entries=()):
        """Carry out a change of the file."""
        if first:
            self.first = first
        if term is not None:
            self.term, self.vote = term, vote
        if after is not None:
            self.put(after, entries)

    def put(self, after, entries):
        """Let the log go on so. The newest entry with members counts, committed or not."""
        gone, self.log[after:] = self.log[after:], entries
        if any("members" in each for each in (*gone, *entries)):
            named = (each["members"] for each in reversed(self.log) if "members" in each)
            self.members = next(named, [])

    # Time

    def look(self):
        """Do what is due."""
        if self.id is None:
            return
        self.notice_time()
        for number in [n for n, (at, _) in self.asked.items() if self.now - at > CLIENT_S]:
            del self.asked[number]
        if self.role == LEADER:
            living = [each for each, at in self.answered.items() if self.now - at < 2 * ELECTION_S]
            if not self.is_majority([*living, self.id]):  # the others may follow another
                self.follow(None)
            elif self.now >= self.beat:
                self.replicate()
        elif self.now - self.heard > self.patience:
            self.follow(None)
            self.say_hello()
            if self.id in self.members:
                self.campaign()

    def notice_time(self):
        """A node that stood still reads requests of clients that have given up; these get no answer."""
        if self.now - self.looked > SILENT_S:
            self.awake = self.now + SILENT_S
        self.looked = self.now

    def wait(self):
        self.heard, self.patience = self.now, ELECTION_S * (1 + random.random())

    # Terms and votes

    def in_its_term(self, handle):
        """A message of a later term ends the term of this node."""

        def receive(message):
            src, body = message["src"], message["body"]
            if body["type"] == "ask_vote" and self.leader and self.now - self.heard < ELECTION_S:
                return  # there is a leader, so nobody else is needed (the thesis, section 4.2.3)
            if body["term"] > self.term:
                self.enter(body["term"], None)
                self.role, self.leader = FOLLOWER, None
            handle(src, body)

        return receive

    def enter(self, term, vote):
        self.term, self.vote = term, vote
        self.disk.keep(term=term, vote=vote)

    def follow(self, leader):
        self.role, self.leader = FOLLOWER, leader
        self.wait()

    def is_majority(self, names):
        return 2 * sum(each in names for each in self.members) > len(self.members)

    def tell(self, names, kind, **fields):
        for name in names:
            if name != self.id:
                self.send(name, {"type": kind, "term": self.term, **fields})

    def last(self):
        """How new this log is: a later term is newer, and in one term a longer log."""
        return [self.log[-1]["term"] if self.log else 0, len(self.log)]

    def campaign(self):
        self.enter(self.term + 1, self.id)
        self.role, self.votes = CANDIDATE, {self.id}
        self.tell(self.members, "ask_vote", last=self.last())
        self.count_votes()

    def ask_vote(self, src, body):
        is_free = self.vote in (None, src)
        if body["term"] == self.term and is_free and body["last"] >= self.last():
            self.enter(self.term, src)
            self.wait()
            self.tell([src], "give_vote")

    def give_vote(self, src, body):
        if self.role == CANDIDATE and body["term"] == self.term:
            self.votes.add(src)
            self.count_votes()

    def count_votes(self):
        if self.is_majority(self.votes):
            self.role, self.leader = LEADER, self.id
            self.next, self.match = {}, {}
            self.answered = dict.fromkeys(self.members, self.now)
            self.propose({})  # older entries are committed with this one

    # The log

    def propose(self, entry):
        self.write(len(self.log), [{"term": self.term, **entry}])
        self.replicate()

    def write(self, after, entries):
        """Change the log, and keep it before anybody hears of it."""
        self.put(after, entries)
        self.disk.keep(after=after, entries=entries)

    def replicate(self):
        self.beat = self.now + HEARTBEAT_S
        for name in self.members:
            self.send_entries(name)
        self.count_copies()

    def send_entries(self, name):
        """Send what a member lacks, as far as is known; if it lacks nothing, this is a heartbeat."""
        after = self.next.get(name, len(self.log) - 1)
        entries = self.log[after : after + BATCH]
        self.next[name] = after + len(entries)
        previous = self.log[after - 1]["term"] if after else 0
        more = {"previous": previous, "entries": entries, "commit": self.commit}
        self.tell([name], "append", after=after, **more)

    def append(self, src, body):
        after, entries = body["after"], body["entries"]
        if body["term"] < self.term:
            self.tell([src], "appended", has=None, lacks=len(self.log))
            return
        self.follow(src)
        if after > len(self.log) or (after and self.log[after - 1]["term"] != body["previous"]):
            self.tell([src], "appended", has=None, lacks=min(len(self.log), after - 1))
            return
        for place, entry in enumerate(entries, after):
            if place == len(self.log) or self.log[place]["term"] != entry["term"]:
                self.write(place, entries[place - after :])
                break
        self.carry_out(min(body["commit"], after + len(entries)))
        self.tell([src], "appended", has=after + len(entries))

    def appended(self, src, body):
        if self.role != LEADER or body["term"] != self.term:
            return
        self.answered[src] = self.now
        if body["has"] is None:
            self.next[src] = min(self.next[src], body["lacks"])
        else:
            self.match[src] = max(self.match.get(src, 0), body["has"])
            self.next[src] = max(self.next[src], body["has"])
        if self.next[src] < len(self.log):
            self.send_entries(src)
        self.count_copies()

    def count_copies(self):
        """Commit what most members have, if an entry of this term is its last."""
        lengths = self.match | {self.id: len(self.log)}
        for length in sorted(lengths.values(), reverse=True):
            having = [name for name in lengths if lengths[name] >= length]
            if length > self.commit and self.is_majority(having):
                if self.log[length - 1]["term"] == self.term:
                    self.carry_out(length)
                    self.replicate()  # the others learn of it
                return

    # Requests

    def request(self, request):
        self.notice_time()
        if self.now < self.awake:
            return
        if self.leader is None:
            self.reply(request, error(UNAVAILABLE, "there is no leader now"))
            return
        self.number += 1
        self.asked[self.number] = self.now, request
        entry = {"by": [self.id, self.number], "op": request["body"]}
        if self.role == LEADER:
            self.propose(entry)
        else:
            self.tell([self.leader], "submit", entry=entry)

    def submit(self, _src, body):
        if self.role == LEADER:
            self.propose(body["entry"])

    def carry_out(self, commit):
        """So many entries are committed: carry out those that are new."""
        while self.commit < commit:
            entry = self.log[self.commit]
            self.commit += 1
            by = tuple(entry.get("by", ()))
            if by and by not in self.done:  # the network may have doubled it
                self.done.add(by)
                answer = self.result(entry["op"])
                at, request = self.asked.pop(by[1], (0, None)) if by[0] == self.id else (0, None)
                if request and self.now - at < CLIENT_S:
                    self.reply(request, answer)

    def result(self, op):
        key, kind = json.dumps(op["key"]), op["type"]
        if kind != "write" and key not in self.values:
            return error(MISSING, "the key does not exist")
        if kind == "read":
            return {"type": "read_ok", "value": self.values[key]}
        if kind == "cas" and self.values[key] != op["from"]:
            return error(MISMATCH, f"the key has {json.dumps(self.values[key])}")
        self.values[key] = op["value" if kind == "write" else "to"]
        return {"type": f"{kind}_ok"}

    # Members

    def say_hello(self):
        names = dict.fromkeys([*self.first, *self.members])
        self.tell(names, "hello", name=self.id, first=self.first, empty=not self.log)
        self.begin()

    def hello(self, src, body):
        name = body["name"]
        if self.role == LEADER and name not in self.members:
            self.admit(name, body["first"])
        elif self.log and self.leader and src == name:
            self.send(self.leader, body)
        elif not self.log and body["empty"]:
            is_new = name not in self.empty
            self.empty[name] = body["first"]
            if is_new:
                self.say_hello()

    def begin(self):
        """Write the first entry, if every node that init named has none, and was told the same names."""
        alike = all(self.empty.get(each) == self.first for each in self.first if each != self.id)
        if not self.log and alike:
            self.write(0, [{"term": 0, "members": self.first}])
            self.patience = ELECTION_S * random.random()  # there has been no leader

    def admit(self, name, told):
        """Begin one change at most: a member that has left goes first, then the new one comes.

        `told`: the nodes that were there when the new one came.
        """
        is_changing = any("members" in each for each in self.log[self.commit :])
        if is_changing or not self.commit or self.log[self.commit - 1]["term"] != self.term:
            return
        silent = (m for m in self.members if self.now - self.answered.get(m, 0) > SILENT_S)
        left = next((each for each in silent if each not in (*told, self.id)), None)
        self.answered[name] = self.now
        stay = [each for each in self.members if each != left]
        self.propose({"members": stay if left else [*stay, name]})


def error(code, text):
    return {"type": "error", "code": code, "text": text}


if __name__ == "__main__":
    Raft().run()
