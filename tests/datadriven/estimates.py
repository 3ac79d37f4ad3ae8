"""Plays a transcript of what a node goes by: estimates, timeouts, the policy of commits. They have no I/O.

> policy n0 n1 n2 [combine=off]  a policy of n0; `timeouts [first=0.1]`, `rate` and `company` are the others
> policy n0 n1 gathers=0.4       the same with another `Pace`
> at 0.3                         the time, in seconds
> store_took 0.2                 a method with its arguments, or an attribute, and what it gives
> repeat 50 at $e-2; idle        commands in turn, so many times; `$` is 0, 1, ...
"""

import ast
from typing import Any

from leaderless.core import messages
from leaderless.core.estimates import Company, Rate
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.pace import Pace
from leaderless.core.strategy import Clock
from leaderless.core.timeouts import StoreTimeouts
from tests.datadriven.runner import NOTHING, Player, chosen_of


class Estimates(Player):
    """Calls one object."""

    def __init__(self) -> None:
        super().__init__()
        self._of: Any = None
        self._clock = Clock()
        self.commands |= {
            "policy": self._policy,
            "timeouts": lambda words: self._new(StoreTimeouts(_pace(words))),
            "rate": lambda _: self._new(Rate()),
            "company": lambda _: self._new(Company()),
            "at": self._at,
            "repeat": self._repeat,
        }

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        found = getattr(self._of, name)
        if callable(found):
            named = {name: _value(word) for name, word in chosen_of(words).items()}
            found = found(*[_value(word) for word in words if "=" not in word], **named)
            if found is None:
                return []
        return [f"{found:.3g}" if isinstance(found, float) else str(found)]

    def _new(self, made: object) -> list[str]:
        self._of = made
        return []

    def _policy(self, words: list[str]) -> list[str]:
        self._clock = Clock()
        nodes = tuple(word for word in words if "=" not in word)
        combine = chosen_of(words).get("combine") != "off"
        return self._new(CommitPolicy(self._clock, nodes[0], nodes, _pace(words), combine=combine))

    def _at(self, words: list[str]) -> list[str]:
        self._clock.now = float(words[0])
        return []

    def _repeat(self, words: list[str]) -> list[str]:
        shown: list[str] = []
        for number in range(int(words[0])):
            for command in " ".join(words[1:]).replace("$", str(number)).split(";"):
                shown += self.command(command)
        results = [each for each in shown if each != NOTHING]
        return [", ".join(results)] if results else []


def _pace(words: list[str]) -> Pace:
    chosen = {"first": "1"} | chosen_of(words)
    names = {"first": "store_timeout_s"}
    numbers: dict[str, Any] = {
        names.get(name, name): float(text) for name, text in chosen.items() if name != "combine"
    }
    return Pace(**numbers)


def _value(word: str) -> Any:
    """A literal, an operation of the store, or the name of a node."""
    try:
        return ast.literal_eval(word)
    except ValueError:
        return getattr(messages, word, word)
