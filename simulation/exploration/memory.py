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
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from functools import cache
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

ATOMS = {int, float, str, bytes, bool, range, type(None)}
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
        self._kept: list[object] = []  # all that was visited: so no address is used twice
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
        kind: Any = type(value)
        if kind in ATOMS:
            self._tokens.append(value)
        elif kind is Instant:
            self._instants.append((len(self._tokens), value))
            self._tokens.append(None)
        elif known := self._numbers.get(id(value)):
            self._tokens.append(("again", known))
        else:
            self._numbers[id(value)] = len(self._numbers) + 1
            _rule_of(kind)(self, value, kind.__qualname__)

    def _visit_parts(self, name: str, parts: Iterable[object]) -> None:
        kept = [*parts]
        self._kept.append(kept)
        self._tokens += (name, len(kept))
        for part in kept:
            if type(part) in ATOMS:  # as `_visit` would: most parts are such
                self._tokens.append(part)
            else:
                self._visit(part)

    def _visit_default(self, value: Any, name: str) -> None:
        self._visit_parts(name, [*chain.from_iterable(value.items()), value.default_factory])

    def _visit_fields(self, value: Any, name: str) -> None:
        place = type(value).__module__
        if type(value) is not suppress and place.partition(".")[0] not in OURS:
            raise NotKnown(f"the digest of a {place}.{name} is not known")
        self._visit_parts(name, chain.from_iterable(_fields(value)))

    def _visit_generator(self, generator: Any, _: str) -> None:
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


Rule = Callable[[_Visit, Any, str], None]
PARTS = _Visit._visit_parts
RULES: tuple[tuple[type | tuple[type, ...], Rule], ...] = (  # the first that fits
    ((list, tuple, deque), lambda visit, value, name: PARTS(visit, name, value)),
    (defaultdict, _Visit._visit_default),
    (dict, lambda visit, value, name: PARTS(visit, name, chain.from_iterable(value.items()))),
    ((set, frozenset), lambda visit, value, _: PARTS(visit, "set", sorted(value, key=repr))),
    (GeneratorType, _Visit._visit_generator),
    (
        (type, ModuleType, BuiltinFunctionType, CodeType, Enum),
        lambda visit, value, _: visit._tokens.append(str(value)),
    ),
    # The same for all nodes, or only tells.
    ((Limits, Pace, Trace, Noting), lambda visit, _, name: visit._tokens.append(name)),
    (FunctionType, lambda visit, f, _: PARTS(visit, f.__qualname__, f.__closure__ or ())),
    (MethodType, lambda visit, m, _: PARTS(visit, m.__func__.__qualname__, [m.__self__])),
    (CellType, lambda visit, cell, _: PARTS(visit, "cell", gc.get_referents(cell))),
    (BaseException, lambda visit, error, name: PARTS(visit, name, error.args)),
    (VIEWS, lambda visit, view, name: PARTS(visit, name, gc.get_referents(view))),
    (ITERATORS, lambda visit, value, name: PARTS(visit, name, value.__reduce__()[1:])),
    (object, _Visit._visit_fields),
)


@cache
def _rule_of(kind: type) -> Rule:
    """How the objects of a type are visited."""
    return next(rule for kinds, rule in RULES if issubclass(kind, kinds))


def _fields(value: Any) -> list[tuple[str, object]]:
    """The fields of an object, by name."""
    kind: Any = type(value)
    found: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for name in _slots(kind):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return sorted(found.items())


@cache
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
