"""Runs many seeds over the cores, with a progress bar, and counts their results."""

import sys
import time
from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import click

from simulation.judge import Report, simulate
from simulation.pool import spread
from simulation.scenario import Scenario

TEXT_MAX = 500  # of a failure


@dataclass(slots=True)
class Tally:
    """The results of a range of seeds."""

    began_s: float = field(default_factory=time.monotonic)
    results: list[Report] = field(default_factory=list)
    failed: list[Report] = field(default_factory=list)  # by seed

    def add(self, result: Report) -> None:
        self.results.append(result)
        if result.failures:
            insort(self.failed, result, key=lambda each: each.scenario.seed)

    @property
    def virtual_s(self) -> float:
        """The virtual time of all together."""
        return sum(result.virtual_s for result in self.results)

    @property
    def operations(self) -> int:
        """The operations of all together."""
        return sum(result.operations for result in self.results)

    def summary(self) -> str:
        elapsed_s = time.monotonic() - self.began_s
        names = Counter(result.names[0] for result in self.failed)
        found = ", ".join(f"{count} {name}" for name, count in names.most_common())
        return (
            f"{len(self.failed)} of {len(self.results)} seeds failed{f' ({found})' if found else ''};"
            f" {self.operations} operations, {self.virtual_s / 3600:.1f} virtual hours"
            f" in {elapsed_s:.0f} s, {len(self.results) / elapsed_s:.1f} seeds a second"
        )

    def as_object(self) -> dict[str, Any]:
        return {
            "seeds": len(self.results),
            "failed": [
                {
                    "seed": each.scenario.seed,
                    "log": each.scenario.strategy,
                    "names": each.names,
                    "text": each.failures[0].text[:TEXT_MAX],
                    "virtual_s": each.virtual_s,
                    "cpu_s": each.cpu_s,
                    "operations": each.operations,
                }
                for each in self.failed
            ],
            "strategies": Counter(result.scenario.strategy for result in self.results),
            "operations": self.operations,
            "virtual_s": self.virtual_s,
            "cpu_s": sum(result.cpu_s for result in self.results),
            "elapsed_s": time.monotonic() - self.began_s,
        }


def run_seed(given: Mapping[str, Any], seed: int) -> Report:
    """Run one seed, in whatever process; its history stays there."""
    return replace(simulate(Scenario.draw(seed, given)), history=[])


def run_seeds(seeds: Sequence[int], given: Mapping[str, Any], jobs: int, keep_going: bool) -> Tally:
    """Run them all, or until one fails; shows on stderr how it goes."""
    tally = Tally()
    results = spread(partial(run_seed, dict(given)), seeds, min(jobs, len(seeds)))
    with click.progressbar(
        results,
        length=len(seeds),
        label="seeds",
        item_show_func=lambda _: f"{len(tally.failed)} failed",
        file=sys.stderr,
    ) as bar:
        for result in bar:
            tally.add(result)
            if tally.failed and not keep_going:
                break
    results.close()
    return tally
