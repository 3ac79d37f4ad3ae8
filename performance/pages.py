"""Make a page of docs/performance, or a part of it, from the runs of a sweep.

    python -m performance.pages strategies [results/comparison] [--docs docs/performance]
    python -m performance.pages scaling [results/scaling] [--docs docs/performance]
    python -m performance.pages stores-under-faults [results/stores MORE...] [--docs docs/performance]

`strategies`: medians over repetitions, beside figures that were published, and aims. `scaling`: how messages,
latency and CPU grow; one thing grows at a time, and docs/images/performance-<what>.svg shows it.
`stores-under-faults`: how runs on real stores end, and what they cost. On a server that is there already,
such as Ceph's gateway, the same sweep has another folder:

    ./maelstrom sweep bench/sweep/stores.toml --name ceph --set store-server=s3://logs --set name=Ceph
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import click

from performance.age import line
from performance.harness import A_PATH, program, table_lines, write_page
from performance.measured import WORDS, machine, provenance, rows_of, text
from performance.scaling import scaling_page
from performance.strategies import CONFIGURATIONS, strategies_page
from runs import sweeps
from runs.facts import grouped
from runs.figures import number_of
from runs.sweeps import Cell

_OF_STORES = ("throughput_ops_per_s", "ok_fraction", "send_p99_ms")
NODE = ("leaderless/core", "leaderless/runtime", "leaderless/wire")
_ABOUT = """\
A minute of clients and 10 s of recovery, on 3 nodes. *Valid*: no anomaly, and every node handed out every
acknowledged message; *not strict*: some node did not.
[What the faults do](../bench/stores-under-the-bench.md)."""


def stores_page(folder: Path, _: Path) -> Iterator[str]:
    """Yield a table for each store, with a row for each fault."""

    def row(cell: Cell) -> list[str]:
        faults = str(cell.axes["faults"])
        worst = [_worst(cell, figure) for figure in ("valid", "strict_valid")]
        verdict = worst[0] if worst[0] in worst[1:] else f"{worst[0]}, **not strict**"
        numbers = (text(cell.summary(name), name) for name in _OF_STORES)
        return ["all" if faults.count(",") > 2 else faults, verdict, *numbers]

    yield provenance(folder)
    by_store = grouped(
        (str(cell.axes.get("name", cell.axes["store-server"])), cell)
        for cell in sweeps.cells(rows_of(folder))
    )
    titles = ["fault", "verdict", *(number_of(name).heading for name in _OF_STORES)]
    for store, cells in by_store.items():
        yield f"## {store}\n\n" + "\n".join(table_lines(titles, (row(cell) for cell in cells)))


def _worst(cell: Cell, verdict: str) -> str:
    """The worst verdict of a cell's runs, in words; a run that left no figures is invalid by both."""
    found = [row.figures.get(verdict, 0.0) for row in cell.rows]
    return WORDS[None if None in found else min(each for each in found if each is not None)]


class Page(NamedTuple):
    """A page of the runs in `results/<sweep>`; all of `headings` are on it, or it stays as it is.

    `make` has its parts, from the folder of a sweep and that for pictures.
    """

    title: str
    sweep: str
    make: Callable[[Path, Path], Iterator[str]]
    about: Sequence[str] = ()
    headings: Sequence[str] = ()
    measured: Sequence[str] = NODE


PAGES = {
    "strategies": Page(
        "Strategies, side by side", "comparison", strategies_page,
        headings=[each.title for each in CONFIGURATIONS],
    ),
    "scaling": Page("How cost grows", "scaling", scaling_page),
    "stores-under-faults": Page(
        "Real stores under faults", "stores", stores_page, [_ABOUT],
        measured=(*NODE, "leaderless/store"),
    ),
}  # fmt: skip


@program(__doc__)
@click.argument("name", type=click.Choice([*PAGES]))
@click.argument("folders", type=A_PATH, nargs=-1)
@click.option("--docs", type=A_PATH)
def main(name: str, folders: tuple[Path, ...], *, docs: Path | None) -> None:
    page = PAGES[name]
    made = folders or (Path("results", page.sweep),)
    pages = (page.make(folder, docs.parent / "images" if docs else folder) for folder in made)
    parts = [*chain.from_iterable(pages)]
    content = "\n\n".join(parts)
    click.echo(content)
    if docs and all(f"## {heading}\n" in content for heading in page.headings):
        measured = line(page.measured, [machine(folder)["commit"] for folder in made])
        write_page(docs / f"{name}.md", page.title, measured, "\n\n".join([*page.about, *parts]))
    elif docs:
        click.echo(f"{docs} stays as it is: it shows all configurations or none")


if __name__ == "__main__":
    main()
