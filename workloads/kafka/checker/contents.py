"""Anomalies of content: lost messages, duplicates, offsets with two messages or that are none, phantom reads.

A function looks at a key, or at a transaction. [jepsen.tests.kafka]
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from runs.history import keywords
from workloads.interface import Case
from workloads.kafka.checker.clojure import map_order
from workloads.kafka.checker.logs import SeenLog
from workloads.kafka.checker.observed import Facts, Key, Message, Pairs, Transaction


def duplicate_cases(key: Key, log: SeenLog) -> Iterator[Case]:
    """`duplicate`: a message at more than one offset."""
    if len(log.index_of) == len(log.offsets) and not log.others:
        return
    counts = Counter(message for messages in log.messages_at for message in messages)
    for message, count in map_order(counts):
        if count > 1:
            places = zip(log.offsets, log.messages_at, strict=True)
            offsets = [offset for offset, messages in places if message in messages]
            yield keywords(key=key, value=message, count=count, offsets=offsets)


def inconsistent_offset_cases(key: Key, log: SeenLog) -> Iterator[Case]:
    """`inconsistent-offsets`: an offset with more than one message."""
    return (
        keywords(
            key=key,
            offset=offset,
            index=log.offsets.index(offset),
            values={log.first[offset], *log.others[offset]},
        )
        for offset in sorted(log.others)
    )


def lost_write_cases(key: Key, log: SeenLog, facts: Facts) -> Iterator[Case]:
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
    highest = last_index[bound][:1]
    readers = (
        each.op
        for each in facts.transactions
        for message in highest
        if key in each.polls and message in each.polls[key].messages
    )
    max_read = next(readers, None)
    for message in committed:
        yield keywords(
            key=key,
            value=message,
            index=first_index[message],
            max_read_index=bound,
            writer=writers[message].op,
            max_read=max_read,
        )


def _extremes(log: SeenLog) -> tuple[dict[Message, int], list[list[Message]]]:
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


def aborted_read_cases(
    transaction: Transaction, facts: Facts, failed: Mapping[Key, Collection[Message]]
) -> Iterator[Case]:
    """`G1a`: a successful poll returned a message whose send certainly failed."""
    return (
        keywords(
            key=key, value=message, writer=facts.writers[key][message].op, reader=transaction.op
        )
        for key, pairs in transaction.polls.items()
        if transaction.type == "ok" and key in failed
        for message in pairs.messages
        if message in failed[key]
    )


def precommitted_read_cases(transaction: Transaction) -> Iterator[Case]:
    """`precommitted-read`: a transaction polled its own message. One case for each transaction."""
    for key, pairs in transaction.sends.items():
        polled = transaction.polls.get(key)
        if own := [each for each in pairs.messages if polled and each in polled.messages]:
            yield keywords(op=transaction.op, key=key, value=own[0])
            return


def malformed_offset_cases(transaction: Transaction) -> Iterator[Case]:
    """`malformed-offset`: an answer puts a message at an offset that cannot be one, such as -1.

    The real checker stops with an exception, and without a verdict.
    """
    return (
        keywords(op=transaction.op, key=key, value=message)
        for key, pairs in _told(transaction)
        for message in pairs.malformed
    )


def untold_offset_cases(transaction: Transaction) -> Iterator[Case]:
    """`untold-offset`: an operation succeeded, and the history does not say at which offset a message is.

    The real checker judges such a history without that offset.
    """
    return (
        keywords(op=transaction.op, key=key, value=message)
        for key, pairs in (_told(transaction) if transaction.type == "ok" else ())
        for offset, message in zip(pairs.offsets, pairs.messages, strict=True)
        if offset is None and message not in pairs.malformed
    )


def _told(transaction: Transaction) -> Iterator[tuple[Key, Pairs]]:
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
        for key, pairs in transaction.polls.items():
            written = facts.writers.get(key, {})
            for message in pairs.messages:
                if message not in written and (key, message) not in seen:
                    seen.add((key, message))
                    yield keywords(key=key, value=message, reader=transaction.op)
