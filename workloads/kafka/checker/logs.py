"""The logs that a history shows: which message is at which offset. [jepsen.tests.kafka version-orders]

Every poll shows which message is at which offset, even a poll that failed. A send shows it only if it must
have taken effect. Offsets need not be dense (transaction markers and abandoned blocks take some), so the
order of a log is one of *indices*: offsets without their gaps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from workloads.kafka.checker.clojure import set_order
from workloads.kafka.checker.observed import Facts, Key, Message, Pairs

_NEVER = object()  # no message is this one


@dataclass
class SeenLog:
    """What is known of one key: the messages seen at each offset. Two at one offset is an anomaly."""

    first: dict[int, Message] = field(default_factory=dict)  # by offset
    # Those that disagree with `first`.
    others: dict[int, set[Message]] = field(default_factory=dict)

    def add(self, pairs: Pairs) -> None:
        """Note each message of `pairs` whose offset is known."""
        first = self.first
        for offset, message in zip(pairs.offsets, pairs.messages, strict=True):
            if offset is None:
                continue
            known = first.get(offset, _NEVER)
            if known is _NEVER:
                first[offset] = message
            elif known != message:
                self.others.setdefault(offset, set()).add(message)

    @cached_property
    def offsets(self) -> list[int]:
        """The known offsets, ascending: the offset of each index."""
        return sorted(self.first)

    @cached_property
    def messages_at(self) -> list[list[Message]]:
        """The messages seen at each index."""
        return [
            set_order({self.first[offset], *self.others[offset]})
            if offset in self.others
            else [self.first[offset]]
            for offset in self.offsets
        ]

    @cached_property
    def order(self) -> list[Message]:
        """Choose one message for each index, as the real checker does."""
        return [messages[0] for messages in self.messages_at]

    @cached_property
    def index_of(self) -> dict[Message, int]:
        """The last index of each message in `order`."""
        return {message: index for index, message in enumerate(self.order)}

    def distance(self, before: Message, after: Message) -> int:
        """How many indices `after` is behind `before`; 1, the usual, when either is not in the order."""
        start, end = self.index_of.get(before), self.index_of.get(after)
        return 1 if start is None or end is None else end - start

    def between(self, before: Message, after: Message) -> tuple[Message, ...]:
        """The messages strictly between two that are in the order."""
        return tuple(self.order[self.index_of[before] + 1 : self.index_of[after]])


def logs(facts: Facts) -> Mapping[Key, SeenLog]:
    """The log of every key, from all polls and from the sends that must have taken effect."""
    known: dict[Key, SeenLog] = {}
    for transaction in facts.transactions:
        counts = transaction.sends and facts.committed(transaction)
        for key, pairs in (
            *transaction.polls.items(),
            *(transaction.sends.items() if counts else ()),
        ):
            if any(offset is not None for offset in pairs.offsets):
                known.setdefault(key, SeenLog()).add(pairs)
    return known
