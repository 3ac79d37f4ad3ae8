"""Measure how long it takes after a fault until operations are as fast as before.

    python -m performance.recovery RUN...

Reads the histories of runs, ours or the real tool's, best with one fault at a time and a calm beginning.
`runs.recovery` defines the time.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import click

from performance.harness import program, show_table
from runs.history import find_history, read_history
from runs.recovery import MS, recoveries
from workloads.interface import CLIENT_TIMEOUT_MS


@program
def main(runs: Annotated[tuple[Path, ...], click.Path(exists=True, path_type=Path)]) -> None:
    times: dict[str, list[float | None]] = {}
    for run in runs:
        try:
            history = read_history(find_history(run))
            for fault, took_ms in recoveries(history, CLIENT_TIMEOUT_MS * MS):
                times.setdefault(fault, []).append(took_ms)
        except ValueError as error:
            raise click.ClickException(f"{run}: {error}") from None
    titles = ("fault", "measured", "median ms", "least", "greatest", "not recovered")
    show_table(titles, (row(fault, all_ms) for fault, all_ms in times.items()))


def row(fault: str, all_ms: Sequence[float | None]) -> list[str]:
    seen = [ms for ms in all_ms if ms is not None]
    figures = [f"{each(seen):.0f}" if seen else "-" for each in (median, min, max)]
    return [fault, str(len(all_ms)), *figures, str(len(all_ms) - len(seen))]


if __name__ == "__main__":
    main()
