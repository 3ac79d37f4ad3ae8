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
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from runs.edn import dumps
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Finding, Judge, Result
from workloads.set_full.elements import (
    LOST,
    NEVER_READ,
    STABLE,
    Element,
    Name,
    SetHistory,
    name_of,
)

_QUANTILES = (0, 0.5, 0.95, 0.99, 1)
_WORST = 8


def judge_of(add: str) -> Judge:
    """What judges histories in which the operation `add` adds an element."""
    check, explain = partial(check_set, add=add), partial(explain_set, add=add)
    return Judge(check, explain, figures, at_end=frozenset(("lost",)))


def check_set(history: Sequence[Op], options: Mapping[str, Any], add: str) -> Result:
    """Judge a history; the package's docstring describes the result. Of the options only `strict` counts."""
    found = SetHistory.of(history, add)
    elements = sorted(found.elements.values(), key=lambda each: _order(each.value))
    by_outcome: dict[Keyword, list[Element]] = {STABLE: [], LOST: [], NEVER_READ: []}
    for element in elements:
        by_outcome[element.outcome].append(element)
    stable, lost, never_read = by_outcome.values()
    stale = [each for each in stable if each.stable_latency_ms]
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
            worst_stale=[_described(each) for each in _worst(stale)],
        ),
        **_latencies("stable-latencies", [each.stable_latency_ms or 0 for each in stable]),
        **_latencies("lost-latencies", [each.lost_latency_ms or 0 for each in lost]),
        **keywords(
            duplicated_count=len(found.multiple),
            duplicated={
                _key(name): found.multiple[name] for name in sorted(found.multiple, key=_order)
            },
            unexpected_count=len(found.unexpected),
            unexpected=found.unexpected,
        ),
    }


def _worst(stale: Sequence[Element]) -> list[Element]:
    return sorted(stale, key=lambda each: -(each.stable_latency_ms or 0))[:_WORST]


def _described(element: Element) -> dict[Keyword, Any]:
    return keywords(
        element=element.value,
        outcome=element.outcome,
        stable_latency=element.stable_latency_ms,
        lost_latency=element.lost_latency_ms,
        known=element.known,
        last_absent=element.last_absent,
    )


def _latencies(name: str, values: list[int]) -> dict[Keyword, Any]:
    """The quantiles of some latencies in ms under a name; nothing without any."""
    if not values:
        return {}
    ordered, n = sorted(values), len(values)
    return {Keyword(name): {q: ordered[min(n - 1, int(q * n))] for q in _QUANTILES}}


def figures(result: Mapping[Any, Any]) -> str:
    """What became of the elements, and how long it took until all reads had them."""
    outcomes = (f"{result[f'{name}-count']} {name}" for name in ("stable", "lost", "never-read"))
    parts = [f"{result['attempt-count']} elements: {', '.join(outcomes)}"]
    if latencies := result.get("stable-latencies"):
        shares = zip(("least", "median", "p95", "p99", "most"), latencies.values(), strict=True)
        told = ", ".join(f"{value} {name}" for name, value in shares)
        parts.append(f"stable latency in ms: {told}")
    return "; ".join(parts)


def _key(name: Name) -> int | str:
    """The name of an element as a key of results.edn and results.json."""
    return name.decode() if isinstance(name, bytes) else name


def _values(elements: Sequence[Element]) -> list[Any]:
    return [each.value for each in elements]


def _order(value: Any) -> tuple[bool, Any]:
    """Numbers by size, then everything else by its text."""
    is_number = type(value) in (int, float)
    return (False, value) if is_number else (True, str(value))


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
    known, absent, present = element.known, element.last_absent, element.last_present
    assert known, "a lost element was known"
    assert absent, "a read lacks a lost element"
    how = "was acknowledged" if known.f != "read" else "had been read"
    later = f"after the read of process {present.process}" if present else "later"
    sentence = (
        f"Element {dumps(element.value)} is lost: it {how} at {known.time / 1e9:.3f} s, and no read that "
        f"was invoked {later} has it. The last of them is that of process {absent.process} at "
        f"{absent.time / 1e9:.3f} s."
    )
    yield Finding("lost", True, result["lost-count"], sentence, _witness(found, element))


def _witness(found: SetHistory, element: Element) -> list[Op]:
    """The add, when it was known, and the last reads with and without the element."""
    completion_of = {
        found.history[read.invoked_at].index: found.history[read.completed_at]
        for read in found.reads
    }
    reads = (completion_of[op.index] for op in (element.last_present, element.last_absent) if op)
    ops = [element.added, *([element.known] if element.known else []), *reads]
    chosen = {op.index: _reduced(op, element.value) for op in ops}
    return [chosen[index] for index in sorted(chosen)]


def _reduced(op: Op, element: Any) -> Op:
    """The operation; of a read's elements only the one that matters is left."""
    if op.f != "read" or op.type != "ok":
        return op
    wanted = name_of(element)
    left = [value for value in op.value or [] if name_of(value) == wanted]
    return Op(op.index, op.time, op.type, op.process, op.f, left, op.extra)


def _odd(found: SetHistory, strict: bool) -> Iterator[Finding]:
    """What a read has more than once, and what nobody added: the first read that shows it."""
    names = [max(found.multiple, key=lambda name: found.multiple[name])] if found.multiple else []
    twice = [("duplicated", name, len(found.multiple), found.multiple[name]) for name in names]
    nobody = [("unexpected", name_of(each), len(found.unexpected), 1) for each in found.unexpected]
    for type_, name, count, times in (*twice, *nobody[:1]):
        read = next(op for op in _reads(found) if Counter(map(name_of, op.value))[name] >= times)
        value = next(each for each in read.value if name_of(each) == name)
        how = f" {times} times at once" if type_ == "duplicated" else ", which nobody added"
        sentence = f"Process {read.process} read element {dumps(value)}{how}."
        yield Finding(type_, strict, count, sentence, [_reduced(read, value)])


def _reads(found: SetHistory) -> Iterator[Op]:
    """The reads that had something."""
    ops = (found.history[read.completed_at] for read in found.reads)
    return (op for op in ops if op.value)
