"""Vacuum (specs/Vacuum/Vacuum.tla) for any number of appends, objects, epochs and pauses."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import z3
from z3 import And, If, Implies, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import Language, Model, Step, Symbols, Term, added, put

LOGIC = Language(a="Appender", b="Appender", o="Name", t="Moment", i=int, p=bool)
each, some = LOGIC.each, LOGIC.some
YES, NO = z3.BoolVal(True), z3.BoolVal(False)
IDLE, KNOWS, WRITTEN = map(z3.IntVal, range(3))
PLACES = (
    "head",
    "segment",
    "run",
)  # a reference moves from each to the next: 1, 2, 3; 0 is no place
STEPS = ("list", "raise", *PLACES, "delete")
FACTS = LOGIC.symbols(sleeps="t a p", max_age="i")
STATE = LOGIC.symbols(
    **{"epoch": "i", "named": "o p", "objects": "o p", "place": "o i", "age": "o i"},
    **{"phase": "a i", "known": "a i", "own": "a o", "felt": "a i"},
    **{"at": "i", "listed": "o p", "found": "o p"},
)
F = Symbols(**FACTS)
ZERO, ONE = map(z3.IntVal, range(2))
NONE_LISTED = {"at": ONE, "listed": lambda o: NO, "found": lambda o: NO}

# Each under the name that it has in Vacuum.tla.
DECISIONS = {
    "InItsEpoch": lambda s, a: s.known(a) == s.epoch,
    "LearnsLate": NO,
    "Steps": STEPS,
    "IsOld": lambda s, o: YES,
    "NextEpoch": lambda s: s.epoch + 1,
    "Suspended": lambda a, t: F.sleeps(t, a),  # whose clocks do not count this time: any
}


def learn(m: Any, s: Any, a: Term) -> Step:
    changes = {"phase": put(s.phase, a, KNOWS), "known": put(s.known, a, s.epoch)}
    return Step(s.phase(a) == IDLE, {**changes, "felt": put(s.felt, a, ZERO)})


def write_object(m: Any, s: Any, a: Term, o: Term) -> Step:
    changes = {"named": added(s.named, o), "objects": added(s.objects, o)}
    own = {"phase": put(s.phase, a, WRITTEN), "own": put(s.own, a, o)}
    return Step(And(s.phase(a) == KNOWS, Not(s.named(o))), {**changes, **own})


def commit(m: Any, s: Any, a: Term) -> Step:
    changes = {"place": put(s.place, s.own(a), ONE), "phase": put(s.phase, a, IDLE)}
    return Step(And(s.phase(a) == WRITTEN, m.InItsEpoch(s, a)), changes)


def move(m: Any, s: Any, o: Term) -> Step:
    when = And(s.place(o) >= 1, s.place(o) < len(PLACES))
    return Step(when, {"place": put(s.place, o, s.place(o) + 1)})


def tick(m: Any, s: Any, t: Term) -> Step:
    older = lambda x: If(x < F.max_age, x + 1, x)
    counts = lambda a: And(s.phase(a) == WRITTEN, Not(m.Suspended(a, t)))
    age = lambda o: If(s.objects(o), older(s.age(o)), s.age(o))
    return Step(YES, {"age": age, "felt": lambda a: If(counts(a), older(s.felt(a)), s.felt(a))})


def is_next(m: Any, s: Any, *steps: str) -> Term:
    return Or(*(s.at == number for number, step in enumerate(m.Steps, 1) if step in steps))


def list_objects(m: Any, s: Any) -> Step:
    old = lambda o: And(s.objects(o), m.IsOld(s, o))
    return Step(And(is_next(m, s, "list"), some(old)), {"at": s.at + 1, "listed": old})


def read(m: Any, s: Any) -> Step:
    of = lambda o, n, place: And(is_next(m, s, place), s.place(o) == n)
    here = lambda o: Or(*(of(o, n, place) for n, place in enumerate(PLACES, 1)))
    changes = {"at": s.at + 1, "found": lambda o: Or(s.found(o), here(o))}
    return Step(is_next(m, s, *PLACES), changes)


def delete(m: Any, s: Any) -> Step:
    left = lambda o: And(s.objects(o), Not(And(s.listed(o), Not(s.found(o)))))
    return Step(is_next(m, s, "delete"), {**NONE_LISTED, "objects": left})


ACTIONS: Mapping[str, Any] = {
    "Learn": learn,
    "WriteObject": write_object,
    "LearnAgain": lambda m, s, a: Step(
        And(m.LearnsLate, s.phase(a) == WRITTEN), {"known": put(s.known, a, s.epoch)}
    ),
    "Commit": commit,
    "Stop": lambda m, s, a: Step(s.phase(a) != IDLE, {"phase": put(s.phase, a, IDLE)}),
    "Move": move,
    "Tick": tick,
    "List": list_objects,
    "Raise": lambda m, s: Step(is_next(m, s, "raise"), {"at": s.at + 1, "epoch": m.NextEpoch(s)}),
    "Read": read,
    "Delete": delete,
    "Cut": lambda m, s: Step(YES, NONE_LISTED),
}


def initial(s: Any) -> Term:
    empty = lambda o: Not(Or(s.named(o), s.objects(o), s.listed(o), s.found(o)))
    return And(
        And(s.epoch == 0, s.at == 1),
        each(lambda o: And(empty(o), s.place(o) == 0)),
        each(lambda a: s.phase(a) == IDLE),
    )


def invariant(m: Any, s: Any) -> dict[str, Term]:
    on_its_way = lambda a: And(s.phase(a) == WRITTEN, m.InItsEpoch(s, a))
    bounds = lambda o: And(s.place(o) >= 0, s.place(o) <= len(PLACES))
    known = lambda o: Implies(Or(s.objects(o), s.listed(o), s.place(o) > 0), s.named(o))
    own = lambda a: And(s.named(s.own(a)), s.place(s.own(a)) == 0)
    both = lambda a, b: And(s.phase(a) == WRITTEN, s.phase(b) == WRITTEN, s.own(a) == s.own(b))
    late = lambda a: And(s.at > 2, s.phase(a) == WRITTEN, s.listed(s.own(a)))
    is_read = lambda o: Or(*(And(s.at > n + 2, s.place(o) == n) for n in range(1, 4)))
    return {
        "TypeOK": And(s.epoch >= 0, s.at >= 1, each(lambda o: And(bounds(o), known(o)))),
        "DataReadable": each(lambda o: Implies(s.place(o) > 0, s.objects(o))),
        "NoneTooLate": each(lambda a: Implies(on_its_way(a), s.objects(s.own(a)))),
        "phases": each(lambda a: And(s.phase(a) >= IDLE, s.phase(a) <= WRITTEN)),
        "known": each(lambda a: Implies(s.phase(a) != IDLE, s.known(a) <= s.epoch)),
        "written": each(lambda a: Implies(s.phase(a) == WRITTEN, own(a))),
        "apart": each(lambda a, b: Implies(both(a, b), a == b)),
        "too_late": each(lambda a: Implies(late(a), s.known(a) < s.epoch)),
        "reads": each(lambda o: Implies(And(s.listed(o), is_read(o)), s.found(o))),
    }


# By what the manifest names: the operator, and what stands in for it; then the helpers that this makes false.
INSTEAD: Mapping[tuple[str, str], Any] = {
    ("Steps", "NoEpochRaised"): ("list", *PLACES, "delete"),
    ("Steps", "ReadsBeforeItRaises"): ("list", *PLACES, "raise", "delete"),
    ("Steps", "ListsAfterItRaised"): ("raise", "list", *PLACES, "delete"),
    ("Steps", "RunsBeforeSegments"): ("list", "raise", "head", "run", "segment", "delete"),
    ("InItsEpoch", "AnyEpoch"): lambda s, a: YES,
    ("Suspended", "AnyMaySleep"): None,
    ("LearnsLate", "AsLate"): YES,
}
UNTRUE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("Steps", "ReadsBeforeItRaises"): ("too_late", "reads"),
    ("Steps", "ListsAfterItRaised"): ("too_late", "reads"),
    ("Steps", "RunsBeforeSegments"): ("reads",),
    ("InItsEpoch", "AnyEpoch"): ("NoneTooLate", "reads"),
    ("LearnsLate", "AsLate"): ("too_late", "reads"),
}
UNSEEN = {
    ("NextEpoch", "EpochTooFar"): "the last epoch is a bound of the small models",
    (
        "InItsEpoch",
        "Patient",
    ): "a rule of earlier releases, of clocks: TLC checks it at small sizes",
}


def model(m: Any) -> Model:
    """Vacuum with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms={},
        initial=initial,
        actions={name: partial(action, m) for name, action in ACTIONS.items()},
        invariant=partial(invariant, m),
        numbers=len(STEPS) + 1,
        never=frozenset({"LearnAgain"}),
    )


def structure(configuration: Configuration, state: Mapping[str, Any]) -> Structure:
    """A state that TLC has found."""
    appender, vacuum, place = state["appender"], state["vacuum"], ("None", *PLACES)
    known = {a: each if each["phase"] != "idle" else {} for a, each in appender.items()}
    field = lambda name: Part(appender, lambda a: known[a].get(name, UNSET))
    names = tuple(range(1, len(state["place"]) + 1))
    parts = {
        "sleeps": Part(None, lambda t, a: a in t),
        "max_age": Part(None, int(configuration.constants["MaxAge"])),
        "epoch": Part(state["epoch"], state["epoch"]),
        "named": Part(state["named"], lambda o: o <= state["named"]),
        "objects": Part(state["objects"], lambda o: o in state["objects"]),
        "place": Part(state["place"], lambda o: place.index(state["place"][o - 1])),
        "age": Part(state["age"], lambda o: state["age"][o - 1]),
        "phase": Part(appender, lambda a: ("idle", "knows", "written").index(appender[a]["phase"])),
        **{name: field(name) for name in ("known", "felt")},
        "own": Part(appender, lambda a: each if (each := known[a].get("own")) in names else UNSET),
        "at": Part(vacuum["at"], vacuum["at"]),
        "listed": Part(vacuum["listed"], lambda o: o in vacuum["listed"]),
        "found": Part(vacuum["found"], lambda o: o in vacuum["found"]),
    }
    domains = {"Appender": tuple(appender), "Name": names, "Moment": _subsets(appender)}
    return Structure(domains, parts)


def _subsets(elements: Iterable[Any]) -> tuple[frozenset[Any], ...]:
    found: list[frozenset[Any]] = [frozenset()]
    for element in elements:
        found += [each | {element} for each in found]
    return tuple(found)
