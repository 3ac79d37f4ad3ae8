"""What a sweep may vary: names of its own for the usual axes, and every other flag of `test`.

A flag that has a name of its own here is not known by its other one: each thing is written in one
way, so that cells of different sweeps can be compared.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bench.flags import flags_by_word, test_flags
from bench.options import TestOptions, from_flags
from runs.faults.names import FAULTS

Value = str | int | float | bool
CellAxes = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Axis:
    """A name in a sweep; `flag` is what it becomes, for the bench or (`of_node`) for the node."""

    name: str
    flag: str
    help: str
    of_node: bool = False


AXES = (
    Axis("strategy", "strategy", "how the node keeps the log", of_node=True),
    Axis("freshness", "freshness", "the node's bound on the age of a view, ms", of_node=True),
    Axis("nodes", "node-count", "how many nodes"),
    Axis("keys", "key-count", "how many keys at a time"),
    Axis(
        "faults",
        "nemesis",
        f"names with commas between them ({', '.join(FAULTS)}), or `none`, or `all` at once;"
        " `each` stands for every single one in turn",
    ),
    Axis("fault-interval", "nemesis-interval", "mean seconds between faults"),
    Axis("fault-targets", "nemesis-targets", "how many nodes a fault hits"),
)
NONE = "none"
OWN_NODE = Path(__file__).parents[2] / "run.sh"
# Names beside the axes and flags.
LABEL, PROGRAM, NODE_ARGUMENTS, EXPECT = "name", "bin", "args", "expect"
EXPECTATIONS = ("valid", "invalid", "any")
MORE = {
    LABEL: "what to call these cells in tables",
    PROGRAM: "the program that runs one node, seen from the sweep's file; the project's own by default",
    NODE_ARGUMENTS: "more arguments for the program, in one string",
    EXPECT: f"the verdict that counts as success: {', '.join(EXPECTATIONS)}; `valid` by default",
}
# Flags that a sweep sets itself, and what to write instead.
_NOT_SWEPT = {
    "store": "the sweep decides where its runs are; give --store to `./maelstrom sweep`",
    "test-count": "write `repetitions` at the top of the file",
    "node": "write `nodes`, a number",
    "nodes-file": "write `nodes`, a number",
    "leave-db-running": "nodes stop with their run",
}
_OWN = {axis.name: axis for axis in AXES}


@click.command()
@test_flags
def _parser(**flags: Any) -> TestOptions:
    return from_flags(flags)


_FLAGS = {
    word.removeprefix("--"): flag
    for word, flag in flags_by_word().items()
    if word.startswith("--") and not flag.hidden
}


def names() -> list[str]:
    """Every name that a table of a sweep may have."""
    taken = {axis.flag for axis in AXES if not axis.of_node} | set(_NOT_SWEPT)
    return sorted(set(_FLAGS) - taken | set(_OWN) | set(MORE))


def complaint(name: str, value: Any) -> str | None:
    """What is wrong with this value of this axis, and what to write; None when nothing is."""
    if name not in names():
        return _unknown(name)
    if not isinstance(value, str | int | float):
        return f"{value!r} is no single value: write a string, a number, true or false"
    if name == EXPECT:
        return None if value in EXPECTATIONS else f"{value!r}: write {', '.join(EXPECTATIONS)}"
    if name == NODE_ARGUMENTS:
        return _bad_words(str(value))
    if name in (LABEL, PROGRAM) or _is_of_node(name):
        return f"{value!r}: write a string or a number" if isinstance(value, bool) else None
    if _FLAGS[_flag(name)].is_flag != isinstance(value, bool):
        wanted = "true or false" if _FLAGS[_flag(name)].is_flag else "its value"
        return f"{value!r}: write {wanted}"
    try:
        options({name: value}, OWN_NODE)  # any program does
    except click.ClickException as error:
        return error.message
    return None


def expand(name: str, value: Value) -> list[Value]:
    """The values that one word in a sweep stands for: `each` and `all` are not kept as such."""
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
        elif name not in (LABEL, PROGRAM):
            (for_node if _is_of_node(name) else for_bench).extend(_words(name, value))
    return for_bench, for_node


def options(axes: CellAxes, program: Path) -> TestOptions:
    """What `test` makes of a cell (`click.ClickException` when it refuses)."""
    for_bench, for_node = arguments(axes)
    line = ["--bin", str(program), *for_bench, "--", *for_node]
    checked: TestOptions = _parser.main(line, "test", standalone_mode=False)
    return checked


def _words(name: str, value: Value) -> Iterator[str]:
    if value is False or (name, value) == ("faults", NONE):
        return
    yield f"--{_flag(name)}"
    if value is not True:
        yield str(value)


def _flag(name: str) -> str:
    return _OWN[name].flag if name in _OWN else name


def _is_of_node(name: str) -> bool:
    return name in _OWN and _OWN[name].of_node


def _bad_words(text: str) -> str | None:
    try:
        shlex.split(text)
    except ValueError as error:
        return f"{text!r}: {error}: write it as for a shell"
    return None


def _unknown(name: str) -> str:
    for axis in AXES:
        if axis.flag == name and not axis.of_node:
            return f"write `{axis.name}`"
    return _NOT_SWEPT.get(name) or f"there is no such name; write one of {', '.join(names())}"
