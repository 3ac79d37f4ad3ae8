"""Shrinks a failing seed: first its options, then single operations and acts of faults.

Every step is a run of its own, judged as any other. A step is taken when the run fails by the same name as
before, and has no more operations. Changing an option changes what is drawn from then on, and an anomaly that
needs luck may be gone for that reason alone: so each step tries a few seeds beside its own before it gives
up. [delta debugging: Zeller & Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002]
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from simulation.judge import Report, simulate
from simulation.options import simpler
from simulation.scenario import DEFAULTS, DRAWS, Scenario

# What follows from an anomaly that has a name of its own, where there is one.
CONSEQUENCES = ("Convergence", "Progress")

Run = Callable[[Scenario], Report]
Log = Callable[[str], object]


class Effort(NamedTuple):
    """How many other seeds are tried: for each step, and for the smallest scenario at the end."""

    seeds_per_step: int = 20
    seeds_at_the_end: int = 100


USUAL = Effort()


def smallest(
    report: Report,
    run: Run = simulate,
    log: Log = lambda _: None,
    effort: Effort = USUAL,
) -> Report:
    """The report of a small scenario that fails by the `subject` of `report`.

    No single step makes it smaller in any of the seeds tried, and no operation or act of a fault can be left
    out of it. `log` is called with a line for each step. Raises `ValueError` when nothing is wrong in `report`.
    """
    if not report.failures:
        raise ValueError("nothing is wrong with this seed: there is nothing to shrink to")
    shrinker = _Shrinker(subject(report), run, log, effort)
    report = shrinker.best_seed(shrinker.with_fewer_options(report))
    for omit in ("omit_faults", "omit"):
        report = shrinker.with_fewer(report, omit)
    return report


def subject(report: Report) -> str:
    """The name of the failure that a report is about: the first that is no mere consequence."""
    return next((each for each in report.names if each not in CONSEQUENCES), report.names[0])


@dataclass(frozen=True, slots=True)
class _Shrinker:
    """Takes steps as long as there is one that still fails by `wanted`."""

    wanted: str
    run: Run
    log: Log
    effort: Effort

    def with_fewer_options(self, report: Report) -> Report:
        """Until no simpler option fails in any seed that is tried."""
        refused: set[Scenario] = set()
        while True:
            for scenario in simpler_than(report.scenario):
                shape = replace(scenario, seed=0)
                if shape in refused:
                    continue
                found = self._failing(scenario, report.operations)
                if found:
                    if _line(found) != _line(report):
                        self.log(_line(found))
                    report = found
                    break
                refused.add(shape)
            else:
                return report

    def best_seed(self, report: Report) -> Report:
        """Of the seeds that fail, the one with the fewest operations."""
        seeds = range(self.effort.seeds_at_the_end)
        others = (self._fails(replace(report.scenario, seed=seed)) for seed in seeds)
        best = min(filter(None, chain([report], others)), key=lambda each: each.operations)
        self.log(_line(best))
        return best

    def with_fewer(self, report: Report, omit: str) -> Report:
        """Leave out operations or acts of faults, in chunks first, then one by one."""
        size = max(1, _drawn(report, omit) // 2)
        while True:
            smaller = self._without_chunk(report, omit, size)
            if smaller:
                self.log(_line(smaller))
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
            found = self._fails(replace(report.scenario, **{omit: more}))
            if found and found.operations <= report.operations:
                return found
        return None

    def _failing(self, scenario: Scenario, operations: int) -> Report | None:
        """The report of the first seed that fails with at most so many operations."""
        seeds = chain([scenario.seed], range(self.effort.seeds_per_step))
        each = filter(None, (self._fails(replace(scenario, seed=seed)) for seed in seeds))
        return next((report for report in each if report.operations <= operations), None)

    def _fails(self, scenario: Scenario) -> Report | None:
        report = self.run(scenario)
        return report if self.wanted in report.names else None


def simpler_than(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one option simpler, the boldest first: fewer faults, then lower values."""
    values = {name: getattr(scenario, name) for name, it in DRAWS.items() if it.lower is not None}
    names = [name for name, value in values.items() if isinstance(value, tuple)]
    for name in dict.fromkeys([*names, *values]):
        for each in simpler(values[name], DRAWS[name].lower or (), DEFAULTS[name]):
            changes: dict[str, Any] = {name: each}
            yield replace(scenario, **changes)


def _drawn(report: Report, omit: str) -> int:
    return report.fault_acts if omit == "omit_faults" else report.acts


def _line(report: Report) -> str:
    chosen = report.scenario
    acts = report.fault_acts - len(chosen.omit_faults)
    faults = ",".join(chosen.nemesis) or "none"
    return (
        f"{report.operations} operations: seed {chosen.seed}, {chosen.nodes} nodes,"
        f" {chosen.clients} clients each, {chosen.time_limit_s:g} s, faults {faults}, {acts} acts of faults"
    )
