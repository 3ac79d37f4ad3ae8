"""pn-counter: a counter that goes up and down. Clients add at any node, and read the sum.

    {"type": "add", "delta": -3}  ->  {"type": "add_ok"}
    {"type": "read"}              ->  {"type": "read_ok", "value": 17}

Half of the operations add a number from -5 to 4; the others read. Reads may lag behind. After the faults are
healed and the recovery time is over, every worker reads once more (`:final? true` in the history), and only
these reads are judged: each must be the sum of all acknowledged adds, and of any of the adds whose outcome is
unknown. The result has

    final-reads   what the final reads read
    acceptable    the sums that are possible, as ranges [from, to]
    errors        the final reads of other sums

As in the real tool, every error of an operation leaves its outcome unknown, even a definite one. Where no final
read succeeded nothing was judged, and the verdict is unknown; the real tool says valid.

The rules are those of Maelstrom's workload of this name.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from runs.edn import dumps
from runs.history import Op, completions, keywords
from workloads.interface import (
    UNKNOWN,
    Draft,
    Finding,
    Judge,
    Result,
    Setting,
    Workload,
    by_history,
)
from workloads.mixes import FINAL, OnceEach, final_read, mix, read
from workloads.replies import INTEGER, Stateless, add_or_read

LEAST, MOST = -5, 4
_WITNESSES = 3


def check(history: Sequence[Op]) -> Result:
    """Judge the final reads; the module's docstring describes the result."""
    certain, uncertain = adds(history)
    acceptable = sums(sum(op.value for op in certain), [op.value for op in uncertain])
    reads = [op for op in history if op.extra.get(FINAL) and op.type == "ok"]
    errors = [op for op in reads if not any(low <= op.value <= high for low, high in acceptable)]
    return keywords(
        valid=UNKNOWN if not reads else not errors,
        errors=errors or None,
        final_reads=[op.value for op in reads],
        acceptable=acceptable,
    )


def adds(history: Sequence[Op]) -> tuple[list[Op], list[Op]]:
    """The adds that took effect, and those that may have."""
    pairs = completions(history)
    last = [
        history[pairs.get(at, at)]
        for at, op in enumerate(history)
        if op.f == "add" and op.type == "invoke"
    ]
    certain = [op for op in last if op.type == "ok"]
    return certain, [op for op in last if op.type in ("info", "invoke")]


def sums(base: int, deltas: Iterable[int]) -> list[list[int]]:
    """All sums of `base` and any of the deltas, as ranges from low to high."""
    least, reachable = base, 1  # bit i: the sum `least + i` is reachable
    for delta in deltas:
        if delta >= 0:
            reachable |= reachable << delta
        else:
            least += delta
            reachable |= reachable << -delta
    found = [least + place for place, bit in enumerate(reversed(f"{reachable:b}")) if bit == "1"]
    runs = groupby(enumerate(found), key=lambda pair: pair[1] - pair[0])
    ranges = [[value for _, value in run] for _, run in runs]
    return [[values[0], values[-1]] for values in ranges]


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for all final reads of a wrong sum."""
    errors = result["errors"]
    if not errors:
        return []
    certain, uncertain = adds(history)
    total = sum(op.value for op in certain)
    others = f", and others ({len(uncertain)}) may have happened" if uncertain else ""
    possible = " or ".join(_range(*each) for each in result["acceptable"])
    sentence = (
        f"Process {errors[0].process} read {dumps(errors[0].value)} at the end. The acknowledged adds "
        f"({len(certain)}) make {total}{others}: right is {possible}."
        f"{_way(certain, errors[0].value, result['acceptable'])}"
    )
    causes = [op for op in certain if op.value]
    return [Finding("wrong-sum", True, len(errors), sentence, errors[:_WITNESSES], causes=causes)]


def _way(certain: Sequence[Op], value: int, acceptable: Sequence[Sequence[int]]) -> str:
    """What else is said of a wrong sum."""
    is_growing = all(op.value >= 0 for op in certain)
    if value == sum(op.value for op in certain if op.value > 0) and not is_growing:
        return " It has those above 0 alone."
    if is_growing and value > acceptable[-1][1]:
        return " Some add is in it more than once."
    if is_growing and value < acceptable[0][0]:
        each = ", or each counts as 1" * (value == len(certain))
        return f" Some add is missing in it{each}." if value else " No add is in it."
    return ""


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def figures(result: Mapping[Any, Any]) -> str:
    """The final reads, each value once, and what they could be."""
    values = ", ".join(map(str, sorted(set(result["final-reads"])))) or "nothing"
    possible = ", ".join(_range(*each) for each in result["acceptable"])
    return f"final reads: {values}; acceptable: {possible}"


JUDGE = Judge(by_history(check), explain, figures)  # whether all final reads are possible sums


def counter(name: str, least: int, reads: int, setting: Setting) -> Workload:
    """The workload of a counter: adds from `least` to `MOST`, and so many reads for each."""
    random = setting.random(name)
    return Workload(
        generator=mix(random, lambda: Draft("add", random.randint(least, MOST)), *[read] * reads),
        final_generator=OnceEach(setting.concurrency, final_read),
        open_client=partial(Stateless, perform=partial(add_or_read, field="delta", value=INTEGER)),
        judge=JUDGE,
    )


build = partial(counter, "pn-counter", LEAST, 1)
