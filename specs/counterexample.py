"""A counterexample for people: numbered steps, the action's name, and only what it changed."""

from collections.abc import Iterator
from typing import TypeAlias

from specs.head_log.views import Map
from specs.tlc import Outcome, State, evaluated

_AS_PYTHON = {
    **{"<<": "listed('<<>>', ", ">>": ")", "{": "listed('{}', ", "}": ")", ",": ",", "@@": ","},
    **{"[": "record({", "]": "})", "(": "function({", ")": "})", "|->": ":", ":>": ":"},
}

# A record or function is a dict. Its names are written as they follow the variable's name in a path:
# `.name` of a record, `[name]` of a function. Any other value is its text on one line.
Value: TypeAlias = "dict[str, Value] | str"


def story(title: str, outcome: Outcome) -> str:
    """The whole counterexample under a heading."""
    return "\n".join([f"{title}: {outcome.verdict}", *steps(outcome)])


def steps(outcome: Outcome) -> Iterator[str]:
    """The lines of the story: every step's action, then the parts of variables that changed."""
    for index, state in enumerate(outcome.states):
        if state.action == "Stuttering":
            yield f"{state.number:4}. and nothing more ever happens"
            continue
        yield f"{state.number:4}. {state.action}"
        if index:
            yield from _differences(outcome.states[index - 1], state)
    if outcome.back_to is not None:
        yield f"      ... and from here back to step {outcome.back_to}, for ever"


def _differences(before: State, after: State) -> Iterator[str]:
    for name, text in sorted(after.variables.items()):
        for path, value in changes(name, parse(before.variables[name]), parse(text)):
            yield f"      {path} = {value}"


def changes(name: str, old: "Value | None", new: Value) -> Iterator[tuple[str, str]]:
    """The parts of a variable that differ, as (path, new value): `view[a].length`, `3`."""
    if old == new:
        return
    if isinstance(old, str) or old is None or isinstance(new, str):
        yield name, write(new)
        return
    for key, item in new.items():
        yield from changes(name + key, old.get(key), item)
    yield from ((name + key, "(gone)") for key in old if key not in new)


def write(value: Value) -> str:
    """The value on one line; a function is written like a record, to read more easily."""
    if isinstance(value, str):
        return value
    names = (key[1:] if key.startswith(".") else key[1:-1] for key in value)
    pairs = zip(names, value.values(), strict=True)
    return "[" + ", ".join(f"{name}: {write(item)}" for name, item in pairs) + "]"


def parse(text: str) -> Value:
    """Parse one value as TLC prints it.

    Raises:
        ValueError: the text is no TLA+ value.
    """
    kinds = {
        "listed": _listed,
        "record": lambda fields: Map({f".{name}": each for name, each in fields.items()}),
        "function": lambda points: Map({f"[{write(at)}]": each for at, each in points.items()}),
    }
    value: Value = evaluated(text, _AS_PYTHON, lambda token: f"str({token!r})", kinds)
    return value


def _listed(brackets: str, *items: Value) -> str:
    half = len(brackets) // 2
    return f"{brackets[:half]}{', '.join(map(write, items))}{brackets[half:]}"
