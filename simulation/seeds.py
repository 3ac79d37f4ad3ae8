"""Many seeds over the cores, with a progress bar, and what came of them."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from simulation.judge import simulate
from simulation.pool import spread
from simulation.scenario import Scenario

PLAIN_EVERY_S = 10.0  # a line so often where there is no terminal


class Short(NamedTuple):
    """What is known of one seed afterwards; `text` is of the first thing wrong."""

    seed: int
    strategy: str
    names: tuple[str, ...]
    text: str
    virtual_s: float
    cpu_s: float
    operations: int


@dataclass(slots=True)
class Tally:
    """What came of a range of seeds."""

    wanted: int
    began_s: float = field(default_factory=time.monotonic)
    run: int = 0
    failed: list[Short] = field(default_factory=list)
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    operations: int = 0
    strategies: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)

    def add(self, short: Short) -> None:
        """One more is done."""
        self.run += 1
        self.virtual_s += short.virtual_s
        self.cpu_s += short.cpu_s
        self.operations += short.operations
        self.strategies[short.strategy] += 1
        if short.names:
            self.failed.append(short)
            self.failed.sort()
            self.names[short.names[0]] += 1

    def summary(self) -> str:
        """One line."""
        elapsed_s = time.monotonic() - self.began_s
        found = ", ".join(f"{count} {name}" for name, count in self.names.most_common())
        return (
            f"{len(self.failed)} of {self.run} seeds failed{f' ({found})' if found else ''};"
            f" {self.operations} operations, {self.virtual_s / 3600:.1f} virtual hours"
            f" in {elapsed_s:.0f} s, {self.run / elapsed_s:.1f} seeds a second"
        )

    def as_object(self) -> dict[str, Any]:
        """For tools."""
        return {
            "seeds": self.run,
            "failed": [failed._asdict() for failed in self.failed],
            "strategies": dict(self.strategies),
            "operations": self.operations,
            "virtual_s": self.virtual_s,
            "cpu_s": self.cpu_s,
            "elapsed_s": time.monotonic() - self.began_s,
        }


def run_seed(given: Mapping[str, Any], seed: int) -> Short:
    """Run one seed, in whatever process."""
    report = simulate(Scenario.draw(seed, given))
    return Short(
        seed=seed,
        strategy=report.scenario.strategy,
        names=tuple(report.names),
        text=report.failures[0].text[:500] if report.failures else "",
        virtual_s=report.virtual_s,
        cpu_s=report.cpu_s,
        operations=report.operations,
    )


def run_seeds(
    seeds: Sequence[int],
    given: Mapping[str, Any],
    jobs: int,
    keep_going: bool,
    *,
    label: str = "simulating",
) -> Tally:
    """Run them all, or until one fails; shows on stderr how it goes."""
    tally = Tally(len(seeds))
    console = Console(stderr=True, highlight=False)
    results = spread(partial(run_seed, dict(given)), seeds, min(jobs, len(seeds)))
    with _progress(console) as progress:
        bar = progress.add_task(label, total=len(seeds), failed=0)
        told_s = time.monotonic()
        for short in results:
            tally.add(short)
            progress.update(bar, advance=1, failed=len(tally.failed))
            if not console.is_terminal and time.monotonic() - told_s > PLAIN_EVERY_S:
                told_s = time.monotonic()
                console.print(f"{label}: {tally.run} of {tally.wanted}, {len(tally.failed)} failed")
            if tally.failed and not keep_going:
                break
    results.close()  # type: ignore[attr-defined]  # a generator
    return tally


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
