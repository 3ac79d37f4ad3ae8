"""A counterexample for people: numbered steps, the action's name, and only what it changed."""

from __future__ import annotations

from collections.abc import Iterator

from specs.tools.output import Outcome, State
from specs.tools.values import changes, parse


def _differences(before: State, after: State) -> Iterator[str]:
    for name, text in sorted(after.variables.items()):
        for path, value in changes(name, parse(before.variables[name]), parse(text)):
            yield f"      {path} = {value}"


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


def story(title: str, outcome: Outcome) -> str:
    """The whole counterexample under a heading."""
    return "\n".join([f"{title}: {outcome.verdict}", *steps(outcome)])
