"""The shape of what the checks find, and which of many cases of one type are worth showing."""

from collections.abc import Callable, Mapping
from typing import Any

from bench import edn
from bench.history import Op, op_map
from bench.keyword import Keyword, keywords

Case = dict[Any, Any]  # one instance of an anomaly; its operations are `Op`s until it is shown
Cases = dict[str, list[Case]]  # by anomaly type

EMPTY_GRAPH = "empty-transaction-graph"
CYCLES = ("G0", "G0-process", "G0-realtime", "G1c", "G1c-process", "G1c-realtime")


def _delta(case: Case) -> int:
    return int(case["delta"])


def _least(count: int, measure: Callable[[Case], int]) -> Callable[[list[Case]], list[Case]]:
    return lambda cases: sorted(cases, key=measure)[:count]


def _largest(count: int, measure: Callable[[Case], int]) -> Callable[[list[Case]], list[Case]]:
    return lambda cases: sorted(cases, key=measure)[-count:]


def _first(count: int) -> Callable[[list[Case]], list[Case]]:
    return lambda cases: cases[:count]


# How many cases of a type are shown, and which, as the real checker chooses [condense-error]; all of the
# types that are not listed. Two types are ours: no-writer-of-value and unreplicated.
_SHOWN: Mapping[str, Callable[[list[Case]], list[Case]]] = {
    "duplicate": _least(32, lambda case: int(case["count"])),
    "inconsistent-offsets": _least(32, lambda case: len(case["values"])),
    **dict.fromkeys(("int-poll-skip", "int-send-skip", "poll-skip"), _largest(8, _delta)),
    **dict.fromkeys(
        (
            "int-nonmonotonic-poll",
            "int-nonmonotonic-send",
            "nonmonotonic-poll",
            "nonmonotonic-send",
        ),
        _least(8, _delta),
    ),
    **dict.fromkeys(("no-writer-of-value", "unreplicated"), _first(32)),
    **dict.fromkeys(CYCLES, _least(8, lambda case: len(case["steps"]))),
}


def condensed(anomaly: str, cases: list[Case]) -> dict[Keyword, Any]:
    """`{:count n, :errs (...)}` as it stands in results.edn, with the most telling cases."""
    if anomaly == EMPTY_GRAPH:
        return keywords(count=1, errs=True)
    chosen = _SHOWN.get(anomaly, list)(cases)
    return keywords(count=len(cases), errs=tuple(map(printable, chosen)))


def printable(value: Any) -> Any:
    """`value` with each operation in it turned into the map that stands for it in a file."""
    if isinstance(value, Op):
        return edn.TaggedMap("jepsen.history.Op", op_map(value))
    if isinstance(value, dict):
        return {key: printable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(printable(each) for each in value)
    return value
