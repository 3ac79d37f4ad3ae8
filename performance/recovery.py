"""Measure how long it takes after a fault until operations are as fast as before.

    python -m performance.recovery RUN...

The runs are ours or the real tool's, best with one fault at a time and a calm beginning. `runs.recovery`
defines the time.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import click

from performance.harness import program, show_table
from runs.figures import of_run
from runs.store import Folder


@program
def main(runs: Annotated[tuple[Path, ...], click.Path(exists=True, path_type=Path)]) -> None:
    times: dict[str, list[float | None]] = {}
    for run in runs:
        for fault in of_run(Folder(run, run.name)).table("faults"):
            if fault["watched_ms"] is not None:
                times.setdefault(fault["kind"], []).append(fault["recovery_ms"])
    titles = ("fault", "measured", "median ms", "least", "greatest", "not recovered")
    show_table(titles, (row(fault, all_ms) for fault, all_ms in times.items()))


def row(fault: str, all_ms: Sequence[float | None]) -> list[str]:
    seen = [ms for ms in all_ms if ms is not None]
    figures = [f"{each(seen):.0f}" if seen else "-" for each in (median, min, max)]
    return [fault, str(len(all_ms)), *figures, str(len(all_ms) - len(seen))]


if __name__ == "__main__":
    main()
