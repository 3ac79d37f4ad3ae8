"""TLA+ values as TLC prints them: parsed, compared part by part, and written on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r'<<|>>|\|->|:>|@@|\.\.|[\[\]{}(),]|"(?:[^"\\]|\\.)*"|-?\d+|\w+')


@dataclass(frozen=True)
class Function:
    """A record or function, as (name, value) pairs in TLC's order; names are written text."""

    items: tuple[tuple[str, Value], ...]
    record: bool

    def get(self, name: str) -> Value | None:
        """The value at a name, None when it is not in the domain."""
        return dict(self.items).get(name)


@dataclass(frozen=True)
class Collection:
    """A sequence (`<<` `>>`) or a set (`{` `}`)."""

    opening: str
    items: tuple[Value, ...]


# An atom (number, string, model value) is its own text.
Value: TypeAlias = "Function | Collection | str"
_CLOSING = {"<<": ">>", "{": "}"}


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        if not token or (expected is not None and token != expected):
            raise ValueError(f"TLA+ value: expected {expected or 'a value'}, found {token!r}")
        self._at += 1
        return token

    def value(self) -> Value:
        token = self._take()
        if token in _CLOSING:
            return Collection(token, tuple(self._items(_CLOSING[token])))
        if token == "[":
            return Function(tuple(self._pairs("|->", ",", "]")), record=True)
        if token == "(":
            return Function(tuple(self._pairs(":>", "@@", ")")), record=False)
        if self._peek() == "..":
            return token + self._take("..") + self._take()
        return token

    def _items(self, closing: str) -> Iterator[Value]:
        while self._peek() != closing:
            yield self.value()
            if self._peek() == ",":
                self._take()
        self._take(closing)

    def _pairs(self, arrow: str, separator: str, closing: str) -> Iterator[tuple[str, Value]]:
        while self._peek() != closing:
            name = write(self.value())
            self._take(arrow)
            yield name, self.value()
            if self._peek() == separator:
                self._take()
        self._take(closing)


def parse(text: str) -> Value:
    """Parse one value.

    Raises:
        ValueError: the text is no TLA+ value.
    """
    return _Parser(text).value()


def write(value: Value) -> str:
    """The value on one line; a function is written like a record, to read more easily."""
    if isinstance(value, str):
        return value
    if isinstance(value, Collection):
        inside = ", ".join(write(item) for item in value.items)
        return f"{value.opening}{inside}{_CLOSING[value.opening]}"
    return "[" + ", ".join(f"{name}: {write(item)}" for name, item in value.items) + "]"


def changes(name: str, old: Value, new: Value) -> Iterator[tuple[str, str]]:
    """The parts of a variable that differ, as (path, new value): `view[a].length`, `3`."""
    if old == new:
        return
    if not (isinstance(old, Function) and isinstance(new, Function)):
        yield name, write(new)
        return
    for key, item in new.items:
        before = old.get(key)
        path = f"{name}.{key}" if new.record else f"{name}[{key}]"
        if before is None:
            yield path, write(item)
        else:
            yield from changes(path, before, item)
    for key, _ in old.items:
        if new.get(key) is None:
            yield f"{name}[{key}]", "(gone)"
