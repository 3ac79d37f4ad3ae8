"""Anomaly `unseen`: messages acknowledged but never polled by the end. [jepsen.tests.kafka unseen]"""

from typing import Any

from bench.keyword import Keyword, keywords
from workloads.kafka.checker.facts import Facts, Key, Message

_SHOWN_OF_A_KEY = 32


def unseen(facts: Facts) -> dict[Key, set[Message]]:
    """The unseen messages of each key that has any.

    The real checker subtracts the polled from the sent after each operation, and a key that was polled
    before any acknowledged send of it stands there with what was polled until the next operation. So if
    the history ends with such a poll, these messages count as unseen (if anybody sent them at all).
    """
    acknowledged = [each for each in facts.transactions if each.type == "ok"]
    sent: dict[Key, set[Message]] = {}
    for transaction in acknowledged:
        for key, run in transaction.sends.items():
            sent.setdefault(key, set()).update(run.messages)
    remaining = {key: messages - facts.polled.get(key, set()) for key, messages in sent.items()}
    if acknowledged:
        polled_before = {key for each in acknowledged[:-1] for key in each.polls}
        for key, run in acknowledged[-1].polls.items():
            if key not in sent and key not in polled_before:
                remaining[key] = set(run.messages) & facts.writers.get(key, {}).keys()
    return {key: messages for key, messages in remaining.items() if messages}


def unseen_error(facts: Facts) -> dict[Keyword, Any] | None:
    """What results.edn has as `:unseen`: the time, the number for each key, and the first of them."""
    missing = sorted(unseen(facts).items(), key=lambda item: natural(item[0]))
    if not missing:
        return None
    last = next(each for each in reversed(facts.transactions) if each.type == "ok")
    return keywords(
        time=last.op.time,
        unseen={key: len(messages) for key, messages in missing},
        messages={
            key: tuple(sorted(messages, key=natural)[:_SHOWN_OF_A_KEY]) for key, messages in missing
        },
    )


def natural(value: Any) -> tuple[str, int, str]:
    """A sort key for numbers and texts together: by type, then by value."""
    is_number = isinstance(value, int)
    return (type(value).__name__, value if is_number else 0, "" if is_number else str(value))
