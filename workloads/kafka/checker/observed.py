"""A history, arranged for the checks: transactions, writers, reads, the order of logs, and cases of anomalies.

A *transaction* is a `send`, `poll` or `txn` operation. Maelstrom's have one micro-operation each, but the
checks accept any number. An answer of the wrong shape gives a message without an offset, so the history of a
misbehaving node gets a verdict and not an exception. `Run.malformed` keeps what was wrong. Micro-operations
that neither send nor poll are left out.

The order in which Clojure walks its hash maps and hash sets decides two things that results.edn states. If
several messages were seen at one offset, the real checker takes the first element of a hash set for the log's
order: counts of skips depend on it. And of more than 32 duplicates it shows the first 32 in the order of a hash
map. Elsewhere this checker chooses its own witnesses, in the order of the history.

A hash map is a 32-way trie [clojure.lang.PersistentHashMap], walked in the order of the hashes' groups
of five bits, lowest group first. Hashes are Murmur3 [clojure.lang.Murmur3, Util.hasheq].

The order of each log's messages is known as far as the history shows it [jepsen.tests.kafka version-orders].
Every poll shows which message is at which offset, even a poll that failed. A send shows it only if it must
have taken effect. Offsets need not be dense (transaction markers and abandoned blocks take some), so the
order is one of *indices*: offsets without their gaps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from runs import edn
from runs.history import Op, completions, printable
from runs.keyword import Keyword, keywords
from workloads.kafka.client import is_offset

_K = TypeVar("_K")
_V = TypeVar("_V")
_MASK = 0xFFFFFFFF
_ARRAY_MAP_LIMIT = 8  # up to so many entries a Clojure map remembers the order of insertion


def set_order(members: Iterable[_K]) -> list[_K]:
    """`members` in the order of a Clojure hash set."""
    return sorted(members, key=_trie_path)


def map_order(entries: Mapping[_K, _V]) -> list[tuple[_K, _V]]:
    """The items of `entries` in the order of a Clojure map filled in the same order."""
    if len(entries) <= _ARRAY_MAP_LIMIT:
        return list(entries.items())
    return sorted(entries.items(), key=lambda item: _trie_path(item[0]))


@lru_cache(maxsize=65536)
def _trie_path(value: Any) -> tuple[int, ...]:
    number = clojure_hash(value)
    return tuple(number >> shift & 31 for shift in range(0, 32, 5))


def clojure_hash(value: Any) -> int:
    """The 32-bit hash of an integer or a string; of anything else, that of its text."""
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return _hash_words((value & _MASK, value >> 32 & _MASK), 8)
    return _hash_words((_java_string_hash(str(value)),), 4)


def _java_string_hash(text: str) -> int:
    number = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & _MASK
    return number


def _hash_words(words: tuple[int, ...], length_bytes: int) -> int:
    """Murmur3 x86 32 with seed 0; Clojure gives 0 for 0, which hashes to itself."""
    if not any(words):
        return 0
    state = 0
    for word in words:
        mixed = _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
        state = (_rotate(state ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= length_bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK


# ---------------------------------------------------------------- operations


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
class Run:
    """What one transaction sent to, or polled from, one key, in order: offsets and messages in step.

    `malformed` has the messages whose offset is there, but cannot be one: -1, 1.5, a text.
    """

    offsets: list[Offset] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    malformed: Sequence[Message] = ()

    @property
    def highest(self) -> int:
        """The highest known offset; -1 if none is known."""
        known = [offset for offset in self.offsets if offset is not None]
        return max(known, default=-1)


@dataclass(slots=True, eq=False)
class Transaction:
    """A completed transaction: its operation and where that was invoked and completed in the history."""

    op: Op
    invoked_at: int | None
    completed_at: int
    sends: dict[Key, Run]
    polls: dict[Key, Run]

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
        messages: dict[Key, set[Message]] = {}
        for transaction in self.transactions:
            if transaction.type == "ok":
                for key, run in transaction.polls.items():
                    messages.setdefault(key, set()).update(run.messages)
        return messages

    def sent(self, outcome: str) -> dict[Key, dict[Message, None]]:
        """The messages of each key, in order, that transactions of this outcome sent."""
        messages: dict[Key, dict[Message, None]] = {}
        for transaction in self.transactions:
            for key, run in transaction.sends.items() if transaction.type == outcome else ():
                messages.setdefault(key, {}).update(dict.fromkeys(run.messages))
        return messages

    @cached_property
    def writers(self) -> dict[Key, dict[Message, Transaction]]:
        """The (last) transaction that tried to send each message.

        A send that the end of the history cut off counts as indefinite, once a poll shows that it was made.
        """
        writers: dict[Key, dict[Message, Transaction]] = {}
        for writer in (*self._cut_off_sends(), *self.transactions):
            for key, run in writer.sends.items():
                writers.setdefault(key, {}).update(dict.fromkeys(run.messages, writer))
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
            not self.polled.get(key, set()).isdisjoint(run.messages)
            for key, run in writer.sends.items()
        )


def client_operations(history: Sequence[Op]) -> list[Op]:
    """`history` without the nemesis."""
    return [op for op in history if isinstance(op.process, int)]


def micro_ops(op: Op) -> tuple[dict[Key, Run], dict[Key, Run]]:
    """What `op` sent and what it polled, by key; what does not look like a micro-operation is skipped."""
    sends: dict[Key, Run] = {}
    polls: dict[Key, Run] = {}
    for mop in op.value if isinstance(op.value, list | tuple) else ():
        match mop:
            case ["send", key, value, *_] if op.f in WRITING:
                pair = value if isinstance(value, list | tuple) else (None, value)
                _extend(sends.setdefault(scalar(key), Run()), [pair])
            case ["poll", dict() as messages, *_] if op.f in READING:
                for key, pairs in messages.items():
                    run = polls.setdefault(scalar(key), Run())
                    given = pairs if isinstance(pairs, list | tuple) else [pairs] if pairs else []
                    _extend(run, given)
    return sends, polls


def _extend(run: Run, pairs: Sequence[Any]) -> None:
    """Add `pairs` to `run`: at once if all are plain, else one by one.

    What is no pair of offset and message counts as a message at a malformed offset.
    """
    try:
        offsets, messages = zip(*pairs, strict=True)
        plain = set(map(type, offsets)) == {int} and set(map(type, messages)) <= _PLAIN
    except (ValueError, TypeError):
        plain = False
    if plain and min(offsets) >= 0:
        run.offsets += offsets
        run.messages += messages
        return
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) >= 2
        offset, message = pair[:2] if is_pair else (MALFORMED, pair)
        run.offsets.append(offset if is_offset(offset) else None)
        run.messages.append(scalar(message))
        # Null and false say that the offset is not known; so the real checker takes them.
        if run.offsets[-1] is None and offset is not None and offset is not False:
            run.malformed = (*run.malformed, run.messages[-1])


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


# ---------------------------------------------------------------- the logs that were observed


_NEVER = object()  # no message is this one


@dataclass
class Log:
    """What is known of one key: the messages seen at each offset. Two at one offset is an anomaly."""

    first: dict[int, Message] = field(default_factory=dict)  # by offset
    # Those that disagree with `first`.
    others: dict[int, set[Message]] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Note each message of `run` whose offset is known."""
        first = self.first
        for offset, message in zip(run.offsets, run.messages, strict=True):
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
        """One message for each index."""
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


def logs(facts: Facts) -> Mapping[Key, Log]:
    """The log of every key, from all polls and from the sends that must have taken effect."""
    known: dict[Key, Log] = {}
    for transaction in facts.transactions:
        sources = [transaction.polls]
        if transaction.sends and facts.committed(transaction):
            sources.append(transaction.sends)
        for runs in sources:
            for key, run in runs.items():
                if any(offset is not None for offset in run.offsets):
                    known.setdefault(key, Log()).add(run)
    return known


# ---------------------------------------------------------------- what a result shows


Case = dict[Any, Any]  # one instance of an anomaly; its operations are `Op`s until it is shown
Cases = dict[str, list[Case]]  # by anomaly type

EMPTY_GRAPH = "empty-transaction-graph"
CYCLES = ("G0", "G0-process", "G0-realtime", "G1c", "G1c-process", "G1c-realtime")


@dataclass(frozen=True)
class Shown:
    """Which cases of a type are shown: `count` of them at one end of the order by `measure`.

    Cases of equal measure keep the order in which they were found. They are shown ascending.
    """

    count: int
    measure: Callable[[Case], int]
    largest: bool = False

    def of(self, cases: list[Case]) -> list[Case]:
        """Those of `cases` that are shown."""
        ascending = sorted(cases, key=self.measure)
        return ascending[-self.count :] if self.largest else ascending[: self.count]


def _delta(case: Case) -> int:
    return int(case["delta"])


OURS = ("lost-commit", "malformed-offset", "no-writer-of-value", "unreplicated", "untold-offset")

# How many cases of a type are shown, and which, as the real checker chooses [condense-error]; all of the
# types that are not listed. `OURS` are not the real checker's.
SHOWN: Mapping[str, Shown] = {
    "duplicate": Shown(32, lambda case: int(case["count"])),
    "inconsistent-offsets": Shown(32, lambda case: len(case["values"])),
    **dict.fromkeys(
        ("int-poll-skip", "int-send-skip", "poll-skip"), Shown(8, _delta, largest=True)
    ),
    **dict.fromkeys(
        (
            "int-nonmonotonic-poll",
            "int-nonmonotonic-send",
            "nonmonotonic-poll",
            "nonmonotonic-send",
        ),
        Shown(8, _delta),
    ),
    **dict.fromkeys(OURS, Shown(32, lambda _case: 0)),
    **dict.fromkeys(CYCLES, Shown(8, lambda case: len(case["steps"]))),
}


def condensed(anomaly: str, cases: list[Case]) -> dict[Keyword, Any]:
    """`{:count n, :errs (...)}` as it stands in results.edn, with the cases that are shown."""
    if anomaly == EMPTY_GRAPH:
        return keywords(count=1, errs=True)
    chosen = SHOWN[anomaly].of(cases) if anomaly in SHOWN else cases
    return keywords(count=len(cases), errs=tuple(map(printable, chosen)))
