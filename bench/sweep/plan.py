"""A sweep's TOML file, read and checked, its axes, and the runs that it asks for.

    about = "the question it answers"
    repetitions = 3
    [base]                      # what all cells have
    nodes = 5
    [[matrix]]                  # one cell for each combination of the lists
    faults = ["none", "kill"]
    strategy = ["cas", "leaderless"]

Several matrices stand one after the other. Errors name the file, the table, the key, and what to write instead.

Of the runs it says their order, the ones that are still to be made, and their duration.

Its axes are every flag of `test`, and the node's usual options. A sweep knows a flag by the `axis` of its
declaration, if there is one, and only by that name. So every option is written in one way, and cells of
different sweeps can be compared.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import click

from bench.flags import Flag, did_you_mean
from bench.options import FLAGS, TestOptions, from_flags, test_flags
from runs.facts import EMBEDDED, JEPSEN, OF_OUR_NODE, OWN_NODES, grouped
from runs.faults import FAULTS
from runs.sweeps import Key, Row

Value = str | int | float | bool
CellAxes = Mapping[str, Value]


# The axes, each by its name in a sweep: flags of our node, and of the bench.
_OF_NODE = {name: Flag(words=(f"--{name}",)) for name in OF_OUR_NODE}
_AXES = _OF_NODE | {
    flag.axis or flag.words[-1].removeprefix("--"): flag
    for flag in FLAGS.values()
    if not (flag.hidden or flag.unswept)
}
# A flag's name that a sweep does not know -> what to write instead.
_INSTEAD = {
    flag.words[-1].removeprefix("--"): f"write `{flag.axis}`" if flag.axis else flag.unswept
    for flag in FLAGS.values()
    if flag.axis or flag.unswept
}
NONE = "none"
OWN_NODE = Path(__file__).parents[2] / "run.sh"
OWN_FILES = (*OWN_NODES, "leaderless")  # what the project's own node is made of
_TEXT_BYTES = 2**16  # of a file are searched for names of others
# Names beside the axes.
LABEL, PROGRAM, NODE_ARGUMENTS, EXPECT = "name", "bin", "args", "expect"
EXPECTATIONS = ("valid", "invalid", "any")
MORE = {
    LABEL: "what to call these cells in tables",
    PROGRAM: "the program that runs one node, seen from the sweep's file; the project's own by default",
    NODE_ARGUMENTS: "more arguments for the program, in one string",
    EXPECT: f"the verdict that counts as success: {', '.join(EXPECTATIONS)}; `valid` by default",
}
NAMES = sorted(_AXES.keys() | MORE.keys())  # all that a table of a sweep may have


@click.command()
@test_flags
def _parser(**flags: Any) -> TestOptions:
    return from_flags(flags)


def complaint(name: str, value: Any) -> str | None:
    """What is wrong with a value of an axis, and what to write instead; None for a right value."""
    if name not in NAMES:
        near = did_you_mean(name, NAMES)
        return _INSTEAD.get(name, f"there is no such name; write one of {', '.join(NAMES)}.{near}")
    if not isinstance(value, str | int | float):
        return f"{value!r} is no single value: write a string, a number, true or false"
    if name == EXPECT:
        return None if value in EXPECTATIONS else f"{value!r}: write {', '.join(EXPECTATIONS)}"
    if name != NODE_ARGUMENTS and (name in MORE or name in _OF_NODE):
        return f"{value!r}: write a string or a number" if isinstance(value, bool) else None
    if name in _AXES and _AXES[name].is_switch != isinstance(value, bool):
        wanted = "true or false" if _AXES[name].is_switch else "its value"
        return f"{value!r}: write {wanted}"
    try:
        options({name: value}, OWN_NODE)  # any program does
    except click.ClickException as error:
        return error.message
    except ValueError as error:  # quotes that nothing closes
        return f"{str(value)!r}: {error}: write it as for a shell"
    return None


def expand(name: str, value: Value) -> list[Value]:
    """The values that one word in a sweep stands for: `each` and `all` are replaced."""
    if name != "faults" or not isinstance(value, str):
        return [value]
    if value == "each":
        return list(FAULTS)
    if value == "all":
        return [",".join(FAULTS)]
    asked = {word.strip() for word in value.split(",")}
    if asked <= set(FAULTS):
        return [",".join(fault for fault in FAULTS if fault in asked)]  # each once, in one order
    return [value]


def shown(name: str, value: Value) -> str:
    """A value for people."""
    return "all" if (name, value) == ("faults", ",".join(FAULTS)) else str(value)


def arguments(axes: CellAxes) -> tuple[list[str], list[str]]:
    """The arguments of a cell for `./maelstrom test`, without its --bin, and for the node."""
    for_bench: list[str] = []
    for_node: list[str] = []
    for name, value in axes.items():
        if name == NODE_ARGUMENTS:
            for_node += shlex.split(str(value))
        elif name not in MORE:
            (for_node if name in _OF_NODE else for_bench).extend(_words(name, value))
    return for_bench, for_node


def options(axes: CellAxes, program: Path) -> TestOptions:
    """What `test` makes of a cell (`click.ClickException` when it refuses)."""
    for_bench, for_node = arguments(axes)
    line = ["--bin", str(program), *for_bench, "--", *for_node]
    return cast(TestOptions, _parser.main(line, "test", standalone_mode=False))


def _words(name: str, value: Value) -> Iterator[str]:
    if value is False or (name, value) == ("faults", NONE):
        return
    yield _AXES[name].words[-1]
    if value is not True:
        yield str(value)


# ---------------------------------------------------------------- the file


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

    `title` is different for each cell of a sweep, `node` is another when the node has changed (`node_digest`).
    """

    axes: CellAxes
    options: TestOptions
    expect: str = "valid"
    title: str = ""
    node: str = ""

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

    wanted = {name: _values(name, list(values)) for name, values in only.items()}
    cells = [
        cell
        for cell in sweep.cells
        if all(cell.axes.get(name) in values for name, values in wanted.items())
    ]
    if not cells:
        titles = "\n  ".join(cell.title for cell in sweep.cells)
        raise click.UsageError(f"--only leaves no cell. These there are:\n  {titles}")
    return replace(sweep, cells=cells, varied=_varied(cells) or sweep.varied)


def parse(content: Table, file: Path, changes: CellAxes) -> Sweep:
    """The sweep that a TOML document says."""
    if unknown := sorted(set(content) - set(KEYS)):
        hint = " It belongs into [base] or a [[matrix]]." * (unknown[0] in NAMES)
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
    programs = {cell.options.bin for cell in cells}
    digests = {each: node_digest(Path(each), file.absolute()) for each in programs}
    cells = [replace(cell, node=digests[cell.options.bin]) for cell in cells]
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
    expect = axes.pop(EXPECT, "valid")
    lists = [_values(name, value) for name, value in axes.items()]
    for combination in product(*lists):
        cell = dict(zip(axes, combination, strict=True))
        try:
            made = options(cell, (file.parent / str(cell.get(PROGRAM, OWN_NODE))).absolute())
        except click.ClickException as error:
            raise click.UsageError(f"{where}: {error.message}") from None
        yield Cell(cell, made, expect)


def node_digest(program: Path, sweep: Path) -> str:
    """Another when a file of the node changes: the program, those that git tracks in its folder or below, and
    those that its text names, as a start script does. The sweep's own file does not count.
    """
    folder, known = (program := program.resolve()).parent, b""
    names = OWN_FILES if folder == OWN_NODE.parent else (".",)
    with suppress(OSError):  # no git
        line = ["git", "-C", str(folder), "ls-files", "-z", "--", *names]
        known = subprocess.run(line, capture_output=True, check=False).stdout
    with program.open("rb") as file:
        text = file.read(_TEXT_BYTES).decode(errors="replace")
    words = {each.strip("/") for each in re.findall(r"[\w./-]+", text)}  # `$here/node.py` is two
    named = {each for word in words for each in (word, word.partition("/")[2])}
    files = {program, *(folder / each for each in (*named, *os.fsdecode(known).split("\0")))}
    digests = [
        f"{os.path.relpath(file, folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in files - {sweep}
        if file.is_file() and os.access(file, os.R_OK)
    ]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


def _check(table: Table, where: str) -> None:
    for name, value in table.items():
        if isinstance(value, list) and (not value or name in (EXPECT, LABEL)):
            raise click.UsageError(f"{where}: {name}: {value!r}: write a single value.")
        for wrong in filter(None, (complaint(name, single) for single in _values(name, value))):
            raise click.UsageError(
                f"{where}: {name}: {wrong.rstrip('.')}{'.' * (wrong[-1] != '?')}"
            )


def _values(name: str, value: Any) -> list[Value]:
    listed = value if isinstance(value, list) else [value]
    return [single for each in listed for single in expand(name, each)]


def _titled(sweep: Sweep) -> Sweep:
    """With the axes that differ, and a title for each cell; a cell that comes twice stays once."""
    cells = list({cell.key: cell for cell in sweep.cells}.values())
    varied = _varied(cells)
    titled = [replace(cell, title=_title(cell.axes, varied)) for cell in cells]
    return replace(sweep, cells=titled, varied=varied)


def _varied(cells: Sequence[Cell]) -> list[str]:
    """The axes that differ: among all cells or, where cells have names, among those of one name."""
    by_name = grouped((str(cell.axes.get(LABEL, "")), cell) for cell in cells)
    axes = dict.fromkeys(name for cell in cells for name in cell.axes)
    named = [LABEL] if len(by_name) > 1 else []
    return named + [
        axis
        for axis in axes
        if any(len({repr(cell.axes.get(axis)) for cell in alike}) > 1 for alike in by_name.values())
    ]


def _title(axes: CellAxes, varied: Sequence[str]) -> str:
    parts = [
        shown(name, axes[name]) if name == LABEL else f"{name}={shown(name, axes[name])}"
        for name in varied
        if name in axes
    ]
    return " ".join(parts) or str(axes.get(LABEL, "the only cell"))


# ---------------------------------------------------------------- jobs


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


def missing(
    planned: Sequence[Job], rows: Mapping[Key, Row], again: Callable[[Row], bool]
) -> list[Job]:
    """The runs without a row, and those whose row is to be made `again`."""
    return [job for job in planned if job.key not in rows or again(rows[job.key])]


def seconds_left(todo: Sequence[Job], planned: Sequence[Job], rows: Mapping[Key, Row]) -> float:
    """How long `todo` will take: what lasts for sure, and the overhead that was seen.

    A cell's overhead is that of its own last run, else the mean of all cells with that engine, else a guess.
    """
    own: dict[tuple[str, str], float] = {}
    for job in planned:
        if job.key in rows:
            overhead = max(0.0, rows[job.key].seconds - job.duration_s)
            own[job.engine, job.cell.key] = overhead
    usual = dict(_OVERHEAD_S)
    for engine in {engine for engine, _ in own}:
        usual[engine] = fmean(seconds for (its, _), seconds in own.items() if its == engine)
    return sum(
        job.duration_s + own.get((job.engine, job.cell.key), usual[job.engine]) for job in todo
    )
