"""Show how runs on real stores end under faults, and what they cost, by the runs of bench/sweep/stores.toml.

    python -m performance.stores_under_faults [results/stores] [MORE...] [--docs docs/performance]

On a server that is there already, such as Ceph's gateway, the same sweep has another folder:

    ./maelstrom sweep bench/sweep/stores.toml --name ceph --set store-server=s3://logs --set name=Ceph

Writes docs/performance/stores-under-faults.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click

from performance.harness import APage, program, table_lines, write_page
from performance.sweep_records import provenance, rows_of, text
from runs import sweeps
from runs.figures import number_of
from runs.sweeps import Cell

_SHOWN = (
    *("throughput_ops_per_s", "ok_fraction", "store_requests_per_op"),
    *("send_p50_ms", "send_p99_ms"),
)
_VERDICTS = {1.0: "valid", 0.0: "**invalid**", None: "–"}
_ABOUT = """\
A minute of clients and 10 s of recovery, on 3 nodes. *Valid*: no anomaly by the rules of the real tool.
*Strict*: every node also handed out every acknowledged message. Requests to SQLite are not counted.
[What the faults do](../stores-under-the-bench.md)."""


def verdict(cell: Cell, figure: str) -> str:
    """The worst verdict of a cell's runs, in words; a run that left no figures is invalid."""
    found = [row.figures.get(figure, 0.0) for row in cell.rows]
    return _VERDICTS[None if None in found else min(each for each in found if each is not None)]


def row(cell: Cell) -> list[str]:
    """A cell's faults, verdicts and figures."""
    faults = str(cell.axes["faults"])
    numbers = (text(cell.summary(name), name) for name in _SHOWN)
    name = "all" if faults.count(",") > 2 else faults
    return [name, verdict(cell, "valid"), verdict(cell, "strict_valid"), *numbers]


def sections(cells: Sequence[Cell]) -> list[str]:
    """A table for each store."""
    by_store: dict[str, list[Cell]] = {}
    for cell in cells:
        name = str(cell.axes.get("name", cell.axes["store-server"]))
        by_store.setdefault(name, []).append(cell)
    titles = ["fault", "valid", "strict", *(number_of(name).heading for name in _SHOWN)]
    return [
        f"## {store}\n\n" + "\n".join(table_lines(titles, map(row, alike)))
        for store, alike in by_store.items()
    ]


@program
def main(
    folders: Annotated[tuple[Path, ...], click.Path(path_type=Path)] = (), *, docs: APage = None
) -> None:
    parts = []
    for folder in folders or (Path("results/stores"),):
        parts += [provenance(folder), *sections(sweeps.cells(rows_of(folder)))]
    click.echo("\n\n".join(parts))
    if docs:
        write_page(
            docs / "stores-under-faults.md",
            "Real stores under faults",
            "\n\n".join([_ABOUT, *parts]),
        )


if __name__ == "__main__":
    main()
