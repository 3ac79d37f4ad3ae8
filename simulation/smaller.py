"""Shrinks a failing seed: first its options, then single operations and acts of faults.

Every step is a run of its own, judged as any other. A step is taken when the run fails by the same name as
before. Changing an option changes what is drawn from then on, and an anomaly that needs luck may be gone for
that reason alone: so each step tries a few seeds beside its own before it gives up. [delta debugging:
Zeller & Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002]
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from simulation.judge import Report, simulate
from simulation.scenario import Scenario

SEEDS_PER_STEP = 20
SEEDS_AT_THE_END = 100
PLAIN = Scenario(seed=0)  # what an option is when nothing was drawn

Run = Callable[[Scenario], Report]
Told = Callable[[str], object]


def smallest(report: Report, run: Run = simulate, told: Told = lambda _: None) -> Report:
    """The report of a small scenario that fails as `report` did first.

    No single step of `simpler` makes it smaller in any of the seeds tried, and no operation or act of a
    fault can be left out of it. `told` is called with a line for each step. Raises `ValueError` when nothing
    is wrong in `report`.
    """
    if not report.failures:
        raise ValueError("nothing is wrong with this seed: there is nothing to shrink to")
    shrinker = _Shrinker(report.names[0], run, told)
    report = shrinker.best_seed(shrinker.with_fewer_options(report))
    return shrinker.with_fewer_acts(report)


def simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one option simpler than in `scenario`, the boldest first."""
    yield from _without_faults(scenario)
    for name, values in _LADDERS.items():
        yield from _lower(scenario, name, values)
    for name in _PLAIN_OPTIONS:
        if getattr(scenario, name) != getattr(PLAIN, name):
            yield _with(scenario, name, getattr(PLAIN, name))


# What costs operations and messages, from the smallest value on.
_LADDERS: dict[str, tuple[float, ...]] = {
    "time_limit_s": (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    "nodes": (1, 2, 3, 4),
    "clients": (1, 2, 3),
    "rate": (5.0, 10.0, 20.0, 30.0, 60.0, 100.0, 200.0),
    "key_count": (1, 2, 4),
}
_PLAIN_OPTIONS = (
    "latency_dist",
    "think_dist",
    "think_us",
    "combine",
    "lanes",
    "memory_kib",
    "store_timeout_ms",
    "seal_entries",
    "seal_bytes",
    "segments_per_run",
    "freshness_ms",
    "max_writes_per_key",
    "nemesis_interval_s",
)


def _without_faults(scenario: Scenario) -> Iterator[Scenario]:
    faults = scenario.nemesis
    if len(faults) > 1:
        yield replace(scenario, nemesis=())
    for fault in faults:
        yield replace(scenario, nemesis=tuple(each for each in faults if each != fault))


def _lower(scenario: Scenario, name: str, values: tuple[float, ...]) -> Iterator[Scenario]:
    now = getattr(scenario, name)
    for value in values:
        if value < now:
            yield _with(scenario, name, type(now)(value))


def _with(scenario: Scenario, name: str, value: Any) -> Scenario:
    changes: dict[str, Any] = {name: value}
    return replace(scenario, **changes)


class _Shrinker:
    """Takes steps as long as there is one that still fails by `wanted`."""

    def __init__(self, wanted: str, run: Run, told: Told) -> None:
        self._wanted = wanted
        self._run = run
        self._told = told

    def with_fewer_options(self, report: Report) -> Report:
        """Until no simpler option fails in any seed that is tried."""
        refused: set[Scenario] = set()
        while True:
            for scenario in simpler(report.scenario):
                shape = replace(scenario, seed=0)
                if shape in refused:
                    continue
                found = self._failing(scenario)
                if found:
                    if _line(found) != _line(report):
                        self._told(_line(found))
                    report = found
                    break
                refused.add(shape)
            else:
                return report

    def best_seed(self, report: Report) -> Report:
        """Of the seeds that fail, the one with the fewest operations."""
        seeds = range(SEEDS_AT_THE_END)
        others = (self._fails(replace(report.scenario, seed=seed)) for seed in seeds)
        best = min(filter(None, chain([report], others)), key=lambda each: each.operations)
        self._told(_line(best))
        return best

    def with_fewer_acts(self, report: Report) -> Report:
        """Leave out operations and acts of faults, in chunks first, then one by one."""
        for omit in ("omit_faults", "omit"):
            report = self._with_fewer(report, omit)
        return report

    def _with_fewer(self, report: Report, omit: str) -> Report:
        size = max(1, _drawn(report, omit) // 2)
        while True:
            smaller = self._without_chunk(report, omit, size)
            if smaller:
                self._told(_line(smaller))
                report = smaller
            elif size == 1:
                return report
            else:
                size //= 2

    def _without_chunk(self, report: Report, omit: str, size: int) -> Report | None:
        omitted = frozenset(getattr(report.scenario, omit))
        left = [number for number in range(_drawn(report, omit)) if number not in omitted]
        for start in range((len(left) - 1) // size * size, -1, -size):
            more = tuple(sorted(omitted | set(left[start : start + size])))
            found = self._fails(_with(report.scenario, omit, more))
            if found and found.operations <= report.operations:
                return found
        return None

    def _failing(self, scenario: Scenario) -> Report | None:
        seeds = chain([scenario.seed], range(SEEDS_PER_STEP))
        each = (self._fails(replace(scenario, seed=seed)) for seed in seeds)
        return next(filter(None, each), None)

    def _fails(self, scenario: Scenario) -> Report | None:
        report = self._run(scenario)
        return report if self._wanted in report.names else None


def _drawn(report: Report, omit: str) -> int:
    return report.fault_acts if omit == "omit_faults" else report.acts


def _line(report: Report) -> str:
    chosen = report.scenario
    faults = ",".join(chosen.nemesis) or "no faults"
    if chosen.nemesis:
        faults += f" ({report.fault_acts - len(chosen.omit_faults)} acts)"
    return (
        f"{report.operations} operations: seed {chosen.seed}, {chosen.nodes} nodes,"
        f" {chosen.clients} clients each, {chosen.time_limit_s:g} s, {faults}"
    )
