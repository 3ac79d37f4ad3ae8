"""The runs that a sweep asks for: their order, the ones that are still to be made, and their duration."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean

from bench.sweep.plan import Cell, Sweep
from runs.facts import EMBEDDED, JEPSEN, grouped
from runs.sweeps import Key, Row

# A guess of the time for starting, final polls, judging and drawing, until runs of this sweep have shown it.
_OVERHEAD_S = {EMBEDDED: 4.0, JEPSEN: 60.0}
# A run is stopped so many seconds after its own time; the real tool draws plots for minutes.
_JUDGING_LIMIT_S = {EMBEDDED: 120.0, JEPSEN: 900.0}
_NAME_LIMIT = 120


@dataclass(frozen=True)
class Job:
    """A run to make: a cell of a sweep, with its repetition (from 1) and its engine."""

    sweep: str
    cell: Cell
    repetition: int
    engine: str

    @property
    def key(self) -> tuple[str, int, str]:
        """Of its row (`Row.key`): the cell, the repetition, the engine."""
        return self.cell.key, self.repetition, self.engine

    @property
    def title(self) -> str:
        """The cell and the repetition, for people."""
        again = f", repetition {self.repetition}" if self.repetition > 1 else ""
        return f"{self.cell.title}{again}"

    @property
    def duration_s(self) -> float:
        """How long the run lasts for sure: its main phase and its recovery."""
        return self.cell.options.time_limit_s + self.cell.options.recovery_time_s

    @property
    def limit_s(self) -> float:
        """After how long it is stopped."""
        return 3 * self.duration_s + _JUDGING_LIMIT_S[self.engine]

    def folder(self, parent: Path) -> Path:
        """The folder of the run; its name is made of the axes that differ between cells."""
        name = re.sub(r"[^\w.,=+-]+", "_", self.cell.title)
        if len(name) > _NAME_LIMIT:
            name = f"{name[:_NAME_LIMIT]}-{hashlib.sha256(self.cell.key.encode()).hexdigest()[:8]}"
        return parent / f"{name}.{self.repetition}"


def jobs_of(sweep: Sweep, engine: str) -> list[Job]:
    """Every run of a sweep in its order: all cells once, then the next repetition.

    Cells that differ in the last axis only are run in turn, and in each repetition another of them first, so
    that none always has the quietest moment. A cell that names its engine has that one, every other `engine`.
    """
    found: list[Job] = []
    for repetition in range(1, sweep.repetitions + 1):
        for _, group in groupby(
            sweep.cells,
            lambda cell: {n: v for n, v in cell.axes.items() if n not in sweep.varied[-1:]},
        ):
            alike = list(group)
            turn = (repetition - 1) % len(alike)
            found += [
                Job(sweep.name, cell, repetition, str(cell.axes.get("engine", engine)))
                for cell in (*alike[turn:], *alike[:turn])
            ]
    return found


def finished(planned: Sequence[Job], rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """The rows of these runs with the node as it is now, to be judged by what the file expects now."""
    return {
        job.key: replace(rows[job.key], expect=job.cell.expect)
        for job in planned
        if job.key in rows and rows[job.key].node == job.cell.node
    }


def missing(planned: Sequence[Job], rows: Mapping[Key, Row], *, again: bool) -> list[Job]:
    """The runs without a row; `again`: those that did not end as expected, too."""
    return [
        job for job in planned if job.key not in rows or (again and not rows[job.key].as_expected)
    ]


def seconds_left(todo: Sequence[Job], planned: Sequence[Job], rows: Mapping[Key, Row]) -> float:
    """How long `todo` will take: what lasts for sure, and the overhead that was seen.

    A cell's overhead is that of its own last run, else the mean of all cells with that engine, else a guess.
    """
    own = {
        (job.engine, job.cell.key): max(0.0, rows[job.key].seconds - job.duration_s)
        for job in planned
        if job.key in rows
    }
    by_engine = grouped((engine, seconds) for (engine, _), seconds in own.items())
    usual = _OVERHEAD_S | {engine: fmean(seconds) for engine, seconds in by_engine.items()}
    return sum(
        job.duration_s + own.get((job.engine, job.cell.key), usual[job.engine]) for job in todo
    )
