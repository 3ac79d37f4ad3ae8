"""Imports anyio without OpenSSL, which takes a quarter of a node's start and is never used by one.

A node speaks through two pipes; only one whose log is in a real store (`--store`) needs TLS. `asyncio` goes
without the module `ssl`, as where Python was built without it; anyio only names its classes until a TLS
connection is asked for. So `ssl` is absent while asyncio is imported, and a placeholder while anyio is.
Afterwards an `import ssl` finds the real one.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType


class _Placeholder(ModuleType):
    """Has every name that a class statement or an annotation may need."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


def import_anyio(arguments: Sequence[str] = ()) -> None:
    """For a process that is a node and nothing else, before anything imports anyio; its arguments.

    A process that has imported `ssl` or `asyncio` already is left as it is. A version of anyio that needs
    more of `ssl` gets the real one later, when it is imported again.
    """
    if {"ssl", "asyncio"} & sys.modules.keys() or _names_store(arguments):
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import asyncio  # noqa: F401

        sys.modules["ssl"] = _Placeholder("ssl")
        with suppress(ImportError, LookupError):
            import anyio

            anyio.run(anyio.sleep, 0)  # imports what it needs to run
    finally:
        del sys.modules["ssl"]


def _names_store(arguments: Sequence[str]) -> bool:
    return any(each == "--store" or each.startswith("--store=") for each in arguments)
