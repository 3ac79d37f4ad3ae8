"""What a history's operations say: what each transaction sent and polled, and who wrote what.

A *transaction* is a `send`, `poll` or `txn` operation. Maelstrom's have one micro-operation each, but the
checks accept any number. An answer of the wrong shape gives a message without an offset, so the history of a
misbehaving node gets a verdict and not an exception. `Pairs.malformed` keeps what was wrong. Micro-operations
that neither send nor poll are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runs import edn
from runs.history import Op, completions
from workloads.kafka.client import is_offset

Key = Any  # the name of a log; hashable
Message = (
    Any  # the value that was sent; hashable, and distinct types are distinct (1, 1.0 and true)
)
Offset = int | None  # None: unknown

TRANSACTIONS = frozenset(("send", "poll", "txn"))
READING = frozenset(("poll", "txn"))
WRITING = frozenset(("send", "txn"))
MALFORMED = -1  # an offset that no log has
_PLAIN = frozenset((int, str))


@dataclass(slots=True)
class Pairs:
    """What one transaction sent to, or polled from, one key, in order: offsets and messages in step.

    `malformed` has the messages whose offset is there, but cannot be one: -1, 1.5, a text.
    """

    offsets: list[Offset] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    malformed: Sequence[Message] = ()

    @property
    def highest(self) -> int:
        """The highest known offset; -1 if none is known."""
        return max((offset for offset in self.offsets if offset is not None), default=-1)

    def extend(self, told: Sequence[Any]) -> None:
        """Add what was told. What is no pair of offset and message is a message at a malformed offset."""
        for pair in told:
            is_pair = isinstance(pair, list | tuple) and len(pair) >= 2
            offset, message = pair[:2] if is_pair else (MALFORMED, pair)
            self.offsets.append(offset if is_offset(offset) else None)
            self.messages.append(scalar(message))
            # Null and false say that the offset is not known; so the real checker takes them.
            if self.offsets[-1] is None and offset is not None and offset is not False:
                self.malformed = (*self.malformed, self.messages[-1])


@dataclass(slots=True, eq=False)
class Transaction:
    """A completed transaction: its operation and where that was invoked and completed in the history."""

    op: Op
    invoked_at: int | None
    completed_at: int
    sends: dict[Key, Pairs]
    polls: dict[Key, Pairs]

    @property
    def type(self) -> str:
        return self.op.type


@dataclass(frozen=True)
class Facts:
    """A history of clients' operations, and the indices that more than one check needs.

    The last two fields are for a history that is a part of another. `seen_elsewhere` has the indices of
    indefinite writers that the rest shows to have taken effect. `pairs` maps the position of each
    completion to that of its invocation, where the order of a process's operations does not.
    """

    history: Sequence[Op]
    seen_elsewhere: frozenset[int] = frozenset()
    pairs: Mapping[int, int] | None = None

    @cached_property
    def invocations(self) -> Mapping[int, int]:
        """Position of a completion to the position of its invocation."""
        if self.pairs is not None:
            return self.pairs
        return {end: start for start, end in completions(self.history).items()}

    @cached_property
    def transactions(self) -> list[Transaction]:
        """Completed transactions in order of completion."""
        return [
            Transaction(op, self.invocations.get(at), at, *micro_ops(op))
            for at, op in enumerate(self.history)
            if op.type != "invoke" and op.f in TRANSACTIONS
        ]

    @cached_property
    def polled(self) -> dict[Key, set[Message]]:
        """The messages of each key that successful polls returned; a key may have been polled in vain."""
        return {key: set(messages) for key, messages in self._told("polls", "ok").items()}

    def sent(self, outcome: str) -> dict[Key, dict[Message, None]]:
        """The messages of each key, in order, that transactions of this outcome sent."""
        return self._told("sends", outcome)

    def _told(self, of: str, outcome: str) -> dict[Key, dict[Message, None]]:
        messages: dict[Key, dict[Message, None]] = {}
        for transaction in (each for each in self.transactions if each.type == outcome):
            for key, pairs in getattr(transaction, of).items():
                messages.setdefault(key, {}).update(dict.fromkeys(pairs.messages))
        return messages

    @cached_property
    def writers(self) -> dict[Key, dict[Message, Transaction]]:
        """The (last) transaction that tried to send each message.

        A send that the end of the history cut off counts as indefinite, once a poll shows that it was made.
        """
        writers: dict[Key, dict[Message, Transaction]] = {}
        for writer in (*self._cut_off_sends(), *self.transactions):
            for key, pairs in writer.sends.items():
                writers.setdefault(key, {}).update(dict.fromkeys(pairs.messages, writer))
        return writers

    def _cut_off_sends(self) -> Iterator[Transaction]:
        completed = set(self.invocations.values())
        for at, op in enumerate(self.history):
            if op.type == "invoke" and op.f in WRITING and at not in completed:
                sends, _ = micro_ops(op)
                unknown = Op(op.index, op.time, "info", op.process, op.f, op.value, op.extra)
                writer = Transaction(unknown, at, len(self.history), sends, {})
                if self.committed(writer):
                    yield writer

    def committed(self, writer: Transaction) -> bool:
        """Whether `writer` must have taken effect: acknowledged, or indefinite and seen by a poll."""
        if writer.type != "info":
            return writer.type == "ok"
        return writer.op.index in self.seen_elsewhere or any(
            not self.polled.get(key, set()).isdisjoint(pairs.messages)
            for key, pairs in writer.sends.items()
        )


def client_operations(history: Sequence[Op]) -> list[Op]:
    """Leave out of a history what the nemesis did."""
    return [op for op in history if isinstance(op.process, int)]


def micro_ops(op: Op) -> tuple[dict[Key, Pairs], dict[Key, Pairs]]:
    """What `op` sent and what it polled, by key; what does not look like a micro-operation is skipped."""
    sends: dict[Key, Pairs] = {}
    polls: dict[Key, Pairs] = {}
    for mop in op.value if isinstance(op.value, list | tuple) else ():
        match mop:
            case ["send", key, value, *_] if op.f in WRITING:
                pair = value if isinstance(value, list | tuple) else (None, value)
                sends.setdefault(scalar(key), Pairs()).extend([pair])
            case ["poll", dict() as messages, *_] if op.f in READING:
                for key, given in messages.items():
                    told = given if isinstance(given, list | tuple) else [given] if given else []
                    polls.setdefault(scalar(key), Pairs()).extend(told)
    return sends, polls


class Opaque(str):
    """A message or key that is neither a number nor a string, by its EDN; equal to no plain string."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is Opaque and str.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((Opaque, str(self)))


def scalar(value: Any) -> Any:
    """`value` as something hashable, equal only to what is the same JSON (1, 1.0 and true are three)."""
    if type(value) in _PLAIN or type(value) is Opaque:
        return value
    if isinstance(value, str):
        return str(value)
    try:
        return Opaque(edn.dumps(value))
    except TypeError:
        return Opaque(repr(value))
