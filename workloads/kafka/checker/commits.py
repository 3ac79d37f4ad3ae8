"""`lost-commit`, beyond the real checker: a node lists less than the offsets whose commit it has acknowledged.

A node lists no offset of a key, or a lower one than it had acknowledged itself and all that was committed since
then, at any node. So the last commit may count, or the highest, and a node may be behind the others. A poll
commits the highest offset of each key. One of unknown outcome may have committed anything, so nothing is said
behind it, nor where a history lacks what was listed, as the real tool's does.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from runs.history import Op
from runs.keyword import keywords
from workloads.interface import Placement
from workloads.kafka.checker.observed import (
    READING,
    Case,
    Facts,
    Key,
    Message,
    Transaction,
    scalar,
)
from workloads.kafka.client import COMMITTED


class Commit(NamedTuple):
    """A node acknowledged an offset of a key, between two positions of the history."""

    invoked_at: int
    completed_at: int
    node: str
    offset: int
    message: Message
    op: Op


def lost_commit_cases(facts: Facts, place: Placement) -> Iterator[Case]:
    """One case for each key of an assignment whose listed offset is too low."""
    done: defaultdict[Key, list[Commit]] = defaultdict(list)
    begun = {each.invoked_at: each for each in facts.transactions if each.op.f in READING}
    open_: dict[Any, Transaction | None] = {}  # by process; None for one that never completed
    for at, op in enumerate(facts.history):
        if op.type == "invoke" and op.f in READING:
            open_[op.process] = begun.get(at)
        elif op.f in READING and (poll := open_.pop(op.process, None)):
            if op.type == "info":
                return
            for commit in _commits(poll, place) if op.type == "ok" else ():
                done[commit[0]].append(commit[1])
        listed = op.extra.get(COMMITTED) if op.f == "assign" and op.type == "ok" else None
        if not isinstance(listed, dict) or not all(p and p.type != "info" for p in open_.values()):
            continue
        for key, offset in ((scalar(key), offset) for key, offset in listed.items()):
            own = _last_own(done[key], place.node(int(op.process)), facts.invocations[at])
            if own:
                under_way = (p.polls[key].highest for p in open_.values() if p and key in p.polls)
                floor = min([own.offset, *_since(own.invoked_at, done[key]), *under_way])
                if offset is None or offset < floor:
                    told = keywords(committed=own.offset, listed=offset, ops=[own.op, op])
                    yield keywords(key=key, value=own.message) | told


def _commits(poll: Transaction, place: Placement) -> Iterator[tuple[Key, Commit]]:
    """What a poll that succeeded has committed."""
    start, node = poll.invoked_at or 0, place.node(int(poll.op.process))
    for key, run in poll.polls.items():
        if run.messages:
            highest = max(run.highest, 0)
            message = run.messages[run.offsets.index(run.highest) if run.highest >= 0 else 0]
            yield key, Commit(start, poll.completed_at, node, highest, message, poll.op)


def _since(position: int, commits: Sequence[Commit]) -> Iterator[int]:
    """The offsets of those that were acknowledged behind this position of the history."""
    late = takewhile(lambda each: each.completed_at > position, reversed(commits))
    return (each.offset for each in late)


def _last_own(commits: Sequence[Commit], node: str, before: int) -> Commit | None:
    """The last of these that the node had acknowledged before a position of the history."""
    mine = (each for each in reversed(commits) if each.node == node and each.completed_at < before)
    return next(mine, None)
