"""Vacuum (specs/Vacuum/Vacuum.tla) for any number of appends, objects, epochs and pauses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import z3
from z3 import And, BoolVal, If, Implies, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import Language, Model, Step, Symbols, Term, added, put

LOGIC = Language(a="Appender", b="Appender", o="Name", m="Moment", i=int, p=bool)
each, some = LOGIC.each, LOGIC.some
IDLE, KNOWS, WRITTEN = range(3)
PLACES = (
    "head",
    "segment",
    "run",
)  # a reference moves from each to the next: 1, 2, 3; 0 is no place
STEPS = ("list", "raise", *PLACES, "delete")
FACTS = LOGIC.symbols(sleeps="m a p", max_age="i")
STATE = LOGIC.symbols(
    **{"epoch": "i", "named": "o p", "objects": "o p", "place": "o i", "age": "o i"},
    **{"phase": "a i", "known": "a i", "own": "a o", "felt": "a i"},
    **{"at": "i", "listed": "o p", "found": "o p"},
)
F = Symbols(**FACTS)


def one(number: int) -> Term:
    return z3.IntVal(number)


class Vacuum:
    """The decisions under the names of Vacuum.tla, and the actions."""

    steps: Sequence[str] = STEPS
    learns_late = False

    def in_its_epoch(self, s: Any, a: Term) -> Term:
        return s.known(a) == s.epoch

    def is_old(self, s: Any, o: Term) -> Term:
        return BoolVal(True)

    def next_epoch(self, s: Any) -> Term:
        return s.epoch + 1

    def learn(self, s: Any, a: Term) -> Step:
        changes = {"phase": put(s.phase, a, one(KNOWS)), "known": put(s.known, a, s.epoch)}
        return Step(s.phase(a) == IDLE, changes | {"felt": put(s.felt, a, one(0))})

    def write_object(self, s: Any, a: Term, o: Term) -> Step:
        return Step(
            And(s.phase(a) == KNOWS, Not(s.named(o))),
            {
                "named": added(s.named, o),
                "objects": added(s.objects, o),
                "phase": put(s.phase, a, one(WRITTEN)),
                "own": put(s.own, a, o),
            },
        )

    def learn_again(self, s: Any, a: Term) -> Step:
        late = And(BoolVal(self.learns_late), s.phase(a) == WRITTEN)
        return Step(late, {"known": put(s.known, a, s.epoch)})

    def commit(self, s: Any, a: Term) -> Step:
        changes = {"place": put(s.place, s.own(a), one(1)), "phase": put(s.phase, a, one(IDLE))}
        return Step(And(s.phase(a) == WRITTEN, self.in_its_epoch(s, a)), changes)

    def stop(self, s: Any, a: Term) -> Step:
        return Step(s.phase(a) != IDLE, {"phase": put(s.phase, a, one(IDLE))})

    def move(self, s: Any, o: Term) -> Step:
        when = And(1 <= s.place(o), s.place(o) < len(PLACES))
        return Step(when, {"place": put(s.place, o, s.place(o) + 1)})

    def tick(self, s: Any, m: Term) -> Step:
        older = lambda x: If(x < F.max_age, x + 1, x)
        counts = lambda a: And(s.phase(a) == WRITTEN, Not(F.sleeps(m, a)))
        return Step(
            BoolVal(True),
            {
                "age": lambda o: If(s.objects(o), older(s.age(o)), s.age(o)),
                "felt": lambda a: If(counts(a), older(s.felt(a)), s.felt(a)),
            },
        )

    def is_next(self, s: Any, *steps: str) -> Term:
        return Or(*(s.at == self.steps.index(step) + 1 for step in steps if step in self.steps))

    def list_objects(self, s: Any) -> Step:
        old = lambda o: And(s.objects(o), self.is_old(s, o))
        when = And(self.is_next(s, "list"), some(old))
        return Step(when, {"at": s.at + 1, "listed": old})

    def raise_epoch(self, s: Any) -> Step:
        return Step(self.is_next(s, "raise"), {"at": s.at + 1, "epoch": self.next_epoch(s)})

    def read(self, s: Any) -> Step:
        here = lambda o: Or(
            *(And(self.is_next(s, p), s.place(o) == n) for n, p in enumerate(PLACES, 1))
        )
        changes = {"at": s.at + 1, "found": lambda o: Or(s.found(o), here(o))}
        return Step(self.is_next(s, *PLACES), changes)

    def delete(self, s: Any) -> Step:
        left = lambda o: And(s.objects(o), Not(And(s.listed(o), Not(s.found(o)))))
        return Step(self.is_next(s, "delete"), {"objects": left} | self.resting())

    def cut(self, s: Any) -> Step:
        return Step(BoolVal(True), self.resting())

    def resting(self) -> dict[str, Term]:
        no = lambda o: BoolVal(False)
        return {"at": one(1), "listed": no, "found": no}


def initial(s: Any) -> Term:
    empty = lambda o: Not(Or(s.named(o), s.objects(o), s.listed(o), s.found(o)))
    return And(
        And(s.epoch == 0, s.at == 1),
        each(lambda o: And(empty(o), s.place(o) == 0)),
        each(lambda a: s.phase(a) == IDLE),
    )


def invariant(m: Vacuum, s: Any) -> dict[str, Term]:
    def on_its_way(a: Term) -> Term:
        return And(s.phase(a) == WRITTEN, m.in_its_epoch(s, a))

    def found(o: Term) -> Term:
        read = [And(s.at > n + 2, s.place(o) == n) for n in range(1, len(PLACES) + 1)]
        return Implies(And(s.listed(o), Or(*read)), s.found(o))

    def too_late(a: Term) -> Term:
        listed = And(s.at > 2, s.phase(a) == WRITTEN, s.listed(s.own(a)))
        return Implies(listed, s.known(a) < s.epoch)

    def written(a: Term) -> Term:
        o = s.own(a)
        return And(s.named(o), s.place(o) == 0)

    return {
        "TypeOK": each(
            lambda o: And(
                And(0 <= s.place(o), s.place(o) <= len(PLACES), s.epoch >= 0, s.at >= 1),
                Implies(Or(s.objects(o), s.listed(o), s.place(o) > 0), s.named(o)),
            )
        ),
        "DataReadable": each(lambda o: Implies(s.place(o) > 0, s.objects(o))),
        "NoneTooLate": each(lambda a: Implies(on_its_way(a), s.objects(s.own(a)))),
        "phases": each(lambda a: And(IDLE <= s.phase(a), s.phase(a) <= WRITTEN)),
        "known": each(lambda a: Implies(s.phase(a) != IDLE, s.known(a) <= s.epoch)),
        "written": each(lambda a: Implies(s.phase(a) == WRITTEN, written(a))),
        "apart": each(
            lambda a, b: Implies(
                And(s.phase(a) == WRITTEN, s.phase(b) == WRITTEN, s.own(a) == s.own(b)), a == b
            )
        ),
        "too_late": each(too_late),
        "reads": each(found),
    }


# By what the manifest names: the operator, and what stands in for it. `untrue`: helpers that this makes false.
INSTEAD: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("Steps", "NoEpochRaised"): {
        "steps": ("list", *PLACES, "delete"),
        "untrue": ("too_late", "reads"),
    },
    ("Steps", "ReadsBeforeItRaises"): {
        "steps": ("list", *PLACES, "raise", "delete"),
        "untrue": ("too_late", "reads"),
    },
    ("Steps", "ListsAfterItRaised"): {
        "steps": ("raise", "list", *PLACES, "delete"),
        "untrue": ("too_late", "reads"),
    },
    ("Steps", "RunsBeforeSegments"): {
        "steps": ("list", "raise", "head", "run", "segment", "delete"),
        "untrue": ("reads",),
    },
    ("InItsEpoch", "AnyEpoch"): {
        "in_its_epoch": lambda _, s, a: BoolVal(True),
        "untrue": ("NoneTooLate", "reads"),
    },
    ("Suspended", "AnyMaySleep"): {},
    ("LearnsLate", "AsLate"): {"learns_late": True, "untrue": ("too_late", "reads")},
}
UNSEEN = {
    ("NextEpoch", "EpochTooFar"): "the last epoch is a bound of the small models",
    (
        "InItsEpoch",
        "Patient",
    ): "a rule of earlier releases, of clocks: TLC checks it at small sizes",
}


def model(m: Vacuum) -> Model:
    """Vacuum with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms={},
        initial=initial,
        actions={
            **{"Learn": m.learn, "WriteObject": m.write_object, "LearnAgain": m.learn_again},
            **{"Commit": m.commit, "Stop": m.stop, "Move": m.move, "Tick": m.tick},
            **{"List": m.list_objects, "Raise": m.raise_epoch, "Read": m.read},
            **{"Delete": m.delete, "Cut": m.cut},
        },
        invariant=lambda s: invariant(m, s),
        numbers=len(STEPS) + 1,
        never=frozenset({"LearnAgain"}),
    )


def structure(configuration: Configuration, state: Mapping[str, Any]) -> Structure:
    """A state that TLC has found."""
    objects, moments = range(1, len(state["place"]) + 1), _subsets(state["appender"])
    appender, vacuum = state["appender"], state["vacuum"]
    field = lambda name: {
        a: UNSET if each[name] == "None" else each[name] for a, each in appender.items()
    }
    own, known, felt = field("own"), field("known"), field("felt")
    phases = {a: ("idle", "knows", "written").index(each["phase"]) for a, each in appender.items()}
    places = {
        o: (None, *PLACES).index(None if at == "None" else at)
        for o, at in enumerate(state["place"], 1)
    }
    parts = {
        "sleeps": Part(None, lambda m, a: a in m),
        "max_age": Part(None, int(configuration.constants["MaxAge"])),
        "epoch": Part(state["epoch"], state["epoch"]),
        "named": Part(state["named"], lambda o: o <= state["named"]),
        "objects": Part(state["objects"], lambda o: o in state["objects"]),
        "place": Part(state["place"], places.__getitem__),
        "age": Part(state["age"], lambda o: state["age"][o - 1]),
        "at": Part(vacuum["at"], vacuum["at"]),
        "listed": Part(vacuum["listed"], lambda o: o in vacuum["listed"]),
        "found": Part(vacuum["found"], lambda o: o in vacuum["found"]),
    }
    waits = {a for a, phase in phases.items() if phase != IDLE}
    for name, of in (("phase", phases), ("known", known), ("own", own), ("felt", felt)):
        value = lambda a, name=name, of=of: of[a] if name == "phase" or a in waits else UNSET
        parts[name] = Part(appender, value)
    domains = {"Appender": tuple(appender), "Name": tuple(objects), "Moment": moments}
    return Structure(domains, parts)


def _subsets(elements: Iterable[Any]) -> tuple[frozenset[Any], ...]:
    found: list[frozenset[Any]] = [frozenset()]
    for element in elements:
        found += [each | {element} for each in found]
    return tuple(found)
