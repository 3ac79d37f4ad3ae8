"""Anomalies that are no cycles. A function looks at a key, a transaction, or a process. [jepsen.tests.kafka]

Of content: lost messages, duplicates, offsets with two messages or that are none, phantom reads.

Of order: jumps forward (skips) and steps back (nonmonotonic), inside and between operations. Within one
transaction, and from one transaction of a process to its next, messages of a key should come one index after
the other.

`unseen`: messages acknowledged but never polled by the end. [jepsen.tests.kafka unseen]

`unreplicated`, beyond the real checker: a node that cannot serve an acknowledged message. At the end of a run
every worker is assigned all keys from the beginning, and polls. From there on the workers of each node must
read every acknowledged message of every key. The real checker demands only that *some* worker reads it, so it
passes nodes that answer each client from a log of their own. Where a node has no worker, nobody can tell.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from runs.facts import grouped
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import Placement
from workloads.kafka.checker.observed import (
    READING,
    Case,
    Facts,
    Key,
    Log,
    Message,
    Run,
    Transaction,
    map_order,
    scalar,
)
from workloads.kafka.client import COMMITTED


def duplicate_cases(key: Key, log: Log) -> Iterator[Case]:
    """`duplicate`: a message at more than one offset."""
    if len(log.index_of) == len(log.offsets) and not log.others:
        return
    counts = Counter(message for messages in log.messages_at for message in messages)
    for message, count in map_order(counts):
        if count > 1:
            places = zip(log.offsets, log.messages_at, strict=True)
            offsets = [offset for offset, messages in places if message in messages]
            yield keywords(key=key, value=message, count=count, offsets=offsets)


def inconsistent_offset_cases(key: Key, log: Log) -> Iterator[Case]:
    """`inconsistent-offsets`: an offset with more than one message."""
    for offset in sorted(log.others):
        messages = {log.first[offset], *log.others[offset]}
        yield keywords(key=key, offset=offset, index=log.offsets.index(offset), values=messages)


def lost_write_cases(key: Key, log: Log, facts: Facts) -> Iterator[Case]:
    """`lost-write`: a message that must be in the log below one that was polled, but was never polled.

    A message at several offsets counts from its first, and must be read if its last lies below; so a
    duplicate never makes a loss.
    """
    polled = facts.polled.get(key, set())
    first_index, last_index = _extremes(log)
    bound = max((first_index[message] for message in polled if message in first_index), default=-1)
    lost = [
        message
        for index, messages in enumerate(last_index[: bound + 1])
        for message in messages
        if message not in polled
    ]
    writers = facts.writers.get(key, {})
    committed = [each for each in lost if each in writers and facts.committed(writers[each])]
    if not committed:
        return
    max_read = _first_reader(facts, key, last_index[bound][:1])
    for message in committed:
        yield keywords(
            key=key,
            value=message,
            index=first_index[message],
            max_read_index=bound,
            writer=writers[message].op,
            max_read=max_read.op if max_read else None,
        )


def _extremes(log: Log) -> tuple[dict[Message, int], list[list[Message]]]:
    """The first index of each message, and for each index the messages that are there for the last time."""
    first: dict[Message, int] = {}
    last: dict[Message, int] = {}
    for index, messages in enumerate(log.messages_at):
        for message in messages:
            first.setdefault(message, index)
            last[message] = index
    by_index: list[list[Message]] = [[] for _ in log.offsets]
    for message, index in last.items():
        by_index[index].append(message)
    return first, by_index


def _first_reader(facts: Facts, key: Key, messages: list[Message]) -> Transaction | None:
    """The first transaction that polled the (only) message in `messages`."""
    for transaction in facts.transactions if messages else ():
        run = transaction.polls.get(key)
        if run and messages[0] in run.messages:
            return transaction
    return None


def aborted_read_cases(
    transaction: Transaction, facts: Facts, failed: Mapping[Key, Collection[Message]]
) -> Iterator[Case]:
    """`G1a`: a successful poll returned a message whose send certainly failed."""
    for key, run in transaction.polls.items() if transaction.type == "ok" else ():
        for message in run.messages if key in failed else ():
            if message in failed[key]:
                writer = facts.writers[key][message].op
                yield keywords(key=key, value=message, writer=writer, reader=transaction.op)


def precommitted_read_cases(transaction: Transaction) -> Iterator[Case]:
    """`precommitted-read`: a transaction polled its own message. One case for each transaction."""
    for key, run in transaction.sends.items():
        polled = transaction.polls.get(key)
        own = [each for each in run.messages if polled and each in polled.messages]
        if own:
            yield keywords(op=transaction.op, key=key, value=own[0])
            return


def malformed_offset_cases(transaction: Transaction) -> Iterator[Case]:
    """`malformed-offset`: an answer puts a message at an offset that cannot be one, such as -1.

    The real checker stops with an exception, and without a verdict.
    """
    for key, run in _told(transaction):
        for message in run.malformed:
            yield keywords(op=transaction.op, key=key, value=message)


def untold_offset_cases(transaction: Transaction) -> Iterator[Case]:
    """`untold-offset`: an operation succeeded, and the history does not say at which offset a message is.

    The real checker judges such a history without that offset.
    """
    for key, run in _told(transaction) if transaction.type == "ok" else ():
        for offset, message in zip(run.offsets, run.messages, strict=True):
            if offset is None and message not in run.malformed:
                yield keywords(op=transaction.op, key=key, value=message)


def _told(transaction: Transaction) -> Iterator[tuple[Key, Run]]:
    """What answers said of offsets: all polls, and the sends that succeeded."""
    yield from transaction.polls.items()
    if transaction.type == "ok":
        yield from transaction.sends.items()


def unwritten_read_cases(facts: Facts) -> Iterator[Case]:
    """`no-writer-of-value`: a poll returned a message that no client sent to that key; first poll of each.

    The real checker stops with an exception of this name, and without a verdict.
    """
    seen: set[tuple[Key, Message]] = set()
    for transaction in facts.transactions:
        for key, run in transaction.polls.items():
            written = facts.writers.get(key, {})
            for message in run.messages:
                if message not in written and (key, message) not in seen:
                    seen.add((key, message))
                    yield keywords(key=key, value=message, reader=transaction.op)


# ---------------------------------------------------------------- order within a process


_NO_LOG = Log()


def int_cases(transaction: Transaction, logs: Mapping[Key, Log]) -> Iterator[tuple[str, Case]]:
    """`int-poll-skip`, `int-send-skip` and their like in one transaction, but for polls of rebalanced keys."""
    rebalanced = set(_rebalanced(transaction.op))
    polls = {key: run for key, run in transaction.polls.items() if key not in rebalanced}
    for f, runs in (("poll", polls), ("send", transaction.sends)):
        for key, run in runs.items():
            yield from _jumps(transaction.op, key, run, logs.get(key, _NO_LOG), f)


def _jumps(op: Op, key: Key, run: Run, log: Log, f: str) -> Iterator[tuple[str, Case]]:
    index_of = log.index_of
    indices = [index_of.get(message) for message in run.messages]
    for position, (before, after) in enumerate(pairwise(indices)):
        if before is None or after is None or after - before == 1:
            continue
        values = run.messages[position : position + 2]
        jump = keywords(key=key, values=values, delta=after - before)
        if after > before:
            skipped = keywords(skipped=log.between(*values))
            yield f"int-{f}-skip", {**jump, **skipped, **keywords(op=op)}
        else:
            yield f"int-nonmonotonic-{f}", {**jump, **keywords(op=op)}


def _rebalanced(op: Op) -> Iterator[Key]:
    events = op.extra.get("rebalance-log")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and isinstance(event.get("keys"), list):
            yield from map(scalar, event["keys"])


def poll_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, Log]
) -> Iterator[tuple[str, Case]]:
    """`poll-skip` and `nonmonotonic-poll`: every poll is compared with the last successful one of its key."""
    for key, earlier, later in _in_turn(operations, attrgetter("polls"), ("ok",)):
        before, after = earlier.polls[key].messages, later.polls[key].messages
        if not before or not after:
            continue
        values, ops = [before[-1], after[0]], [earlier.op, later.op]
        log = logs.get(key, _NO_LOG)
        delta = log.distance(*values)
        if delta > 1:
            skipped = log.between(*values)
            yield "poll-skip", keywords(key=key, delta=delta, skipped=skipped, ops=ops)
        if delta < 1:
            yield "nonmonotonic-poll", keywords(key=key, values=values, delta=delta, ops=ops)


def send_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, Log]
) -> Iterator[tuple[str, Case]]:
    """`nonmonotonic-send`, of sends that may have taken effect."""
    for key, earlier, later in _in_turn(operations, attrgetter("sends"), ("ok", "info")):
        values = [earlier.sends[key].messages[-1], later.sends[key].messages[0]]
        delta = logs.get(key, _NO_LOG).distance(*values)
        if delta < 1 and later.type != "fail":
            ops = [earlier.op, later.op]
            yield "nonmonotonic-send", keywords(key=key, values=values, delta=delta, ops=ops)


def _in_turn(
    operations: Iterable[Op | Transaction],
    runs: Callable[[Transaction], Mapping[Key, Run]],
    kept: Collection[str],
) -> Iterator[tuple[Key, Transaction, Transaction]]:
    """Each transaction of one process, with the last one before it of the same key that ended as one of `kept`.

    An assignment that may have taken effect forgets the keys that it does not name.
    """
    last: dict[Key, Transaction] = {}
    for each in operations:
        if isinstance(each, Op):
            if each.type != "fail":
                last = {key: last[key] for key in assigned_keys(each) if key in last}
            continue
        for key in runs(each):
            if key in last:
                yield key, last[key], each
            if each.type in kept:
                last[key] = each


def assigned_keys(assignment: Op) -> list[Key]:
    """The keys an assignment names."""
    return [scalar(key) for key in assignment.value] if isinstance(assignment.value, list) else []


# ---------------------------------------------------------------- unseen messages


SHOWN_OF_A_KEY = 32


def unseen(facts: Facts, final: Transaction | None) -> dict[Key, set[Message]]:
    """The unseen messages of each key that has any; `final` is the run's last successful transaction.

    The real checker subtracts the polled from the sent after each operation, and a key that was polled
    before any acknowledged send of it stands there with what was polled until the next operation. So if
    the history ends with such a poll, these messages count as unseen (if they were sent at all).
    """
    sent = facts.sent("ok")
    remaining = {key: sent[key].keys() - facts.polled.get(key, set()) for key in sent}
    for key, run in final.polls.items() if final else ():
        if key not in sent and not _polled_before(key, final, facts):
            remaining[key] = set(run.messages) & facts.writers.get(key, {}).keys()
    return {key: messages for key, messages in remaining.items() if messages}


def unseen_error(facts: Facts) -> dict[Keyword, Any] | None:
    """What results.edn has as `:unseen`: the time, the number for each key, and the first of them."""
    final = next((each for each in reversed(facts.transactions) if each.type == "ok"), None)
    missing = unseen(facts, final)
    if not final or not missing:
        return None
    counted = {key: (len(messages), messages) for key, messages in missing.items()}
    return unseen_report(counted, final.op.time)


def unseen_report(
    missing: Mapping[Key, tuple[int, Iterable[Message]]], time_ns: int
) -> dict[Keyword, Any]:
    """The entry `:unseen` of results.edn: of each key how many are missing, and (at least the first) which."""
    keys = sorted(missing, key=natural)
    return keywords(
        time=time_ns,
        unseen={key: missing[key][0] for key in keys},
        messages={key: _shown(missing[key][1]) for key in keys},
    )


def _shown(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(sorted(messages, key=natural)[:SHOWN_OF_A_KEY])


def _polled_before(key: Key, final: Transaction | None, facts: Facts) -> bool:
    """Whether a successful transaction before `final` polled `key`, even in vain."""
    polls = (each for each in facts.transactions if each.type == "ok" and key in each.polls)
    return next(polls, final) is not final


def natural(value: Any) -> tuple[str, int, str]:
    """A sort key for numbers and texts together: by type, then by value."""
    is_number = isinstance(value, int)
    return (type(value).__name__, value if is_number else 0, "" if is_number else str(value))


# ---------------------------------------------------------------- what nodes never hand out


REWIND = "seek-to-beginning?"


def placement(options: Mapping[str, Any], history: Sequence[Op]) -> Placement:
    """The placement of a run with `options` (as in test.json). Raises `ValueError` when they do not tell."""
    found = Placement.of(options, history)
    if found is None:
        raise ValueError("strict checking needs to know the nodes and the concurrency of the run")
    return found


def has_final_polls(facts: Facts) -> bool:
    """Whether the history reached its final phase; if not, nothing can be said about replication."""
    return any(_rewinds(facts))


def asked_nodes(facts: Facts, place: Placement) -> set[str]:
    """The nodes that a worker was to read everything from; with fewer workers than nodes, not all of them."""
    return {place.node(int(process)) for _, process in _rewinds(facts)}


def unreplicated_cases(facts: Facts, place: Placement, nodes: Sequence[str]) -> Iterator[Case]:
    """One case for each acknowledged message and one of `nodes` through which it was not read at the end."""
    read = _read_at_the_end(facts, place)
    asked = asked_nodes(facts, place)
    nodes = [node for node in nodes if node in asked]
    for key, run in facts.sent("ok").items():
        for node in nodes:
            unread = run.keys() - read.get((node, key), set())
            for message in filter(unread.__contains__, run):
                writer = facts.writers[key][message].op
                yield keywords(key=key, value=message, node=node, writer=writer)


def lost_commit_cases(facts: Facts, place: Placement) -> Iterator[Case]:
    """`lost-commit`, beyond the real checker: a node lists less than it had acknowledged.

    It lists no offset of a key, or a lower one than what it had acknowledged last and all that was committed
    since then, at any node. A poll commits the highest offset of each key; one of unknown outcome may have
    committed anything, so with one nothing is said. A node that is killed may forget them.
    """
    polls = [each for each in facts.transactions if each.op.f in READING]
    if any(each.type == "info" for each in polls):
        return
    commits = grouped(
        (key, each) for each in polls for key, run in each.polls.items() if run.messages
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
                run = own[-1].polls[scalar(key)]
                told = keywords(committed=run.highest, listed=offset, ops=[own[-1].op, op])
                yield keywords(key=key, value=run.messages[-1]) | told


def _rewinds(facts: Facts) -> Iterator[tuple[int, Any]]:
    """Where, and of which process, each assignment from the beginning was completed."""
    for at, op in enumerate(facts.history):
        if op.f == "assign" and op.type == "ok" and op.extra.get(REWIND):
            yield at, op.process


def _read_at_the_end(facts: Facts, place: Placement) -> dict[tuple[str, Key], set[Message]]:
    since: dict[Any, int] = {}
    for at, process in _rewinds(facts):
        since.setdefault(process, at)
    read: dict[tuple[str, Key], set[Message]] = {}
    for transaction in facts.transactions:
        process = transaction.op.process
        if transaction.type == "ok" and transaction.completed_at > since.get(
            process, len(facts.history)
        ):
            for key, run in transaction.polls.items():
                read.setdefault((place.node(int(process)), key), set()).update(run.messages)
    return read
