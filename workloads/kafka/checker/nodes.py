"""What single nodes owe their clients, beyond the real checker.

`unreplicated`: a node cannot serve an acknowledged message. At the end of a run every worker is assigned all
keys from the beginning, and polls. From there on the workers of each node must read every acknowledged message
of every key. The real checker demands only that *some* worker reads it, so it passes nodes that answer each
client from a log of their own. Where a node has no worker, nobody can tell.

`lost-commit`: a node lists less than it had acknowledged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from runs.facts import grouped
from runs.history import keywords
from workloads.interface import Case, Placement
from workloads.kafka.checker.observed import READING, Facts, Key, Message, scalar
from workloads.kafka.client import COMMITTED

REWIND = "seek-to-beginning?"


def asked_nodes(facts: Facts, place: Placement) -> set[str]:
    """The nodes that a worker was to read everything from; with fewer workers than nodes, not all of them."""
    return {place.node(int(process)) for _, process in _rewinds(facts)}


def unreplicated_cases(facts: Facts, place: Placement, nodes: Sequence[str]) -> Iterator[Case]:
    """One case for each acknowledged message and one of `nodes` through which it was not read at the end."""
    read = _read_at_the_end(facts, place)
    asked = asked_nodes(facts, place)
    return (
        keywords(key=key, value=message, node=node, writer=facts.writers[key][message].op)
        for key, sent in facts.sent("ok").items()
        for node in nodes
        if node in asked
        for message in sent
        if message not in read.get((node, key), ())
    )


def lost_commit_cases(facts: Facts, place: Placement) -> Iterator[Case]:
    """`lost-commit`: a node lists no offset of a key, or one that is too low.

    It must list what it had acknowledged last, and all that was committed since then, at any node. A poll
    commits the highest offset of each key. One of unknown outcome may have committed anything, so with one
    nothing is said. A node that is killed may forget them.
    """
    polls = [each for each in facts.transactions if each.op.f in READING]
    if any(each.type == "info" for each in polls):
        return
    commits = grouped(
        (key, each) for each in polls for key, pairs in each.polls.items() if pairs.messages
    )
    for at, op in enumerate(facts.history):
        listed = op.extra.get(COMMITTED) if op.f == "assign" and op.type == "ok" else None
        for key, offset in listed.items() if isinstance(listed, dict) else ():
            made = [each for each in commits.get(scalar(key), ()) if (each.invoked_at or 0) < at]
            own = [
                each
                for each in made
                if each.completed_at < facts.invocations.get(at, 0)
                and place.node(int(each.op.process)) == place.node(int(op.process))
            ]
            floor = min(
                (
                    max(each.polls[scalar(key)].highest, 0)
                    for each in made
                    if own and each.completed_at > (own[-1].invoked_at or 0)
                ),
                default=-1,
            )
            if own and (offset is None or offset < floor):
                pairs = own[-1].polls[scalar(key)]
                told = keywords(committed=pairs.highest, listed=offset, ops=[own[-1].op, op])
                yield keywords(key=key, value=pairs.messages[-1]) | told


def _rewinds(facts: Facts) -> Iterator[tuple[int, Any]]:
    """Where, and of which process, each assignment from the beginning was completed."""
    return (
        (at, op.process)
        for at, op in enumerate(facts.history)
        if op.f == "assign" and op.type == "ok" and op.extra.get(REWIND)
    )


def _read_at_the_end(facts: Facts, place: Placement) -> dict[tuple[str, Key], set[Message]]:
    since = {process: at for at, process in reversed([*_rewinds(facts)])}  # the first one counts
    read: dict[tuple[str, Key], set[Message]] = {}
    for transaction in facts.transactions:
        process = transaction.op.process
        if transaction.type == "ok" and transaction.completed_at > since.get(
            process, len(facts.history)
        ):
            for key, pairs in transaction.polls.items():
                read.setdefault((place.node(int(process)), key), set()).update(pairs.messages)
    return read
