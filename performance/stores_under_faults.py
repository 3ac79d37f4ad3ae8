"""Show how runs on real stores end under faults, and what they cost, by the runs of sweeps/stores.toml.

    python -m performance.stores_under_faults [results/stores] [MORE...] [--docs docs/performance]

On a server that is there already, such as Ceph's gateway, the same sweep has another folder:

    ./maelstrom sweep sweeps/stores.toml --name ceph --set store-server=s3://logs --set name=Ceph

Writes docs/performance/stores-under-faults.md.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from performance import sweep_records as of_sweep
from performance import table_lines
from runs import sweeps
from runs.sweeps import FIGURES, Cell

_SHOWN = (
    *("throughput_ops_per_s", "ok_fraction", "store_requests_per_op", "server_messages_per_op"),
    *("send_p50_ms", "send_p99_ms", "poll_p99_ms", "worst_lag_s", "node_cpu_us_per_op"),
)
_VERDICTS = {1.0: "valid", 0.0: "**invalid**", None: "–"}
_ABOUT = """\
Each run is a minute of clients and 10 s of recovery, on 3 nodes. *Valid*: no anomaly by the rules of the
real tool. *Strict*: every node also handed out every acknowledged message. Requests to SQLite are not
counted. Server messages are those between nodes. [What the faults do](../stores-under-the-bench.md).
"""


def verdict(cell: Cell, figure: str) -> str:
    """The worst verdict of a cell's runs, in words; a run that left no figures is invalid."""
    found = [row.figures.get(figure, 0.0) for row in cell.rows]
    return _VERDICTS[None if None in found else min(each for each in found if each is not None)]


def row(cell: Cell) -> list[str]:
    """A cell's faults, verdicts and figures."""
    faults = str(cell.axes["faults"])
    numbers = [of_sweep.cell(cell.summary(name), FIGURES[name]) for name in _SHOWN]
    name = "all" if faults.count(",") > 2 else faults
    return [name, verdict(cell, "valid"), verdict(cell, "strict_valid"), *numbers]


def sections(cells: Sequence[Cell]) -> list[str]:
    """A table for each store."""
    by_store: dict[str, list[Cell]] = {}
    for cell in cells:
        by_store.setdefault(store_of(cell.axes), []).append(cell)
    titles = ["fault", "valid", "strict", *(FIGURES[name].title for name in _SHOWN)]
    return [
        f"## {store}\n\n" + "\n".join(table_lines(titles, map(row, alike)))
        for store, alike in by_store.items()
    ]


def store_of(axes: Mapping[str, object]) -> str:
    """The store of a cell as a heading."""
    return str(axes.get("name", axes["store-server"]))


@click.command(help=__doc__)
@click.argument(
    "folders", type=click.Path(path_type=Path), nargs=-1, default=(Path("results/stores"),)
)
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(folders: tuple[Path, ...], docs: Path | None) -> None:
    parts = []
    for folder in folders:
        rows = sweeps.read(folder).values()
        if not rows:
            raise click.UsageError(f"{folder}: no folder of a sweep: run ./maelstrom sweep first.")
        parts += [of_sweep.provenance(folder), *sections(sweeps.cells([*rows]))]
    click.echo("\n\n".join(parts))
    if docs:
        text = "\n\n".join([_ABOUT.strip(), *parts])
        of_sweep.write_page(docs / "stores-under-faults.md", "Real stores under faults", text)


if __name__ == "__main__":
    main()
