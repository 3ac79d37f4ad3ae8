"""Imports anyio and orjson without what a node never uses, such as OpenSSL, sockets and a second `typing`.

A node speaks through two pipes; only one whose log is in a real store (`--store`) needs sockets and TLS.
`asyncio` goes without the module `ssl`, as where Python was built without it. anyio only names the classes of
`ssl` and `ipaddress`, some of its own sockets and streams, and a `TypeVar` with a default. So `ssl` is absent
while asyncio is imported, and all of them are placeholders while anyio is. So is `uuid` while orjson is, which
only asks whether a value is a `UUID`. Afterwards an import finds the real ones.
"""

import gc
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any


class _Placeholder(ModuleType):
    """Has every name that a class statement or an annotation may need."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})

    @staticmethod
    def TypeVar(name: str, *bounds: type, **others: Any) -> object:  # noqa: N802 - its name
        """Of `typing_extensions`: in no annotation of a running node the default matters."""
        others.pop("default", None)
        return typing.TypeVar(name, *bounds, **others)


UNUSED = (
    "ssl",
    "ipaddress",
    "typing_extensions",
    "anyio._core._sockets",
    "anyio._core._streams",
    "anyio.streams.memory",
)


def import_anyio(arguments: Sequence[str] = ()) -> None:
    """For a process that is a node and nothing else, before anything imports anyio; its arguments.

    Garbage is collected again when `runtime.main` has imported the rest: nothing of it is garbage. A process
    that has imported one of the modules already, or `asyncio`, gets all of them. A version of anyio that needs
    more of them gets the real ones later, when it is imported again.
    """
    gc.disable()
    names_store = any(each == "--store" or each.startswith("--store=") for each in arguments)
    if names_store or {"asyncio", *UNUSED} & sys.modules.keys():
        return
    with _in_their_place(dict.fromkeys(["ssl"])):
        import asyncio  # noqa: F401
    with _in_their_place({"uuid": _Placeholder("uuid")}):
        import orjson  # noqa: F401
    with (
        _in_their_place({name: _Placeholder(name) for name in UNUSED}),
        suppress(ImportError, LookupError, TypeError),
    ):
        import anyio

        anyio.run(anyio.sleep, 0)  # imports what it needs to run


@contextmanager
def _in_their_place(modules: Mapping[str, typing.Any]) -> Iterator[None]:
    """Inside the block an import of these names finds these modules, or, for None, nothing."""
    sys.modules.update(modules)  # which may hold None, although its type does not say so
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
