#!/usr/bin/env python3
"""Nodes with other numbers than the defaults. As a program, such a node: `varied.py CHANGES [OPTION...]`.

CHANGES is a JSON object, a number's name -> its value. A number has the name of its field in `Pace`; one of
`Limits` or `Options` stands behind `limits.` or `options.`. A constant of the core has its own name, in
capitals.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from leaderless.runtime.lean import import_anyio

    import_anyio(sys.argv[2:])

from leaderless.core.strategy import Options

Changes = Mapping[str, float]  # name of a number -> its value


def varied(options: Options, changes: Changes) -> Options:
    """These options with the numbers that `changes` has. Raises `ValueError` for a bad relation."""
    of: dict[str, dict[str, Any]] = {"pace": {}, "limits": {}, "options": {}}
    for name, value in changes.items():
        section, _, own = name.rpartition(".")
        if not name.isupper():
            of[section or "pace"][own] = value
    pace, limits = replace(options.pace, **of["pace"]), replace(options.limits, **of["limits"])
    return options._replace(pace=pace, limits=limits, **of["options"])


@contextmanager
def constants(changes: Changes) -> Iterator[None]:
    """Within it, constants of the core have the values that `changes` has."""
    had = {name: default_of(name) for name in changes if name.isupper()}
    try:
        _set({name: changes[name] for name in had})
        yield
    finally:
        _set(had)


def _set(values: Changes) -> None:
    for name, value in values.items():
        for module in _with_constant(name):
            setattr(module, name, value)


def _with_constant(name: str) -> list[Any]:
    """All modules of the core that have it, or import it."""
    for module in ("machine", "strategies.leaderless", "strategies.leader"):  # and what they import
        import_module(f"leaderless.core.{module}")
    core = [sys.modules[each] for each in [*sys.modules] if each.startswith("leaderless.core")]
    return [module for module in core if name in vars(module)]


def default_of(name: str) -> float:
    """The default of a number. Raises `IndexError` for a constant that the core does not have."""
    if name.isupper():
        constant: float = vars(_with_constant(name)[0])[name]
        return constant
    value: float = getattr(section_of(Options(), name), name.rpartition(".")[2])
    return value


def section_of(options: Options, name: str) -> Any:
    """The part of the options that has this number."""
    return {"options": options, "limits": options.limits}.get(name.rpartition(".")[0], options.pace)


def main() -> int:
    """Run a node; returns the exit status."""
    import orjson

    from leaderless.runtime.command_line import parse_options
    from leaderless.runtime.main import run

    changes, *options = sys.argv[1:]
    settings, given = parse_options(options), orjson.loads(changes)
    with constants(given):
        return run(settings._replace(options=varied(settings.options, given)))


if __name__ == "__main__":
    sys.exit(main())
