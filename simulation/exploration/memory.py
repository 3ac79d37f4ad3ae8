"""A digest of a node's memory: equal digests mean that the node will do the same from now on.

All objects are visited that are reachable from the session, each once, in a fixed order. What goes in:

- numbers, texts, enums and constants by value; classes and functions by name, functions with their closures;
- lists, dictionaries (in their order), sets, and objects with fields, by their parts;
- a generator by its code, the place where it waits, its local variables, and what lies on its stack (such as
  the iterator of a loop), which Python's collector names; an iterator by what is left of it;
- which references lead to the same object: the core asks whether a head *is* the one that it tried;
- an instant by its second, and by its rank among the node's instants of that second: later lines get
  later instants, so only their order can matter.

An object of any other type raises `NotKnown`: what is not known to be visited whole is not taken for visited.
"""

import gc
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from hashlib import blake2b
from itertools import chain, count, islice
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.strategy import Trace
from simulation.exploration.instants import Instant
from simulation.noting import Noting

ATOMS = (int, float, str, bytes, bool, range, type(None))
NONE: dict[str, int] = {}
VIEWS: tuple[type, ...] = (type(NONE.keys()), type(NONE.values()), type(NONE.items()))
ITERATORS: tuple[type, ...] = (
    *(type(iter(each)) for each in (list(NONE), tuple(NONE), set(NONE), range(0), "")),
    *(type(iter(each)) for each in (NONE.keys(), NONE.values(), NONE.items())),
    type(reversed(list(NONE))),
    type(reversed(NONE)),
    type(iter(range(1 << 70))),
    enumerate,
    zip,
    map,
    filter,
    chain,
    count,
    islice,
)
OURS = ("leaderless", "simulation", "tests")  # the rooms in which classes of a node are


class NotKnown(Exception):
    """An object of a type that no rule covers: its digest might leave something out."""


def digest_of(root: object) -> bytes:
    """The digest of an object and of all that can be reached from it. Raises `NotKnown`."""
    return _Visit().digest(root)


class _Visit:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # so that no address is used twice
        self._tokens: list[object] = []
        self._instants: list[tuple[int, Instant]] = []

    def digest(self, root: object) -> bytes:
        self._visit(root)
        by_rank = {
            key: rank for rank, key in enumerate(sorted({each._key for _, each in self._instants}))
        }
        first_of: dict[float, int] = {}
        for (seconds, _), rank in by_rank.items():
            first_of.setdefault(seconds, rank)
        for place, instant in self._instants:
            rank = by_rank[instant._key] - first_of[float(instant)]
            self._tokens[place] = ("at", float(instant), rank)
        return blake2b(repr(self._tokens).encode(), digest_size=16).digest()

    def _visit(self, value: Any) -> None:
        kind = type(value)
        if kind in ATOMS:
            self._tokens.append(value)
        elif kind is Instant:
            self._instants.append((len(self._tokens), value))
            self._tokens.append(None)
        elif known := self._numbers.get(id(value)):
            self._tokens.append(("again", known))
        else:
            self._numbers[id(value)] = len(self._numbers) + 1
            self._kept.append(value)
            self._visit_new(value, kind.__qualname__)

    def _visit_new(self, value: Any, name: str) -> None:
        match value:
            case list() | tuple() | deque():
                self._visit_parts(name, value)
            case defaultdict():
                items = chain.from_iterable(value.items())
                self._visit_parts(name, [*items, value.default_factory])
            case dict():
                self._visit_parts(name, chain.from_iterable(value.items()))
            case set() | frozenset():
                self._visit_parts("set", sorted(value, key=repr))
            case GeneratorType():
                self._visit_generator(value)
            case type() | ModuleType() | BuiltinFunctionType() | CodeType() | Enum():
                self._tokens.append(str(value))
            case Limits() | Pace() | Trace() | Noting():  # the same for all nodes, or only tells
                self._tokens.append(name)
            case _:
                self._visit_object(value, name)

    def _visit_object(self, value: Any, name: str) -> None:
        match value:
            case FunctionType():
                self._visit_parts(value.__qualname__, value.__closure__ or ())
            case MethodType():
                self._visit_parts(value.__func__.__qualname__, [value.__self__])
            case CellType():
                self._visit_parts("cell", gc.get_referents(value))
            case BaseException():
                self._visit_parts(name, value.args)
            case _ if isinstance(value, VIEWS):
                self._visit_parts(name, gc.get_referents(value))
            case _ if isinstance(value, ITERATORS):
                self._visit_parts(name, value.__reduce__()[1:])
            case _ if type(value) is suppress or type(value).__module__.partition(".")[0] in OURS:
                self._visit_parts(name, chain.from_iterable(_fields(value)))
            case _:
                place = type(value).__module__
                raise NotKnown(f"the digest of a {place}.{name} is not known")

    def _visit_parts(self, name: str, parts: Iterable[object]) -> None:
        self._tokens.append(name)
        kept = [*parts]
        self._kept.append(kept)
        self._tokens.append(len(kept))
        for part in kept:
            self._visit(part)

    def _visit_generator(self, generator: Any) -> None:
        frame = generator.gi_frame
        if frame is None:
            self._tokens.append("ended")
            return
        self._tokens.append(frame.f_lasti)
        local = [*chain.from_iterable(frame.f_locals.items())]
        held = [
            each
            for each in gc.get_referents(generator)
            if not isinstance(each, CodeType | FrameType | FunctionType)
        ]
        self._visit_parts(generator.__qualname__, [*local, "stack", *held])


def _fields(value: Any) -> list[tuple[str, object]]:
    """The fields of an object, by name."""
    found: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for each in type(value).__mro__:
        for name in getattr(each, "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return sorted(found.items())
