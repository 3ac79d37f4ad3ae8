"""What the price of a message buys: the curve of messages against latency, docs/performance/price.md.

    python -m performance.price [--docs docs/performance] [--seeds 2] [--real 6]

Every row is run with several prices (`Pace.message_worth_s`) and, last, with the strategy `cas`, which waits
for nobody and hands nothing over. On the virtual clock a node costs nothing; `--real` runs real processes.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

import click

from leaderless.core.pace import Pace
from performance import show_table, spread
from performance.ablation_rows import ROWS, Run
from performance.virtual import Figures, measure

PRICES_MS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
SHOWN = ("2x2 durable", "2x2 deferred", "16x2 durable", "25x1", "5x2 10ms calm", "5x4 100ms calm")
TITLES = ("price, ms", "server messages/op", "send p50, ms", "p99 (lowest to highest)", "ops/s")
ABOUT = """# The price of a message

How long may a client wait to save one message between servers? `--message-worth-ms` of a node, and
`message_worth_s` of `open_log`, say it. All choices between messages and time follow from it
([one price decides](../adr/0005-one-price-decides.md)). Any price is safe.

`{command}` makes this page.
{clock} Each figure is the median over the seeds.
{default} ms is the default. Published durable solutions need 5.5 to 16 server messages an operation.
"""
VIRTUAL = "Time is virtual: network and waiting cost time, nodes cost nothing."
REAL = "Nodes are real processes, which share the cores of the machine with the bench."


def figures(run: Run) -> Figures:
    """Of one run. Raises `ClickException` if it broke an invariant."""
    found = run.measure()
    if isinstance(found, str):
        raise click.ClickException(f"{run}: {found}")
    return found


def of_cas(row: str, seed: int) -> Figures:
    """Of the strategy `cas`, on the virtual clock."""
    return measure(replace(ROWS[row].scenario(seed), strategy="cas"))


def cells(name: str, runs: list[Figures]) -> list[str]:
    """A row of the table."""
    messages, p50, rate = (
        median(getattr(each, field) for each in runs) for field in ("messages", "p50", "per_second")
    )
    p99 = spread((each.p99 for each in runs), ".3g")
    return [name, f"{messages:.2f}", f"{p50:.3g}", p99, f"{rate:.3g}"]


def rows(
    row: str, seeds: int, real_s: float, work: Callable[..., Iterator[Figures]]
) -> Iterator[list[str]]:
    """The table of one configuration."""
    each_seed = range(1, 1 + seeds)
    for price_ms in PRICES_MS:
        changes = {"message_worth_s": price_ms / 1000}
        runs = [Run(row, changes, seed, real_s) for seed in each_seed]
        yield cells(f"{price_ms:g}", [*work(figures, runs)])
    if not real_s:
        yield cells("`cas`", [*work(of_cas, [row] * seeds, each_seed)])


@click.command(help=__doc__)
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
@click.option("--seeds", default=2, show_default=True, help="From 1 on.")
@click.option("--real", "real_s", default=0.0, help="Seconds of a run with real processes.")
def main(docs: Path | None, seeds: int, real_s: float) -> None:
    command = f"python -m performance.price --seeds {seeds}" + (
        f" --real {real_s:g}" if real_s else ""
    )
    default = f"{1000 * Pace().message_worth_s:g}"
    clock = REAL if real_s else VIRTUAL
    lines = ABOUT.format(command=command, clock=clock, default=default).splitlines()
    with ProcessPoolExecutor() as pool:
        work = map if real_s else pool.map  # real processes one run after the other
        for row in SHOWN:
            click.echo(f"\n{row}: {ROWS[row].part.title}")
            lines += ["", f"## {ROWS[row].part.title}, {ROWS[row].scenario(1).commits}", ""]
            lines += show_table(TITLES, rows(row, seeds, real_s, work))
    if docs:
        name = "price-real.md" if real_s else "price.md"
        (docs / name).write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
