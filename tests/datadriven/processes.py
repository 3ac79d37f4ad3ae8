"""Plays a transcript of processes of the core without a node around them, one store call at a time.

    > fresh [seal=1]                 an empty store; the log will have such a shape
    > one claim                      a process of `one` to its end: what it returns or raises, and when
    > one begin claim                the same until it waits: its calls under way are shown
    > one carry [lost|unanswered] [1]   what becomes of the oldest of its calls, or of the one with this place
    > one apply 1                    a call takes effect; its answer is still on the way
    > one finish                     let its processes end undisturbed
    > one at 9.5                     its time, in seconds
    > one forget                     its replica holds a head without its tail from now on
    > one view                       what its replica holds, and how fresh that is
    > log 5 [sealed=2] [compacted]   the log has five entries; segments have two, and the first two are a run
    > put claim/work {...}           what a register holds now
    > store [head]                   what registers hold

Processes: `claim`, `beat`, `done` and `failed` of a claim, `revive`; `refresh` of a replica, `learn 2 4` of a
peer's answer with the entries from slot 2 to the end 4 (`sealed=`, `base=` of its head; `held=`, `asked=` in
seconds; `entry=3` in place of what should be in it); `append n0/0 1 ["a"]` of a batch by its writer and its
number (`epoch=`, `kept=`, `ahead` for a read beside it).
"""

import json
from typing import Any

from leaderless.core.claims import Claims
from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.attempt import carry_out, prepare, raise_epoch
from leaderless.core.headlog.index import Index, IndexEntry, size_of_run
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.records import Head, Segment, merge
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Batch, Entry, HandedOver, Heading, Put
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from tests.datadriven.runner import Player, chosen_of, json_of, registers_of
from tests.driver import Driver, Fate
from tests.ported import Store

LOG = [Entry("n9/0", seq, {"k": (seq, [f"m{seq}"])}, {}) for seq in range(6)]
FATES: dict[str, Fate] = {"lost": "call lost", "unanswered": "answer lost", "late": "late"}


class Actor(Driver):
    """One start of a node: its claims, and its replica of the log."""

    def __init__(self, store: Store, name: str, shape: Shape) -> None:
        super().__init__(store.apply)
        self._name = name
        self._claims = Claims(self.clock, "claim/work", name, Pace())
        limits = Limits(memory_bytes=1 << 30)
        self._replica = Replica(self.clock, name, [f"{name}/0"], limits, founding=shape)

    def process(self, kind: str, words: list[str]) -> Process[Any]:
        chosen = chosen_of(words)
        match kind:
            case "claim" | "beat" | "revive":
                process: Process[Any] = getattr(self._claims, kind)()
                return process
            case "done" | "failed":
                return self._claims.release(done=kind == "done")
            case "refresh":
                return self._replica.refresh()
            case "fence":
                return raise_epoch(self._name)
            case "learn":
                return self._replica.learn(
                    _shared(int(words[0]), int(words[1]), chosen), float(chosen.get("asked", 9.0))
                )
        batch = Batch(
            words[0], int(words[1]), int(chosen.get("epoch", 0)), {"k": json.loads(words[2])}, {}, 1
        )
        tried = prepare(self._replica, [batch], by=self._name, kept=int(chosen.get("kept", 0)))
        return carry_out(self._replica, tried, reads_ahead="ahead" in words)

    def forget(self) -> None:
        """The replica holds a head without its tail."""
        self._replica.head = Head(self._replica.head.heading, [])

    def news(self) -> list[str]:
        """What has ended since the last time, and what is under way."""
        ended = [f"{_told(result)} at {self.clock.now:g} s" for result in self.results]
        self.results.clear()
        return [*ended, *(f"{type(call.op).__name__.lower()} {call.op.key}" for call in self.calls)]

    def view(self) -> list[str]:
        replica, memory = self._replica, Memory(self._replica)
        found = replica.view.read("k", 0)
        if found is None:  # it is read back, run by run
            found = []
            while more := self.call(memory.read("k", len(found))):
                found += more
        head = replica.head.heading
        where = f"slot {replica.view.slot} of {replica.head.end}, base {head.base}, version {head.version}"
        return [f"{where}: {json_of([msg for _, msg in found])}, as of {replica.confirmed_at:g} s"]


class Processes(Player):
    """Carries commands out on one store."""

    def __init__(self) -> None:
        super().__init__()
        self.commands |= {
            "fresh": self._fresh,
            "log": self._log,
            "put": lambda words: self._put(words[0], json.loads(" ".join(words[1:]))),
            "store": lambda words: registers_of(self._store.registers, words),
        }

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        if name not in self._actors:
            self._actors[name] = Actor(self._store, name, self._shape)
        actor, (what, *more) = self._actors[name], words
        match what:
            case "carry":
                fate: Fate = next((FATES[word] for word in more if word in FATES), "ok")
                actor.carry_out(fate, which=int(more[-1]) if more and more[-1].isdigit() else 0)
            case "apply":
                self._store.apply(actor.calls[int(more[0])].op)
            case "finish":
                actor.finish()
            case "forget":
                actor.forget()
            case "at":
                actor.clock.now = float(more[0])
            case "view":
                return actor.view()
            case "begin":
                actor.start(actor.process(more[0], more[1:]))
            case _:
                try:
                    actor.results.append(actor.call(actor.process(what, more)))
                except Exception as error:
                    actor.results.append(error)
        return actor.news()

    def _fresh(self, words: list[str]) -> list[str]:
        self._store, self._actors = Store(), dict[str, Actor]()
        self._shape = Shape(seal_entries=int(chosen_of(words).get("seal", 256)))
        return []

    def _log(self, words: list[str]) -> list[str]:
        end, sealed = int(words[0]), int(chosen_of(words).get("sealed", 0))
        segments = [
            Segment(2 * number, LOG[2 * number : 2 * number + 2]) for number in range(sealed)
        ]
        for number, segment in enumerate(segments):
            self._put(f"segment/{number}", segment.value)
        self._put("head", _head(sealed, 2 * sealed, end).value)
        if "compacted" in words:
            run = merge(segments[:2])
            listed = IndexEntry(0, 0, 1, 0, 4, 1, size_of_run(run))
            self._put("run/0-1", run.value)
            self._put("compacted", Index(1, 2, (listed,)).value)
            for number in (0, 1):
                self._put(f"segment/{number}", TOMBSTONE)
        return []

    def _put(self, register: str, value: Any) -> list[str]:
        self._store.apply(Put(register, value))
        return []


def _head(sealed: int, base: int, end: int) -> Head:
    """The head at `end`, `sealed` segments behind it up to `base`; versions grow with the log."""
    return Head(
        Heading(version=end + 1, by="n9", sealed=sealed, base=base, size=end - base), LOG[base:end]
    )


def _shared(slot: int, end: int, chosen: dict[str, str]) -> HandedOver:
    head = _head(int(chosen.get("sealed", 0)), int(chosen.get("base", 0)), end)
    entries = [LOG[int(chosen["entry"])]] if "entry" in chosen else LOG[slot:end]
    return HandedOver(slot, entries, head.heading, float(chosen.get("held", 0.25)))


def _told(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {result}"
    return str(getattr(result, "value", result))
