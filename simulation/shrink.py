"""Shrinks a failing seed: first its options, then single operations and acts of faults.

Every step is a run of its own, judged as any other. A step is taken when the run fails by the same name as
before, and has no more operations. Changing an option changes what is drawn from then on, and an anomaly that
needs luck may be gone for that reason alone: so each step tries a few seeds beside its own before it gives
up. [delta debugging: Zeller & Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002]
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from simulation.judge import Failure, Report, simulate
from simulation.scenario import REDUCTIONS, Scenario

DEFAULTS = Scenario(seed=0).options()
# What follows from an anomaly that has a name of its own, where there is one.
CONSEQUENCES = ("Convergence", "Progress")

Log = Callable[[str], object]


class Judged(Protocol):
    """The report of a run whose scenario can be shrunk.

    `acts` and `fault_acts`: how many were drawn, which `omit` and `omit_faults` of the scenario number.
    """

    @property
    def scenario(self) -> Any: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def failures(self) -> list[Failure]: ...
    @property
    def operations(self) -> int: ...
    @property
    def acts(self) -> int: ...
    @property
    def fault_acts(self) -> int: ...


R = TypeVar("R", bound=Judged)


class Way(NamedTuple, Generic[R]):
    """How scenarios of one kind are shrunk: `run` runs one, `simpler` gives simpler ones, `line` tells one."""

    run: Callable[[Any], R]
    simpler: Callable[[Any], Iterable[Any]]
    line: Callable[[R], str]


@dataclass(frozen=True, slots=True)
class Effort:
    """How many other seeds are tried: for each step, and for the smallest scenario at the end."""

    seeds_per_step: int = 20
    seeds_at_the_end: int = 100


def smallest(
    report: Report,
    run: Callable[[Scenario], Report] = simulate,
    log: Log = lambda _: None,
    effort: Effort | None = None,
) -> Report:
    """As `smallest_by`, for a simulated cluster."""
    return smallest_by(Way(run, simpler, _line), report, log, effort)


def smallest_by(way: Way[R], report: R, log: Log, effort: Effort | None = None) -> R:
    """The report of a small scenario that fails by the `subject` of `report`.

    No single step of `way.simpler` makes it smaller in any of the seeds tried, and no operation or act of a
    fault can be left out of it. `log` is called with a line for each step. Raises `ValueError` when nothing
    is wrong in `report`.
    """
    if not report.failures:
        raise ValueError("nothing is wrong with this seed: there is nothing to shrink to")
    shrinker = _Shrinker(subject(report), way, log, effort or Effort())
    report = shrinker.best_seed(shrinker.with_fewer_options(report))
    return shrinker.with_fewer_acts(report)


def subject(report: Judged) -> str:
    """The name of the failure that a report is about: the first that is no mere consequence."""
    return next((each for each in report.names if each not in CONSEQUENCES), report.names[0])


def simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one option simpler than in `scenario`, the boldest first."""
    yield from _without_faults(scenario)
    for name, reduction in REDUCTIONS.items():
        value = getattr(scenario, name)
        lower = [type(value)(each) for each in reduction.values if each < value]
        plain = [] if reduction.values or value == DEFAULTS[name] else [DEFAULTS[name]]
        for each in lower + plain:
            yield _with(scenario, name, each)


def _without_faults(scenario: Scenario) -> Iterator[Scenario]:
    faults = scenario.nemesis
    if len(faults) > 1:
        yield replace(scenario, nemesis=())
    for fault in faults:
        yield replace(scenario, nemesis=tuple(each for each in faults if each != fault))


def _with(scenario: Any, name: str, value: Any) -> Any:
    return replace(scenario, **{name: value})


@dataclass(frozen=True, slots=True)
class _Shrinker(Generic[R]):
    """Takes steps as long as there is one that still fails by `wanted`."""

    wanted: str
    way: Way[R]
    log: Log
    effort: Effort

    def with_fewer_options(self, report: R) -> R:
        """Until no simpler option fails in any seed that is tried."""
        refused: set[Any] = set()
        while True:
            for scenario in self.way.simpler(report.scenario):
                shape = replace(scenario, seed=0)
                if shape in refused:
                    continue
                found = self._failing(scenario, report.operations)
                if found:
                    if self.way.line(found) != self.way.line(report):
                        self.log(self.way.line(found))
                    report = found
                    break
                refused.add(shape)
            else:
                return report

    def best_seed(self, report: R) -> R:
        """Of the seeds that fail, the one with the fewest operations."""
        seeds = range(self.effort.seeds_at_the_end)
        others = (self._fails(replace(report.scenario, seed=seed)) for seed in seeds)
        best = min(filter(None, chain([report], others)), key=lambda each: each.operations)
        self.log(self.way.line(best))
        return best

    def with_fewer_acts(self, report: R) -> R:
        """Leave out operations and acts of faults, in chunks first, then one by one."""
        for omit in ("omit_faults", "omit"):
            report = self._with_fewer(report, omit)
        return report

    def _with_fewer(self, report: R, omit: str) -> R:
        size = max(1, _drawn(report, omit) // 2)
        while True:
            smaller = self._without_chunk(report, omit, size)
            if smaller:
                self.log(self.way.line(smaller))
                report = smaller
            elif size == 1:
                return report
            else:
                size //= 2

    def _without_chunk(self, report: R, omit: str, size: int) -> R | None:
        omitted = frozenset(getattr(report.scenario, omit))
        left = [number for number in range(_drawn(report, omit)) if number not in omitted]
        for start in range((len(left) - 1) // size * size, -1, -size):
            more = tuple(sorted(omitted | set(left[start : start + size])))
            found = self._fails(_with(report.scenario, omit, more))
            if found and found.operations <= report.operations:
                return found
        return None

    def _failing(self, scenario: Any, operations: int) -> R | None:
        """The report of the first seed that fails with at most so many operations."""
        seeds = chain([scenario.seed], range(self.effort.seeds_per_step))
        each = filter(None, (self._fails(replace(scenario, seed=seed)) for seed in seeds))
        return next((report for report in each if report.operations <= operations), None)

    def _fails(self, scenario: Any) -> R | None:
        report = self.way.run(scenario)
        return report if self.wanted in report.names else None


def _drawn(report: Judged, omit: str) -> int:
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
