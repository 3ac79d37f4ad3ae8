"""Every state and step of a small configuration, as TLC writes them: for models that have no second one."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from specs import tlc
from specs.manifest import PASS, Configuration
from specs.second.head_log_views import Map

Value = Any  # a number, a text, a tuple, a frozenset, or a Map for a record or a function
_TOKEN = re.compile(r'\s*(<<|>>|:>|@@|\|->|"[^"]*"|-?\w+|[][{}(),=])')
_NODE = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"', re.MULTILINE)
_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', re.MULTILINE)
_VARIABLE = re.compile(r"^/\\ (\w+) = ", re.MULTILINE)
TIMEOUT_S = 600


def graph(configuration: Configuration) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """The states as texts, by TLC's names for them, and the steps: action, and the states before and after.

    Nodes are not taken as equal here: a step leads to just the state that the action makes.

    Raises:
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
        RuntimeError: TLC does not say that the configuration passes.
    """
    with tempfile.TemporaryDirectory(prefix="tlc-") as folder:
        dump = Path(folder) / "graph.dot"
        text, _ = tlc.run(
            configuration.module,
            replace(configuration, symmetry=None).config_text(),
            heap_mb=1024,
            dump=dump,
            timeout_s=TIMEOUT_S,
        )
        if (verdict := tlc.parse(text).verdict) != PASS:
            raise RuntimeError(f"{configuration.title}: TLC says {verdict}")
        dot = dump.read_text()
    return dict(_NODE.findall(dot)), [(action, old, new) for old, new, action in _EDGE.findall(dot)]


def state(label: str) -> Map[str, Value]:
    """The variables of a state."""
    text = label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    names = _VARIABLE.findall(text)
    return Map(zip(names, map(value, _VARIABLE.split(text)[2::2]), strict=True))


def value(text: str) -> Value:
    """A value as TLC writes it. Raises ValueError for what it would not write."""
    tokens = _TOKEN.findall(text)
    found = _value(iter(tokens))
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"not a value as TLC writes it: {text[:80]!r}")
    return found


def _value(tokens: Iterator[str]) -> Value:
    token = next(tokens)
    match token:
        case "<<":
            return tuple(each for _, each in _items(tokens, ">>"))
        case "{":
            return frozenset(each for _, each in _items(tokens, "}"))
        case "[":
            return Map(_items(tokens, "]"))
        case "(":
            return Map(_items(tokens, ")"))
    if token[0] == '"':
        return token[1:-1]
    return int(token) if token.lstrip("-").isdigit() else token


def _items(tokens: Iterator[str], end: str) -> Iterator[tuple[Value, Value]]:
    """What stands before `end`: values, or those of names or of points of a function."""
    key: Value = None
    found: list[Value] = []
    for token in tokens:
        if token in (",", "@@", end):
            if found:
                yield key, found.pop()
            if token == end:
                return
        elif token in ("|->", ":>"):
            key = found.pop()
        else:
            found.append(_value(chain((token,), tokens)))
