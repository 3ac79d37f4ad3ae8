"""What a history says of each element of a set; the package's docstring defines the words."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from runs.history import Op, completions
from runs.keyword import Keyword

_NS_PER_MS = 1_000_000
STABLE, LOST, NEVER_READ = Keyword("stable"), Keyword("lost"), Keyword("never-read")

Name = Any  # an element as a dict can have it


@dataclass(slots=True)
class Element:
    """What a history says of one element; see the module."""

    value: Any
    added: Op
    known: Op | None = None
    last_present: Op | None = None
    last_absent: Op | None = None

    @property
    def outcome(self) -> Keyword:
        """One of `STABLE`, `LOST` and `NEVER_READ`."""
        present, absent, known = map(_index, (self.last_present, self.last_absent, self.known))
        if present > absent:
            return STABLE
        return LOST if self.known and absent > present and absent > known else NEVER_READ

    @property
    def stable_latency_ms(self) -> int | None:
        return self._latency_ms(self.last_absent) if self.outcome is STABLE else None

    @property
    def lost_latency_ms(self) -> int | None:
        return self._latency_ms(self.last_present) if self.outcome is LOST else None

    def _latency_ms(self, last: Op | None) -> int:
        """From when it was known to just after the invocation `last`; 0 if that is earlier, or never was."""
        if last is None or self.known is None:
            return 0
        return max(0, last.time + 1 - self.known.time) // _NS_PER_MS


@dataclass(frozen=True, slots=True)
class Read:
    """A read that succeeded: where it was invoked and completed in the history, and what it had."""

    invoked_at: int
    completed_at: int
    names: frozenset[Name]


@dataclass(frozen=True)
class SetHistory:
    """The adds and reads of a history."""

    history: Sequence[Op]
    elements: Mapping[Name, Element]  # in the order of their adds
    added_at: Mapping[Name, int]  # the place of each add in the history
    reads: Sequence[Read]  # in the order of their completions
    multiple: Mapping[Name, int]  # what reads have more than once
    unexpected: Sequence[Any]

    @classmethod
    def of(cls, history: Sequence[Op], add: str) -> "SetHistory":
        """Of a history whose operation `add` adds an element; a read's value is the list of elements."""
        added_at: dict[Name, int] = {}
        for at, op in enumerate(history):
            if op.f == add and op.type == "invoke":
                added_at[name_of(op.value)] = at
        elements = {name: Element(history[at].value, history[at]) for name, at in added_at.items()}
        reads: list[Read] = []
        multiple = Counter[Name]()
        unexpected: dict[Name, Any] = {}
        for invoked_at, at in completions(history).items():
            if history[at].f == "read" and history[at].type == "ok":
                values = history[at].value or []
                names = _names(values)
                have = frozenset(names)
                if len(have) < len(names):
                    multiple |= Counter({name: n for name, n in Counter(names).items() if n > 1})
                if extra := have.difference(added_at):
                    pairs = zip(names, values, strict=True)
                    unexpected |= {name: value for name, value in pairs if name in extra}
                reads.append(Read(invoked_at, at, have))
        reads.sort(key=lambda read: read.completed_at)
        found = cls(history, elements, added_at, reads, multiple, list(unexpected.values()))
        found._find_known(add)
        found._find_last(lambda names, read: names & read.names, "last_present")
        found._find_last(lambda names, read: names - read.names, "last_absent")
        return found

    def _find_known(self, add: str) -> None:
        """An element is known from the first of its acknowledgement and the reads that have it."""
        reads = {read.completed_at: read for read in self.reads}
        unknown: set[Name] = set()
        for at, op in enumerate(self.history):
            if op.f == add:
                name = name_of(op.value)
                if op.type == "invoke":
                    unknown.add(name)
                elif op.type == "ok" and name in unknown:
                    self._know({name}, unknown, op)
            elif at in reads:
                self._know(unknown & reads[at].names, unknown, op)

    def _know(self, names: set[Name], unknown: set[Name], op: Op) -> None:
        for name in names:
            self.elements[name].known = op
        unknown -= names

    def _find_last(self, chosen: Callable[[set[Name], Read], set[Name]], field: str) -> None:
        """Give each element the invocation of the last read that chooses it.

        From the last read back, each element is found once, and left out from then on. Early reads do not count
        for elements that are added after them, so these are left out as soon as no earlier read is later.
        """
        missing = set(self.elements)
        by_add = list(self.added_at)
        for read, latest in self._backwards():
            while by_add and self.added_at[by_add[-1]] > latest:
                missing.discard(by_add.pop())
            found = {
                name for name in chosen(missing, read) if self.added_at[name] < read.completed_at
            }
            for name in found:
                setattr(self.elements[name], field, self.history[read.invoked_at])
            missing -= found

    def _backwards(self) -> Iterator[tuple[Read, int]]:
        """Reads from the last invocation on, each with the latest completion of those that are left."""
        reads = sorted(self.reads, key=lambda read: read.invoked_at)
        latest = [0]
        for read in reads:
            latest.append(max(latest[-1], read.completed_at))
        return zip(reversed(reads), reversed(latest[1:]), strict=True)


def _names(values: list[Any]) -> list[Name]:
    """The names of elements; as a rule these are the elements, and there are many."""
    return values if set(map(type, values)) <= {int, str} else list(map(name_of, values))


def name_of(value: Any) -> Name:
    """A stand-in for an element, equal exactly where the JSON values are."""
    if type(value) in (int, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _index(op: Op | None) -> int:
    return op.index if op else -1
