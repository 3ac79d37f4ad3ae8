#!/usr/bin/env python3
"""kafka on our log, by another program: a node that shares lin-kv with ours, by docs/SPEC.md.

One request after the other: what came meanwhile shares a batch. Every request is answered from a view that was
read after it came.
"""

import second_log
from maelstrom_node import Node
from second_log import CONFLICT, FENCED, FIELDS, IN_THE_LOG, MISSING, OK, UNKNOWN, Log, Silent

STORE = "lin-kv"
TIMEOUT, UNAVAILABLE = 0, 11
PATIENCE_S = 1.0  # with one call of the store
CODES = {20: MISSING, 22: CONFLICT}
APPENDS = ("send", "commit_offsets")

node = Node()
log = None
waiting = []  # requests that nobody serves yet
call = None  # [the generator that waits for the store, until when]


def take(request):
    """Serve a request with all others that wait, when those before them are served."""
    waiting.append(request)
    if call is None:
        go_on(serve(), None)


for kind in ("send", "poll", "commit_offsets", "list_committed_offsets"):
    node.on(kind)(take)


def serve():
    """Serve what waits, until nothing does; yields operations of the store."""
    global log
    log = log or Log(node.id)
    while waiting:
        served = waiting.copy()
        waiting.clear()
        try:
            yield from append([each for each in served if each["body"]["type"] in APPENDS])
            yield from read([each for each in served if each["body"]["type"] not in APPENDS])
        except Silent:
            pass  # no answer is none that could be wrong


def append(requests):
    """Append what they ask for as one batch, and answer them."""
    if not requests:
        return
    appends, commits, places = {}, {}, []
    for each in requests:
        body = each["body"]
        if body["type"] == "send":
            messages = appends.setdefault(body["key"], [])
            places.append(len(messages))
            messages.append(body["msg"])
        else:
            places.append(None)
            for key, offset in body["offsets"].items():
                commits[key] = max(offset, commits.get(key, offset))
    fate, firsts = yield from log.append(appends, commits)
    for each, place in zip(requests, places, strict=True):
        if fate != IN_THE_LOG:
            code = UNAVAILABLE if fate == FENCED else TIMEOUT
            node.reply(each, {"type": "error", "code": code, "text": fate})
        elif place is None:
            node.reply(each, {"type": "commit_offsets_ok"})
        else:
            offset = firsts[each["body"]["key"]] + place
            node.reply(each, {"type": "send_ok", "offset": offset})


def read(requests):
    """Answer them from a view that is newer than they are."""
    if requests:
        yield from log.refresh()
    for each in requests:
        body = each["body"]
        if body["type"] == "poll":
            msgs = {
                key: [
                    [at, msg] for at, msg in enumerate(log.messages.get(key, [])[offset:], offset)
                ]
                for key, offset in body["offsets"].items()
            }
            node.reply(each, {"type": "poll_ok", "msgs": msgs})
        else:
            found = yield from committed_offsets()
            offsets = {key: found[key] for key in body["keys"] if key in found}
            node.reply(each, {"type": "list_committed_offsets_ok", "offsets": offsets})


def committed_offsets():
    """Those in registers, and those in the log up to where registers leave them out (section 14)."""
    registers = []
    for number in range(log.head["shape"][FIELDS.index("offset_registers")]):
        name = f"committed/{number}"
        registers.append((yield from second_log.read(name)) or {"slot": 0, "offsets": {}})
    if max(each["slot"] for each in registers) > log.slot:
        yield from log.refresh()
    found = dict(log.committed)
    for each in registers:
        for key, offset in each["offsets"].items():
            found[key] = max(offset, found.get(key, offset))
    return found


def go_on(steps, outcome):
    """Carry out the next operation of the store."""
    global call
    call = None
    try:
        kind, name, *values = steps.send(outcome)
    except StopIteration:
        return
    mine = call = [steps, node.now + PATIENCE_S]
    body = {"type": "read", "key": name}
    if kind == "replace":
        old, new = values
        body = {
            "type": "cas",
            "key": name,
            "from": old,
            "to": new,
            "create_if_not_exists": old is None,
        }

    def answered(reply):
        if call is mine:
            outcome = CODES.get(reply["code"], UNKNOWN) if reply["type"] == "error" else OK
            go_on(steps, (outcome, reply.get("value")))

    node.call(STORE, body, answered)


def look():
    """Take a call that has no answer for one that never will."""
    if call and node.now >= call[1]:
        go_on(call[0], (UNKNOWN, None))


node.every(0.1, look)

if __name__ == "__main__":
    node.run()
