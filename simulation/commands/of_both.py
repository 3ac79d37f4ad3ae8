"""The options of a command that takes nodes or, with `--programs`, programs on a bucket."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from bench.flags import Command, Flag, flags_of, optional_click_options

Flags = Mapping[str, Flag]
PROGRAMS = click.option(
    "--programs", is_flag=True, help="Run programs on an object store in place of nodes."
)


def options_of_both(nodes: type, programs: type, *, drawn: bool) -> Callable[[Command], Command]:
    """Decorate a command with `--programs` and the options of both records; one that is not given is None.

    `drawn`: whether what is not given is drawn; otherwise the help shows its default.
    """
    mine, its = (_told(record, drawn=drawn) for record in (nodes, programs))
    both = {name: _of_both(mine[name], its[name]) for name in mine if name in its}
    of_programs = {
        name: replace(flag, help=f"{flag.help} (programs)") for name, flag in its.items()
    }
    flags = mine | of_programs | both

    def decorate(command: Command) -> Command:
        decorated: Command = PROGRAMS(optional_click_options(flags)(command))
        return decorated

    return decorate


def _told(record: type, *, drawn: bool) -> dict[str, Flag]:
    if drawn:
        return flags_of(record)
    return {
        name: replace(flag, help=f"{flag.help} [default: {default}]")
        for name, flag in flags_of(record).items()
        if (default := getattr(record(), name)) is not None
    }


def given(options: Mapping[str, Any], mine: Flags, *, programs: bool) -> dict[str, Any]:
    """The options that were given, as `mine` reads them. Raises `click.UsageError` for one of the others."""
    found = {name: value for name, value in options.items() if value is not None}
    for name in found.keys() - mine.keys():
        word = next(
            each for each in click.get_current_context().command.params if each.name == name
        )
        where = "nodes: leave --programs out" if programs else "programs: give --programs, too"
        raise click.UsageError(f"{word.opts[-1]} is an option of {where}.")
    return {name: _read(mine[name], value) for name, value in found.items()}


def _of_both(nodes: Flag, programs: Flag) -> Flag:
    """Where the two allow other values, one is checked when it is known which of them is meant."""
    text, kind = nodes.help, nodes.kind
    if programs.help != text:
        text += f" With --programs: {programs.help}"
    if isinstance(kind, click.Choice) and isinstance(programs.kind, click.Choice):
        kind = click.Choice([*dict.fromkeys((*kind.choices, *programs.kind.choices))])
    elif kind is not programs.kind:
        kind = click.STRING
    return replace(nodes, help=text, kind=kind)


def _read(flag: Flag, value: Any) -> Any:
    assert flag.kind
    try:
        return flag.kind.convert(value, None, None) if isinstance(value, str) else value
    except click.BadParameter as error:
        raise click.UsageError(f"{flag.words[-1]}: {error.message}") from None
