"""Compare `leaderless` with `cas` on the virtual clock, with the aims: docs/performance/protocol-cost.md.

    python -m performance.protocol_cost [--docs docs/performance] [--seeds 4]

Nothing but the protocol costs time here: no process, no processor (see `performance.virtual`). So the page is
the same on every machine. A run lasts as long as its configuration needs for some thousand operations, or 20
virtual seconds. The whole takes about ten minutes of a processor.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import click

from performance import spread, table_lines
from performance import sweep_records as of_sweep
from performance.virtual import CELLS, Figures, measure, scenario
from simulation.scenario import Scenario

DURABLE, DEFERRED, CAS = "leaderless, durable", "leaderless, deferred", "cas"
VARIANTS = {
    DURABLE: ("leaderless", "durable"),
    DEFERRED: ("leaderless", "deferred"),
    CAS: ("cas",) * 2,
}
THINK_US = 100
TITLES = ("strategy, commits", "ops/s", "send p50, ms", "send p99, ms", "ok", "server messages/op")
Medians = Mapping[str, Figures]  # of each variant


@dataclass(frozen=True, slots=True)
class Aim:
    """`figure` of `variant` at most (or at least) `limit`, times that of `cas` if it is `relative`."""

    figure: str
    limit: float
    variant: str = DURABLE
    relative: bool = False
    at_least: bool = False

    def told(self, medians: Medians) -> str:
        """The aim, and whether it was met."""
        found = float(getattr(medians[self.variant], self.figure))
        bound = self.limit * (getattr(medians[CAS], self.figure) if self.relative else 1.0)
        met = found >= bound if self.at_least else found <= bound
        relation = "at least" if self.at_least else "at most"
        of_cas = f" ({self.limit:.3g} x `cas`)" if self.relative else ""
        verdict = "✔ met" if met else "**✘ missed**"
        return (
            f"- {NAMES[self.figure]}, {self.variant}: {relation} {bound:.3g}{of_cas}. "
            f"{found:.3g}: {verdict}"
        )


NAMES = dict(
    zip(("per_second", "p50", "p99", "ok", "messages"), TITLES[1:], strict=True)
)  # fields of `Figures`


@dataclass(frozen=True, slots=True)
class Part:
    """A configuration: `change` makes it from the cell called `cell`."""

    title: str
    cell: str
    time_limit_s: float
    aims: tuple[Aim, ...]
    change: Callable[[Scenario], Scenario] = lambda same: same

    def scenario(self, variant: str, seed: int) -> Scenario:
        """One run."""
        strategy, commits = VARIANTS[variant]
        same = scenario(CELLS[self.cell], strategy, seed, self.time_limit_s, THINK_US)
        kept = "durable" if strategy == "cas" else commits
        return self.change(replace(same, commits=kept))


_AS_CAS = (
    Aim("per_second", 1.0, relative=True, at_least=True),
    Aim("p99", 1.0, relative=True),
    Aim("messages", 1 / 3, relative=True),
)

PARTS = (
    Part(
        "2 nodes, 2n, rate 1000",
        "2-nodes",
        6.0,
        (Aim("messages", 0.95, DEFERRED), Aim("p50", 4.5, DEFERRED)),
    ),
    Part("16 nodes, 2n, rate 10 000", "16-nodes", 2.0, (Aim("messages", 1.0),)),
    Part(
        "25 nodes, 1n, rate 500",
        "2-nodes",
        6.0,
        (Aim("messages", 1.6),),
        lambda same: replace(same, nodes=25, clients=1, rate=500.0),
    ),
    Part(
        "5 nodes, 4n, rate 200, latency 100 ms exponential",
        "5-nodes-100ms",
        20.0,
        (Aim("ok", 0.97, at_least=True), *_AS_CAS),
    ),
    Part(
        "5 nodes, 4n, rate 200, latency 100 ms exponential, partitions every 3 s",
        "5-nodes-100ms-partitions",
        20.0,
        (Aim("ok", 0.95, at_least=True), *_AS_CAS),
    ),
    Part(
        "5 nodes, 2n, rate 1000, latency 10 ms, partitions every 2 s",
        "5-nodes-partitions",
        20.0,
        (Aim("p99", 1.0, relative=True), Aim("messages", 1.8)),
    ),
    Part(
        "16 nodes, 2n, rate 10 000, latency 10 ms exponential",
        "16-nodes-10ms",
        6.0,
        (Aim("p99", 150.0),),
    ),
    Part(
        "3 nodes, 2n, rate 10, latency 100 ms constant",
        "3-nodes-100ms",
        20.0,
        (Aim("p50", 1.0, relative=True), Aim("p99", 1.0, relative=True)),
    ),
)


@click.command(help=__doc__)
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
@click.option("--seeds", default=4, show_default=True, help="From 1 on.")
def main(docs: Path | None, seeds: int) -> None:
    parts = [_about(seeds)]
    with ProcessPoolExecutor() as pool:
        for part in PARTS:
            runs = {
                variant: list(
                    pool.map(measure, [part.scenario(variant, 1 + n) for n in range(seeds)])
                )
                for variant in VARIANTS
            }
            parts.append("\n".join(section(part, runs)))
            click.echo(f"{parts[-1]}\n")
    if docs:
        text = "\n\n".join(parts)
        of_sweep.write_page(docs / "protocol-cost.md", "What the protocol costs", text)


def section(part: Part, runs: Mapping[str, list[Figures]]) -> Iterator[str]:
    """A configuration: its table, and its aims."""
    yield from (f"## {part.title}", "", f"Runs of {part.time_limit_s:g} virtual seconds.", "")
    yield from table_lines(TITLES, ([name, *_cells(each)] for name, each in runs.items()))
    yield ""
    medians = {name: Figures(*map(median, zip(*each, strict=True))) for name, each in runs.items()}
    yield from (aim.told(medians) for aim in part.aims)


def _cells(runs: list[Figures]) -> list[str]:
    return [
        f"{median(each.per_second for each in runs):.1f}",
        f"{median(each.p50 for each in runs):.1f}",
        spread((each.p99 for each in runs), ".0f"),
        f"{min(each.ok for each in runs):.3f}",
        f"{median(each.messages for each in runs):.2f}",
    ]


def _about(seeds: int) -> str:
    return f"""\
    .venv/bin/python -m performance.protocol_cost --docs docs/performance --seeds {seeds}

Medians of {seeds} seeds on the virtual clock, where neither processes nor processors cost time;
p99 with the lowest and the highest. `ok` is the lowest share of sends and polls that succeeded
in a run; its aim is judged by the median, as all others are. Server messages are divided by the
sends and polls that succeeded. `cas` keeps committed offsets durably, so *durable* is the fair
comparison."""


if __name__ == "__main__":
    main()
