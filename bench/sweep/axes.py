"""What a sweep may vary: every flag of `test`, and the node's usual options.

A sweep knows a flag by the `axis` of its declaration, if there is one, and only by that name. So every option
is written in one way, and cells of different sweeps can be compared.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import click

from bench.flags import Flag, did_you_mean
from bench.options import FLAGS, TestOptions, from_flags, test_flags
from runs.facts import OF_OUR_NODE
from runs.faults import FAULTS
from runs.house import HOUSE

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
OWN_NODE = HOUSE / "run.sh"
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
        return f"{value!r}: write {'true or false' if _AXES[name].is_switch else 'its value'}"
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
