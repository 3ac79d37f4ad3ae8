"""A sweep's TOML file, read and checked, and the runs that it asks for.

    about = "the question it answers"
    repetitions = 3
    [base]                      # what all cells have
    nodes = 5
    [[matrix]]                  # one cell for each combination of the lists
    faults = ["none", "kill"]
    strategy = ["cas", "leaderless"]

Several matrices stand one after the other. Errors name the file, the table, the key, and what to write instead.

Of the runs it says their order, the ones that are still to be made, and their duration.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.options import TestOptions
from bench.sweep import axes as known
from bench.sweep.axes import CellAxes, Value
from runs.facts import EMBEDDED, JEPSEN
from runs.sweeps import Key, Row

KEYS = {
    "about": "what the sweep asks, in a sentence or a few",
    "repetitions": "how many runs of each cell; 1 by default",
    "base": "a table: what all cells have in common; a matrix overrides it",
    "matrix": "one or more tables `[[matrix]]`: a cell for each combination of their lists",
}
Table = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One point of a matrix: what the file says, and the `options` that `test` makes of it.

    `title` is different for each cell of a sweep.
    """

    axes: CellAxes
    options: TestOptions
    expect: str = "valid"
    title: str = ""

    @property
    def key(self) -> str:
        """The same for the same axes, whatever their order."""
        return json.dumps(self.axes, sort_keys=True)


@dataclass(frozen=True)
class Sweep:
    """`varied` are the axes that differ between cells, in the order of the file."""

    name: str
    about: str
    repetitions: int
    cells: Sequence[Cell]
    varied: Sequence[str] = ()


def read(file: Path, changes: CellAxes | None = None) -> Sweep:
    """The sweep in a file; `changes` replace what it says, in every cell.

    Raises `click.UsageError` when something in the file cannot be meant.
    """
    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise click.UsageError(f"{file} is no TOML: {error}.") from None
    return parse(content, file, changes or {})


def restrict(sweep: Sweep, only: Mapping[str, Sequence[Value]]) -> Sweep:
    """The sweep with those cells that have one of the values of every axis in `only`."""

    def fits(cell: Cell) -> bool:
        return all(
            cell.axes.get(name)
            in [single for value in values for single in known.expand(name, value)]
            for name, values in only.items()
        )

    cells = [cell for cell in sweep.cells if fits(cell)]
    if not cells:
        titles = "\n  ".join(cell.title for cell in sweep.cells)
        raise click.UsageError(f"--only leaves no cell. These there are:\n  {titles}")
    return replace(sweep, cells=cells, varied=_varied(cells) or sweep.varied)


def parse(content: Table, file: Path, changes: CellAxes) -> Sweep:
    """The sweep that a TOML document says."""
    if unknown := sorted(set(content) - set(KEYS)):
        hint = ""
        if unknown[0] in known.names():
            hint = " It belongs into [base] or a [[matrix]]."
        raise click.UsageError(
            f"{file}: {unknown[0]}: there is no such key; write one of {', '.join(KEYS)}.{hint}"
        )
    repetitions = content.get("repetitions", 1)
    if type(repetitions) is not int or repetitions < 1:
        raise click.UsageError(
            f"{file}: repetitions: {repetitions!r}: write a whole number from 1 on."
        )
    base, matrices = content.get("base", {}), content.get("matrix", [{}])
    if not isinstance(base, dict):
        raise click.UsageError(f"{file}: base: write a table, [base].")
    if not isinstance(matrices, list) or not all(isinstance(each, dict) for each in matrices):
        raise click.UsageError(f"{file}: matrix: write one or more tables, [[matrix]].")
    _check(base, f"{file}: [base]")
    _check(changes, "--set")
    cells = [
        cell
        for number, matrix in enumerate(matrices, start=1)
        for cell in _cells(base, matrix, changes, f"{file}: [[matrix]] {number}", file)
    ]
    about = " ".join(str(content.get("about", "")).split())
    return _titled(Sweep(file.stem, about, repetitions, cells))


def value_of(text: str) -> Value:
    """A value on a command line, read as TOML; as a string, when TOML cannot read it."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, str | int | float) else text


def _cells(base: Table, matrix: Table, changes: CellAxes, where: str, file: Path) -> Iterator[Cell]:
    _check(matrix, where)
    # The order of the matrix's own axes is that of its loops; what [base] adds stands before them.
    axes = {name: value for name, value in base.items() if name not in matrix} | dict(matrix)
    axes |= changes
    expect = axes.pop(known.EXPECT, "valid")
    lists = [_values(name, value) for name, value in axes.items()]
    for combination in product(*lists):
        cell = dict(zip(axes, combination, strict=True))
        try:
            options = known.options(cell, _program(cell, file))
        except click.ClickException as error:
            raise click.UsageError(f"{where}: {error.message}") from None
        yield Cell(cell, options, expect)


def _check(table: Table, where: str) -> None:
    for name, value in table.items():
        if isinstance(value, list) and (not value or name in (known.EXPECT, known.LABEL)):
            raise click.UsageError(f"{where}: {name}: {value!r}: write a single value.")
        for each in value if isinstance(value, list) else [value]:
            for single in known.expand(name, each):
                if wrong := known.complaint(name, single):
                    raise click.UsageError(f"{where}: {name}: {wrong.rstrip('.')}.")


def _values(name: str, value: Any) -> list[Value]:
    listed = value if isinstance(value, list) else [value]
    return [single for each in listed for single in known.expand(name, each)]


def _program(axes: CellAxes, file: Path) -> Path:
    if known.PROGRAM not in axes:
        return known.OWN_NODE
    return (file.parent / str(axes[known.PROGRAM])).absolute()


def _titled(sweep: Sweep) -> Sweep:
    """With the axes that differ, and a title for each cell; a cell that comes twice stays once."""
    cells = list({cell.key: cell for cell in sweep.cells}.values())
    varied = _varied(cells)
    titled = [replace(cell, title=_title(cell.axes, varied)) for cell in cells]
    return replace(sweep, cells=titled, varied=varied)


def _varied(cells: Sequence[Cell]) -> list[str]:
    """The axes that differ: among all cells or, where cells have names, among those of one name."""
    by_name: dict[str, list[Cell]] = {}
    for cell in cells:
        by_name.setdefault(str(cell.axes.get(known.LABEL, "")), []).append(cell)
    axes = dict.fromkeys(name for cell in cells for name in cell.axes)
    named = [known.LABEL] if len(by_name) > 1 else []
    return named + [
        axis
        for axis in axes
        if any(len({repr(cell.axes.get(axis)) for cell in alike}) > 1 for alike in by_name.values())
    ]


def _title(axes: CellAxes, varied: Sequence[str]) -> str:
    parts = [
        known.shown(name, axes[name])
        if name == known.LABEL
        else f"{name}={known.shown(name, axes[name])}"
        for name in varied
        if name in axes
    ]
    return " ".join(parts) or str(axes.get(known.LABEL, "the only cell"))


# ----------------------------------------------------------------


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
        """As `Row.key`."""
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
            digest = hashlib.sha256(self.cell.key.encode()).hexdigest()[:8]
            name = f"{name[:_NAME_LIMIT]}-{digest}"
        return parent / f"{name}.{self.repetition}"


def jobs(sweep: Sweep, engine: str) -> list[Job]:
    """Every run of a sweep in its order: all cells once, then the next repetition.

    Cells that differ in the last axis only are run in turn, and in each repetition another of them first, so
    that none always has the quietest moment. A cell that names its engine has that one, every other `engine`.
    """
    return [
        Job(sweep.name, cell, repetition, str(cell.axes.get("engine", engine)))
        for repetition in range(1, sweep.repetitions + 1)
        for _, alike in groupby(sweep.cells, lambda cell: _but_last(sweep, cell))
        for cell in _turned(list(alike), repetition - 1)
    ]


def finished(planned: Sequence[Job], rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """The rows of these runs, to be judged by what the file expects now."""
    return {
        job.key: replace(rows[job.key], expect=job.cell.expect)
        for job in planned
        if job.key in rows
    }


def missing(planned: Sequence[Job], rows: Mapping[Key, Row], *, again: bool) -> list[Job]:
    """The runs without a row, and with `again` also those that did not end as expected."""
    return [
        job for job in planned if job.key not in rows or (again and not rows[job.key].as_expected)
    ]


def seconds_left(todo: Sequence[Job], planned: Sequence[Job], rows: Mapping[Key, Row]) -> float:
    """How long `todo` will take: what lasts for sure, and the overhead that was seen.

    A cell's overhead is that of its own last run, else the mean of all cells with that engine, else a guess.
    """
    own: dict[tuple[str, str], float] = {}
    for job in planned:
        if job.key in rows:
            overhead = max(0.0, rows[job.key].seconds - job.duration_s)
            own[job.engine, job.cell.key] = overhead
    return sum(job.duration_s + _overhead(job, own) for job in todo)


def _overhead(job: Job, own: Mapping[tuple[str, str], float]) -> float:
    alike = [seconds for (engine, _), seconds in own.items() if engine == job.engine]
    expected = fmean(alike) if alike else _OVERHEAD_S[job.engine]
    return own.get((job.engine, job.cell.key), expected)


def _but_last(sweep: Sweep, cell: Cell) -> CellAxes:
    return {name: value for name, value in cell.axes.items() if name not in sweep.varied[-1:]}


def _turned(cells: Sequence[Cell], by: int) -> list[Cell]:
    by %= len(cells)
    return [*cells[by:], *cells[:by]]
