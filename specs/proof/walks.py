"""States and steps of a small configuration, as TLC finds them."""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from runs.facts import grouped
from specs import tlc
from specs.head_log.views import Map
from specs.manifest import PASS, Configuration

Value = Any  # a number, a text, a tuple, a frozenset, or a Map for a record or a function
Variables = Map[str, Value]
Found = Iterator[tuple[Variables, list[tuple[str, Variables]]]]  # each state with its steps
_NODE = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"', re.MULTILINE)
_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', re.MULTILINE)
_VARIABLE = re.compile(r"^/\\ (\w+) = ", re.MULTILINE)
_AS_PYTHON = {
    **{"<<": "tuple([", ">>": "])", "{": "frozenset([", "}": "])", ",": ",", "@@": ","},
    **{"[": "Map({", "]": "})", "(": "Map({", ")": "})", "|->": ":", ":>": ":"},
}
TIMEOUT_S = 600
CACHED = 4096
DEEPEST = 40  # a wrong model may have no end


def spread(
    start: Iterable[Any],
    steps_from: Callable[[Any], Iterable[tuple[str, Any]]],
    most: int,
) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
    """States breadth first, with their steps: of each depth `most`, from everywhere, down to `DEEPEST`."""
    level = list(start)
    seen = {*level}
    for _ in range(DEEPEST):
        found = {state: list(steps_from(state)) for state in level[:: -(-len(level) // most) or 1]}
        yield from found.items()
        new = (after for steps in found.values() for _, after in steps)
        level = [state for state in dict.fromkeys(new) if state not in seen]
        seen.update(level)


def found_by_tlc(configuration: Configuration, most: int) -> Found:
    """What TLC finds, without a look at the laws. Nodes are not taken as equal: a step leads to just its state.

    Raises:
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
        RuntimeError: TLC does not say that the configuration passes.
    """
    with tempfile.TemporaryDirectory(prefix="tlc-") as folder:
        dump = Path(folder) / "graph.dot"
        plain = replace(configuration, symmetry=None, invariants=(), properties=())
        said, _ = tlc.run(
            plain.module, plain.config_text(), heap_mb=1024, dump=dump, timeout_s=TIMEOUT_S
        )
        if (verdict := tlc.parse(said).verdict) != PASS:
            raise RuntimeError(f"{configuration.title}: TLC says {verdict}")
        dot = dump.read_text()
    labels = dict(_NODE.findall(dot))
    steps = grouped((old, (action, new)) for old, new, action in _EDGE.findall(dot))
    state = lru_cache(CACHED)(lambda name: variables(labels[name]))
    for name, found in spread([next(iter(labels))], lambda name: steps.get(name, ()), most):
        yield state(name), [(action, state(new)) for action, new in found]


def variables(label: str) -> Variables:
    """The variables of a state."""
    text = label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    names, values = _VARIABLE.findall(text), map(value, _VARIABLE.split(text)[2::2])
    return Map(zip(names, values, strict=True))


@lru_cache(2 * CACHED)
def value(text: str) -> Value:
    """A value as TLC writes it. Raises ValueError for what it would not write."""
    as_python = lambda token: token if token.lstrip("-").isdigit() else repr(token.strip('"'))
    return tlc.evaluated(text, _AS_PYTHON, as_python, {"Map": Map})
