"""What became of each element of a set that clients add to and read. [Jepsen's checker `set-full`]

Operations are `add` (of one element) and `read` (of all elements). An element counts from its last add, if it
was added more than once. Of each element count

    known          when it was certainly there: its add was acknowledged, or a read that has it completed,
                   whichever was first
    last present   the last invocation of a read that has it
    last absent    the last invocation of a read that lacks it

where only reads count that completed after the add was invoked. One of three things became of it:

    stable      a read has it that was invoked after all those that lack it
    lost        it was known, and a read lacks it that was invoked later than that, and than all that have it
    never-read  neither: no read can tell

Its *stable latency* is the time from known to just after the last absent read, in whole ms; 0 when no read
lacked it. It is *stale* when that is more than 0. Its *lost latency* is the time from known to just after the
last present read. Quantile q of n values is the one at place q * n, rounded down, counted from 0.

The verdict is invalid when an element is lost, else unknown when none is stable, else valid.

`duplicated` has the elements that some read has more than once, with how often at most. `unexpected` has those
that nobody added; the real tool has no such entry. Both are reported, and make a run invalid only with
`--strict`. The real tool means to count duplicates too, but a comparison in it is reversed: it finds none.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from runs.edn import dumps
from runs.facts import grouped, spaced
from runs.history import MS, Keyword, Op, completions, keywords
from workloads.interface import UNKNOWN, Finding, Judge, Result, without

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
        return max(0, last.time + 1 - self.known.time) // MS


@dataclass(frozen=True, slots=True)
class Read:
    """A read that succeeded: where it was invoked and completed in the history, and what it had."""

    invoked_at: int
    completed_at: int
    names: frozenset[Name]


@dataclass(frozen=True)
class SetHistory:
    """Who added what, and what reads saw of it."""

    history: Sequence[Op]
    elements: Mapping[Name, Element]  # in the order of their adds
    added_at: Mapping[Name, int]  # the place of each add in the history
    reads: Sequence[Read]  # in the order of their completions
    multiple: Mapping[Name, int]  # what reads have more than once
    unexpected: Sequence[Any]

    @classmethod
    def of(cls, history: Sequence[Op], add: str) -> "SetHistory":
        """Of a history whose operation `add` adds an element; a read's value is the list of elements."""
        added_at = {
            name_of(op.value): at
            for at, op in enumerate(history)
            if op.f == add and op.type == "invoke"
        }
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

    def completion(self, invocation: Op | None) -> Op | None:
        """Return how the read with this invocation ended; None without one."""
        ends = (r.completed_at for r in self.reads if self.history[r.invoked_at] is invocation)
        return next((self.history[at] for at in ends), None)

    def _find_known(self, add: str) -> None:
        """An element is known from the first of its acknowledgement and the reads that have it."""
        reads = {read.completed_at: read for read in self.reads}
        unknown: set[Name] = set()
        for at, op in enumerate(self.history):
            shown: frozenset[Name] = reads[at].names if at in reads else frozenset()
            if op.f == add and op.type == "invoke":
                unknown.add(name_of(op.value))
            elif op.f == add and op.type == "ok":
                shown = frozenset((name_of(op.value),))
            known = unknown & shown
            for name in known:
                self.elements[name].known = op
            unknown -= known

    def _find_last(self, chosen: Callable[[set[Name], Read], set[Name]], field: str) -> None:
        """Give each element the invocation of the last read that chooses it: from the last read back."""
        missing = set(self.elements)
        for read in sorted(self.reads, key=lambda read: read.invoked_at, reverse=True):
            found = {
                name for name in chosen(missing, read) if self.added_at[name] < read.completed_at
            }
            for name in found:
                setattr(self.elements[name], field, self.history[read.invoked_at])
            missing -= found


def _names(values: list[Any]) -> list[Name]:
    """The names of elements; as a rule these are the elements, and there are many."""
    return values if set(map(type, values)) <= {int, str} else list(map(name_of, values))


def name_of(value: Any) -> Name:
    """A stand-in for an element, equal exactly where the JSON values are."""
    return value if type(value) in (int, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _index(op: Op | None) -> int:
    return op.index if op else -1


# ---------------------------------------------------------------- the verdict


_QUANTILES = (0, 0.5, 0.95, 0.99, 1)
_WORST = 8


def judge_of(add: str) -> Judge:
    """What judges histories in which the operation `add` adds an element."""
    check, explain = partial(check_set, add=add), partial(explain_set, add=add)
    return Judge(check, explain, figures, at_end=frozenset(("lost",)))


def check_set(history: Sequence[Op], options: Mapping[str, Any], add: str) -> Result:
    """Judge a history; the module's docstring describes the result. Of the options only `strict` counts."""
    found = SetHistory.of(history, add)
    elements = sorted(found.elements.values(), key=lambda each: _order(each.value))
    by_outcome = grouped((each.outcome, each) for each in elements)
    stable, lost, never_read = (by_outcome.get(of, []) for of in (STABLE, LOST, NEVER_READ))
    stale = [each for each in stable if each.stable_latency_ms]
    worst = sorted(stale, key=lambda each: -(each.stable_latency_ms or 0))[:_WORST]
    odd = bool(options.get("strict") and (found.multiple or found.unexpected))
    return {
        **keywords(
            valid=False if lost or odd else True if stable else UNKNOWN,
            attempt_count=len(elements),
            stable_count=len(stable),
            lost_count=len(lost),
            lost=_values(lost),
            never_read_count=len(never_read),
            never_read=_values(never_read),
            stale_count=len(stale),
            stale=_values(stale),
            worst_stale=[
                keywords(
                    element=each.value,
                    outcome=each.outcome,
                    stable_latency=each.stable_latency_ms,
                    lost_latency=each.lost_latency_ms,
                    known=each.known,
                    last_absent=each.last_absent,
                )
                for each in worst
            ],
        ),
        **_latencies("stable-latencies", [each.stable_latency_ms or 0 for each in stable]),
        **_latencies("lost-latencies", [each.lost_latency_ms or 0 for each in lost]),
        **keywords(
            duplicated_count=len(found.multiple),
            duplicated={
                name.decode() if isinstance(name, bytes) else name: found.multiple[name]
                for name in sorted(found.multiple, key=_order)
            },
            unexpected_count=len(found.unexpected),
            unexpected=found.unexpected,
        ),
    }


def _latencies(name: str, values: list[int]) -> dict[Keyword, Any]:
    """The quantiles of some latencies in ms under a name; nothing without any."""
    if not values:
        return {}
    ordered, n = sorted(values), len(values)
    return {Keyword(name): {q: ordered[min(n - 1, int(q * n))] for q in _QUANTILES}}


def figures(result: Mapping[Any, Any]) -> str:
    """What became of the elements, and how long it took until all reads had them."""
    outcomes = (
        f"{spaced(result[f'{name}-count'])} {name}" for name in ("stable", "lost", "never-read")
    )
    parts = [f"{spaced(result['attempt-count'])} elements: {', '.join(outcomes)}"]
    if latencies := result.get("stable-latencies"):
        shares = zip(("least", "median", "p95", "p99", "most"), latencies.values(), strict=True)
        told = ", ".join(f"{value} {name}" for name, value in shares)
        parts.append(f"stable latency in ms: {told}")
    return "; ".join(parts)


def _values(elements: Sequence[Element]) -> list[Any]:
    return [each.value for each in elements]


def _order(value: Any) -> tuple[bool, Any]:
    """Numbers by size, then everything else by its text."""
    return (False, value) if type(value) in (int, float) else (True, str(value))


def explain_set(result: Mapping[Any, Any], history: Sequence[Op], add: str) -> list[Finding]:
    """A finding for lost elements, for duplicated ones, and for those that nobody added."""
    if not any(result[f"{name}-count"] for name in ("lost", "duplicated", "unexpected")):
        return []
    found = SetHistory.of(history, add)
    strict = result["valid?"] is False and not result["lost"]
    return [*_lost(found, result), *_odd(found, strict)]


def _lost(found: SetHistory, result: Mapping[Any, Any]) -> Iterator[Finding]:
    if not result["lost"]:
        return
    element = found.elements[name_of(result["lost"][0])]
    known, present = element.known, found.completion(element.last_present)
    absent = found.completion(element.last_absent)
    assert known, "a lost element was known"
    assert absent, "a read lacks a lost element"
    how = "was acknowledged" if known.f != "read" else "was first read"
    still = f", process {present.process} still read it at {_seconds(present)}" if present else ""
    sentence = (
        f"{_retyped(found)}Element {dumps(element.value)} is lost: it {how} at {_seconds(known)}"
        f"{'' if present is known else still}, and every later read lacks it. The last of them is that of"
        f" process {absent.process} at {_seconds(absent)}."
    )
    yield Finding("lost", True, result["lost-count"], sentence, _witness(found, element))


def _seconds(op: Op) -> str:
    return f"{op.time / 1e9:.3f} s"


def _retyped(found: SetHistory) -> str:
    """What is said first where reads have a number in another form than it was added; else nothing."""
    added = {
        form(name): name for name in found.elements if type(name) is int for form in (str, float)
    }
    read = next(
        (each for each in found.unexpected if type(each) in (str, float) and each in added), None
    )
    if read is None:
        return ""
    return f"Reads have {dumps(read)} where {dumps(added[read])} was added: give an element back as it came. "


def _witness(found: SetHistory, element: Element) -> list[Op]:
    """The add, when it was known, and the last reads with and without the element."""
    reads = map(found.completion, (element.last_present, element.last_absent))
    ops = filter(None, (element.added, element.known, *reads))
    chosen = {op.index: _reduced(op, element.value) for op in ops}
    return [chosen[index] for index in sorted(chosen)]


def _reduced(op: Op, element: Any) -> Op:
    """The operation; of a read's elements only the one that matters is left."""
    if op.f != "read" or op.type != "ok":
        return op
    wanted = name_of(element)
    values = op.value or []
    left = [value for value in values if name_of(value) == wanted]
    return without(replace(op, value=left), len(values) - len(left))


def _odd(found: SetHistory, strict: bool) -> Iterator[Finding]:
    """What a read has more than once, and what nobody added: the first read that shows it."""
    names = [max(found.multiple, key=lambda name: found.multiple[name])] if found.multiple else []
    twice = [("duplicated", name, len(found.multiple), found.multiple[name]) for name in names]
    nobody = [("unexpected", name_of(each), len(found.unexpected), 1) for each in found.unexpected]
    for type_, name, count, times in (*twice, *nobody[:1]):
        reads = (found.history[each.completed_at] for each in found.reads)
        read = next(r for r in reads if Counter(map(name_of, r.value or ()))[name] >= times)
        value = next(each for each in read.value if name_of(each) == name)
        how = f" {times} times at once" if type_ == "duplicated" else ", which nobody added"
        sentence = f"Process {read.process} read element {dumps(value)}{how}."
        yield Finding(type_, strict, count, sentence, [_reduced(read, value)])
