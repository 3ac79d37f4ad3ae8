"""Checkers that look at outcomes only: stats, availability, exceptions. [facts: Jepsen's
checker.clj]
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from runs.history import NEMESIS, Op
from runs.keyword import Keyword, keywords

# These never succeed by design: they are there to disturb, or to look.
NEVER_OK = frozenset(("crash", "debug-topic-partitions"))


def stats(history: Sequence[Op]) -> dict[Keyword, Any]:
    """Counts of outcomes, in all and by `f`; invalid when some `f` never succeeded."""
    by_f: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for op in history:
        if op.type != "invoke" and op.process != NEMESIS:
            by_f[op.f][op.type] += 1
    result = _outcomes(sum(by_f.values(), Counter()))
    result[Keyword("by-f")] = {Keyword(f): _outcomes(by_f[f]) for f in sorted(by_f)}
    result[Keyword("valid?")] = all(by_f[f]["ok"] for f in by_f if f not in NEVER_OK)
    return result


def _outcomes(counts: Counter[str]) -> dict[Keyword, Any]:
    return keywords(
        valid=counts["ok"] > 0,
        count=counts.total(),
        ok_count=counts["ok"],
        fail_count=counts["fail"],
        info_count=counts["info"],
    )


def availability(history: Sequence[Op], expected: str | float | None) -> dict[Keyword, Any]:
    """The fraction of invocations that succeeded, against `total` (all), a lower bound, or
    nothing.
    """
    counts = Counter(op.type for op in history)
    fraction = single(counts["ok"] / counts["invoke"]) if counts["invoke"] else 1
    bound = 1.0 if expected == "total" else float(expected or 0)
    return keywords(valid=fraction >= bound, ok_fraction=fraction)


def exceptions(history: Iterable[Op]) -> dict[Keyword, Any]:
    """Operations during which a client itself broke, the most frequent kind first."""
    broken = defaultdict(list)
    for op in history:
        if op.type == "info" and "exception" in op.extra:
            broken[op.extra["exception"]].append(op)
    if not broken:
        return keywords(valid=True)
    found = [
        keywords(count=len(ops), **{"class": kind}, example=ops[0]) for kind, ops in broken.items()
    ]
    return keywords(valid=True, exceptions=sorted(found, key=lambda each: -each[Keyword("count")]))


def single(number: float) -> float:
    """The number in single precision, with no more digits than that has: as the real tool prints
    it.
    """
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    for digits in range(1, 10):
        short = float(f"{rounded:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", rounded):
            return short
    return float(rounded)
