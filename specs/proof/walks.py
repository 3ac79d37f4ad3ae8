"""States and steps of a small configuration, as the second checker finds them, or TLC."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from specs import tlc
from specs.manifest import PASS, Configuration
from specs.proof.evaluation import Structure
from specs.second.configurations import second_model
from specs.second.head_log_views import Map

Value = Any  # a number, a text, a tuple, a frozenset, or a Map for a record or a function
Found = Iterator[tuple[Structure, list[tuple[str, Structure]]]]  # each state with its steps
_TOKEN = re.compile(r'\s*(<<|>>|:>|@@|\|->|"[^"]*"|-?\w+|[][{}(),=])')
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
    representative: Callable[[Any], Any] = lambda state: state,
) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
    """States breadth first, with their steps: of each depth `most`, from everywhere, down to `DEEPEST`."""
    level = list(start)
    seen = {*level}
    for _ in range(DEEPEST):
        found = {state: list(steps_from(state)) for state in level[:: -(-len(level) // most) or 1]}
        yield from found.items()
        new = (representative(after) for steps in found.values() for _, after in steps)
        level = [state for state in dict.fromkeys(new) if state not in seen]
        seen.update(level)


def walked(made: Callable[..., Structure], configuration: Configuration, most: int) -> Found:
    """What the second checker finds."""
    model: Any = second_model(configuration)
    structure = lru_cache(CACHED)(partial(made, model))
    for state, steps in spread(model.initial(), model.steps, most, model.representative):
        yield structure(state), [(name, structure(after)) for name, after in steps]


def found_by_tlc(made: Callable[..., Structure], configuration: Configuration, most: int) -> Found:
    """What TLC finds. Nodes are not taken as equal: a step leads to just the state that the action makes.

    Raises:
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
        RuntimeError: TLC does not say that the configuration passes.
    """
    with tempfile.TemporaryDirectory(prefix="tlc-") as folder:
        dump, text = Path(folder) / "graph.dot", replace(configuration, symmetry=None).config_text()
        said, _ = tlc.run(configuration.module, text, heap_mb=1024, dump=dump, timeout_s=TIMEOUT_S)
        if (verdict := tlc.parse(said).verdict) != PASS:
            raise RuntimeError(f"{configuration.title}: TLC says {verdict}")
        dot = dump.read_text()
    labels, steps = dict(_NODE.findall(dot)), defaultdict(list)
    for old, new, action in _EDGE.findall(dot):
        steps[old].append((action, new))
    structure = lru_cache(CACHED)(lambda name: made(configuration, variables(labels[name])))
    for name, found in spread([next(iter(labels))], steps.__getitem__, most):
        yield structure(name), [(action, structure(new)) for action, new in found]


def variables(label: str) -> Map[str, Value]:
    """The variables of a state."""
    text = label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    names, values = _VARIABLE.findall(text), map(value, _VARIABLE.split(text)[2::2])
    return Map(zip(names, values, strict=True))


def value(text: str) -> Value:
    """A value as TLC writes it. Raises ValueError for what it would not write."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"not a value as TLC writes it: {text[:80]!r}")
    as_python = lambda token: token if token.lstrip("-").isdigit() else repr(token.strip('"'))
    return eval(" ".join(_AS_PYTHON.get(each) or as_python(each) for each in tokens), {"Map": Map})
