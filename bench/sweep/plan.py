"""A sweep's TOML file, read and checked.

    about = "the question it answers"
    repetitions = 3
    [base]                      # what all cells have
    nodes = 5
    [[matrix]]                  # one cell for each combination of the lists
    faults = ["none", "kill"]
    strategy = ["cas", "leaderless"]

Several matrices stand one after the other. Errors name the file, the table, the key, and what to write instead.
"""

import hashlib
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import click

from bench.options import TestOptions
from bench.sweep.axes import (
    EXPECT,
    LABEL,
    NAMES,
    OWN_NODE,
    PROGRAM,
    CellAxes,
    Value,
    complaint,
    expand,
    options,
    shown,
)
from runs.facts import OWN_NODES, grouped
from runs.house import HOUSE, NODE_PACKAGE

_TEXT_BYTES = 2**16  # of a file are searched for names of others
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
    others = {name: value for name, value in base.items() if name not in matrix}
    axes = {**others, **matrix, **changes}
    expect = axes.pop(EXPECT, "valid")
    for combination in product(*[_values(name, value) for name, value in axes.items()]):
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
    own = [*NODE_PACKAGE.rglob("*.py")] if folder == HOUSE else []
    names = OWN_NODES if own else (".",)
    with suppress(OSError):  # no git
        line = ["git", "-C", str(folder), "ls-files", "-z", "--", *names]
        known = subprocess.run(line, capture_output=True, check=False).stdout
    with program.open("rb") as file:
        text = file.read(_TEXT_BYTES).decode(errors="replace")
    words = {each.strip("/") for each in re.findall(r"[\w./-]+", text)}  # `$here/node.py` is two
    named = {each for word in words for each in (word, word.partition("/")[2])}
    files = {program, *own, *(folder / each for each in (*named, *os.fsdecode(known).split("\0")))}
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
