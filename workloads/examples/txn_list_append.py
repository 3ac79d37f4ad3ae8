#!/usr/bin/env python3
"""txn-list-append, strictly serializable: the whole database is one value in the service lin-kv.

A transaction reads the database, and puts the changed one in its place by compare-and-set. If another
transaction was faster, it begins again. Simple, slow, and right as long as the store is.
"""

from maelstrom_node import Node

STORE, ROOT = "lin-kv", "database"

node = Node()


@node.on("txn")
def txn(request):
    def got(reply):
        database = reply.get("value", {})
        after, done = execute(database, request["body"]["txn"])
        change = {"type": "cas", "key": ROOT, "from": database, "to": after}
        node.call(STORE, {**change, "create_if_not_exists": True}, lambda reply: put(reply, done))

    def put(reply, done):
        if reply["type"] == "cas_ok":
            node.reply(request, {"type": "txn_ok", "txn": done})
        else:
            begin()

    def begin():
        node.call(STORE, {"type": "read", "key": ROOT}, got)

    begin()


def execute(database, txn):
    """The database after a transaction, and the transaction with its reads filled in."""
    after, done = dict(database), []
    for f, key, value in txn:
        name = str(key)
        if f == "append":
            after[name] = [*after.get(name, []), value]
            done.append([f, key, value])
        else:
            done.append([f, key, after.get(name)])
    return after, done


if __name__ == "__main__":
    node.run()
