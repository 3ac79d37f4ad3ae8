"""Cases of anomalies, and which of them results.edn shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runs.history import Keyword, keywords, printable
from workloads.digraph import EMPTY_GRAPH
from workloads.interface import Case

Cases = dict[str, list[Case]]  # by anomaly type

CYCLES = ("G0", "G0-process", "G0-realtime", "G1c", "G1c-process", "G1c-realtime")


@dataclass(frozen=True)
class Choice:
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
SHOWN: Mapping[str, Choice] = {
    "duplicate": Choice(32, lambda case: int(case["count"])),
    "inconsistent-offsets": Choice(32, lambda case: len(case["values"])),
    **dict.fromkeys(
        ("int-poll-skip", "int-send-skip", "poll-skip"), Choice(8, _delta, largest=True)
    ),
    **dict.fromkeys(
        (
            "int-nonmonotonic-poll",
            "int-nonmonotonic-send",
            "nonmonotonic-poll",
            "nonmonotonic-send",
        ),
        Choice(8, _delta),
    ),
    **dict.fromkeys(OURS, Choice(32, lambda _case: 0)),
    **dict.fromkeys(CYCLES, Choice(8, lambda case: len(case["steps"]))),
}


def condensed(anomaly: str, cases: list[Case]) -> dict[Keyword, Any]:
    """`{:count n, :errs (...)}` as it stands in results.edn, with the cases that are shown."""
    if anomaly == EMPTY_GRAPH:
        return keywords(count=1, errs=True)
    chosen = SHOWN[anomaly].of(cases) if anomaly in SHOWN else cases
    return keywords(count=len(cases), errs=tuple(map(printable, chosen)))
