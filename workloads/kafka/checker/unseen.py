"""Messages that were acknowledged but never polled by the end. [jepsen.tests.kafka unseen]"""

from collections.abc import Iterable, Mapping
from typing import Any

from runs.history import Keyword, keywords
from workloads.kafka.checker.observed import Facts, Key, Message, Transaction

SHOWN_OF_A_KEY = 32


def unseen(facts: Facts, final: Transaction | None) -> dict[Key, set[Message]]:
    """The unseen messages of each key that has any; `final` is the run's last successful transaction.

    The real checker subtracts the polled from the sent after each operation, and a key that was polled
    before any acknowledged send of it stands there with what was polled until the next operation. So if
    the history ends with such a poll, these messages count as unseen (if they were sent at all).
    """
    sent = facts.sent("ok")
    remaining = {key: sent[key].keys() - facts.polled.get(key, set()) for key in sent}
    remaining |= {
        key: set(pairs.messages) & facts.writers.get(key, {}).keys()
        for key, pairs in (final.polls.items() if final else ())
        if key not in sent and not _polled_before(key, final, facts)
    }
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
        messages={
            key: tuple(sorted(missing[key][1], key=natural)[:SHOWN_OF_A_KEY]) for key in keys
        },
    )


def _polled_before(key: Key, final: Transaction | None, facts: Facts) -> bool:
    """Whether a successful transaction before `final` polled `key`, even in vain."""
    polls = (each for each in facts.transactions if each.type == "ok" and key in each.polls)
    return next(polls, final) is not final


def natural(value: Any) -> tuple[str, int, str]:
    """A sort key for numbers and texts together: by type, then by value."""
    is_number = isinstance(value, int)
    return (type(value).__name__, value if is_number else 0, "" if is_number else str(value))
