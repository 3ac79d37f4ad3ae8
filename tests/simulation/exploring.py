"""Toy systems for the search: independent processes, and processes that share a register; and what fails."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from hashlib import blake2b

from simulation.exploration.campaign import explored
from simulation.exploration.search import Event, Failing
from simulation.exploration.setting import Setting

Acts = Mapping[str, tuple[str, ...]]
Judge = Callable[[dict[str, int]], bool]


class Steppers:
    """Processes that each take so many steps; step `i` of a process does what `acts` says.

    An act is `own` (a step of the process alone), `get` (it reads the register) or `add` (it writes what it
    read, plus one: an increment that is not atomic). `ok` judges an end by the values.
    """

    def __init__(self, acts: Acts, ok: Judge = lambda _values: True) -> None:
        self._acts = acts
        self._at = dict.fromkeys(acts, 0)
        self._read = dict.fromkeys(acts, 0)
        self._ok = ok
        self.values = {"register": 0}

    def enabled(self) -> list[Event]:
        return [
            Event("step", name) for name, acts in self._acts.items() if self._at[name] < len(acts)
        ]

    def step(self, event: Event) -> None:
        name = event.what
        act = self._acts[name][self._at[name]]
        self._at[name] += 1
        if act == "get":
            self._read[name] = self.values["register"]
        elif act == "add":
            self.values["register"] = self._read[name] + 1

    def digest(self) -> bytes:
        state = (self._at, self._read, self.values)
        return blake2b(repr(state).encode(), digest_size=16).digest()

    def copier(self) -> Callable[[], "Steppers"]:
        return partial(deepcopy, deepcopy(self))

    def judge(self) -> None:
        if not self._ok(self.values):
            raise Failing("LostUpdate", repr(self.values))


def failure_of(setting: Setting) -> str:
    """What breaks first in the schedules of a setting; empty when nothing does."""
    failed = explored(setting).failed
    return failed.name if failed else ""
