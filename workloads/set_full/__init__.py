"""What became of each element of a set that clients add to and read. [Jepsen's checker `set-full`]

Operations are `add` (of one element, each added once) and `read` (of all elements). Of each element count

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

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Judge
from workloads.set_full.elements import LOST, NEVER_READ, STABLE, Element, Name, SetHistory
from workloads.set_full.explain import explain_set

_QUANTILES = (0, 0.5, 0.95, 0.99, 1)
_WORST = 8


def judge_of(add: str) -> Judge:
    """What judges histories in which the operation `add` adds an element."""
    check, explain = partial(check_set, add=add), partial(explain_set, add=add)
    return Judge(check, explain, figures, at_end=frozenset(("lost",)))


def check_set(history: Sequence[Op], options: Mapping[str, Any], add: str) -> dict[Keyword, Any]:
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
