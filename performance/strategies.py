"""Compare the strategies by the runs of sweeps/comparison.toml: docs/performance/strategies.md.

    python -m performance.strategies [results/comparison] [--docs docs/performance]

Medians over repetitions, beside figures that were published and aims (performance/configurations.py).
"""

from pathlib import Path

import click
from rich.console import Console

from performance import document, table
from performance.configurations import CONFIGURATIONS
from performance.document import Record


def strategies_of(records: list[Record]) -> list[str]:
    """The columns: strategies in the order in which they were first run."""
    return list(dict.fromkeys(record["strategy"] for record in records))


def section(folder: Path, records: list[Record]) -> str:
    """The text of the page."""
    how = (
        f"{document.provenance(folder)}\n\n{len(records)} runs. Medians over repetitions, lowest and highest in"
        " brackets;\nthe worst verdict and the lowest fraction of sends and polls that were ok.\n"
    )
    return how + "\n" + table.markdown(CONFIGURATIONS, strategies_of(records), records)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results/comparison"))
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(folder: Path, docs: Path | None) -> None:
    """Show the table, and write it into a page."""
    console = Console()
    records = document.records(folder, lambda cell: cell.get("name"))
    measured = table.measured(CONFIGURATIONS, table.summarise(records))
    for configuration in measured:
        console.print(table.rich_table(configuration, strategies_of(records), records))
    if docs and len(measured) < len(CONFIGURATIONS):
        console.print(f"{docs} stays as it is: it shows all configurations or none")
    elif docs:
        document.write_page(
            docs / "strategies.md", "Strategies, side by side", section(folder, records)
        )


if __name__ == "__main__":
    main()
