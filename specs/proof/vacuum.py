"""Vacuum (specs/Vacuum/Vacuum.tla) for any number of appends, objects, epochs and pauses."""

from collections.abc import Mapping
from itertools import combinations

import z3
from z3 import And, If, Implies, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import (
    NO,
    YES,
    Formulas,
    Language,
    Model,
    Step,
    Symbols,
    Term,
    Wrong,
    added,
    put,
)

LOGIC = Language(a="Appender", b="Appender", o="Name", t="Moment", i=int, p=bool)
each, some = LOGIC.each, LOGIC.some
IDLE, KNOWS, WRITTEN = map(z3.IntVal, range(3))
# A reference moves from each place to the next: 1, 2, 3; 0 is no place.
PLACES = ("head", "segment", "run")
STEPS = ("list", "raise", *PLACES, "delete")
FACTS = LOGIC.symbols(sleeps="t a p", max_age="i")
STATE = LOGIC.symbols(
    **{"epoch": "i", "named": "o p", "objects": "o p", "place": "o i", "age": "o i"},
    **{"phase": "a i", "known": "a i", "own": "a o", "felt": "a i"},
    **{"at": "i", "listed": "o p", "found": "o p"},
)
F = Symbols(**FACTS)
NONE_LISTED = {"at": z3.IntVal(1), "listed": lambda o: NO, "found": lambda o: NO}

# Decisions have the names of Vacuum.tla.
DEFINITIONS: Formulas = {
    "older": lambda s, x: If(x < F.max_age, x + 1, x),
    # The next step of the one that deletes is one of these.
    "is_next": lambda s, *steps: Or(
        *(s.at == number for number, step in enumerate(s.Steps(), 1) if step in steps)
    ),
    # It has read the place where object o is, if that is before step `at`.
    "is_read": lambda s, o: Or(*(And(s.at > n + 2, s.place(o) == n) for n in range(1, 4))),
    "InItsEpoch": lambda s, a: s.known(a) == s.epoch,
    "LearnsLate": lambda s: NO,
    "Steps": lambda s: STEPS,
    "IsOld": lambda s, o: YES,
    "NextEpoch": lambda s: s.epoch + 1,
    "Suspended": lambda s, a, t: F.sleeps(t, a),  # whose clocks do not count this time: any
}
ACTIONS: Formulas = {
    "Learn": lambda s, a: Step(
        s.phase(a) == IDLE,
        {
            **{"phase": put(s.phase, a, KNOWS), "known": put(s.known, a, s.epoch)},
            "felt": put(s.felt, a, 0),
        },
    ),
    "WriteObject": lambda s, a, o: Step(
        And(s.phase(a) == KNOWS, Not(s.named(o))),
        {
            **{"named": added(s.named, o), "objects": added(s.objects, o)},
            **{"phase": put(s.phase, a, WRITTEN), "own": put(s.own, a, o)},
        },
    ),
    "LearnAgain": lambda s, a: Step(
        And(s.LearnsLate(), s.phase(a) == WRITTEN), {"known": put(s.known, a, s.epoch)}
    ),
    "Commit": lambda s, a: Step(
        And(s.phase(a) == WRITTEN, s.InItsEpoch(a)),
        {"place": put(s.place, s.own(a), 1), "phase": put(s.phase, a, IDLE)},
    ),
    "Stop": lambda s, a: Step(s.phase(a) != IDLE, {"phase": put(s.phase, a, IDLE)}),
    "Move": lambda s, o: Step(
        And(s.place(o) >= 1, s.place(o) < len(PLACES)),
        {"place": put(s.place, o, s.place(o) + 1)},
    ),
    "Tick": lambda s, t: Step(
        YES,
        {
            "age": lambda o: If(s.objects(o), s.older(s.age(o)), s.age(o)),
            "felt": lambda a: If(
                And(s.phase(a) == WRITTEN, Not(s.Suspended(a, t))),
                s.older(s.felt(a)),
                s.felt(a),
            ),
        },
    ),
    "List": lambda s: Step(
        And(s.is_next("list"), some(lambda o: And(s.objects(o), s.IsOld(o)))),
        {"at": s.at + 1, "listed": lambda o: And(s.objects(o), s.IsOld(o))},
    ),
    "Raise": lambda s: Step(s.is_next("raise"), {"at": s.at + 1, "epoch": s.NextEpoch()}),
    "Read": lambda s: Step(
        s.is_next(*PLACES),
        {
            "at": s.at + 1,
            "found": lambda o: Or(
                s.found(o),
                Or(*(And(s.is_next(at), s.place(o) == n) for n, at in enumerate(PLACES, 1))),
            ),
        },
    ),
    "Delete": lambda s: Step(
        s.is_next("delete"),
        {
            **NONE_LISTED,
            "objects": lambda o: And(s.objects(o), Not(And(s.listed(o), Not(s.found(o))))),
        },
    ),
    "Cut": lambda s: Step(YES, NONE_LISTED),
}


LAWS: Formulas = {
    "TypeOK": lambda s: And(
        s.epoch >= 0,
        s.at >= 1,
        each(
            lambda o: And(
                And(s.place(o) >= 0, s.place(o) <= len(PLACES)),
                Implies(Or(s.objects(o), s.listed(o), s.place(o) > 0), s.named(o)),
            )
        ),
    ),
    "DataReadable": lambda s: each(lambda o: Implies(s.place(o) > 0, s.objects(o))),
    "NoneTooLate": lambda s: each(
        lambda a: Implies(And(s.phase(a) == WRITTEN, s.InItsEpoch(a)), s.objects(s.own(a)))
    ),
    "phases": lambda s: each(lambda a: And(s.phase(a) >= IDLE, s.phase(a) <= WRITTEN)),
    "known": lambda s: each(lambda a: Implies(s.phase(a) != IDLE, s.known(a) <= s.epoch)),
    "written": lambda s: each(
        lambda a: Implies(s.phase(a) == WRITTEN, And(s.named(s.own(a)), s.place(s.own(a)) == 0))
    ),
    "apart": lambda s: each(
        lambda a, b: Implies(
            And(s.phase(a) == WRITTEN, s.phase(b) == WRITTEN, s.own(a) == s.own(b)), a == b
        )
    ),
    "too_late": lambda s: each(
        lambda a: Implies(
            And(s.at > 2, s.phase(a) == WRITTEN, s.listed(s.own(a))), s.known(a) < s.epoch
        )
    ),
    "reads": lambda s: each(lambda o: Implies(And(s.listed(o), s.is_read(o)), s.found(o))),
}
IN_ANOTHER_ORDER = {
    "NoEpochRaised": (("list", *PLACES, "delete"), ()),
    "ReadsBeforeItRaises": (("list", *PLACES, "raise", "delete"), ("too_late", "reads")),
    "ListsAfterItRaised": (("raise", "list", *PLACES, "delete"), ("too_late", "reads")),
    "RunsBeforeSegments": (("list", "raise", "head", "run", "segment", "delete"), ("reads",)),
}
WRONG = {  # of specs/Vacuum/VacuumBroken.tla
    **{
        ("Steps", name): Wrong(lambda s, steps=steps: steps, untrue=untrue)
        for name, (steps, untrue) in IN_ANOTHER_ORDER.items()
    },
    ("InItsEpoch", "AnyEpoch"): Wrong(lambda s, a: YES, untrue=("NoneTooLate", "reads")),
    ("Suspended", "AnyMaySleep"): Wrong(),
    ("LearnsLate", "AsLate"): Wrong(lambda s: YES, untrue=("too_late", "reads")),
    ("NextEpoch", "EpochTooFar"): Wrong(unseen="the last epoch is a bound of the small models"),
    ("InItsEpoch", "Patient"): Wrong(
        unseen="a rule of earlier releases, of clocks: TLC checks it at small sizes"
    ),
}


def structure(configuration: Configuration, state: Mapping[str, Term]) -> Structure:
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
    sleepers = (map(frozenset, combinations(appender, n)) for n in range(len(appender) + 1))
    moments = tuple(sleeping for group in sleepers for sleeping in group)
    return Structure({"Appender": tuple(appender), "Name": names, "Moment": moments}, parts)


MODEL = Model(
    language=LOGIC,
    facts=FACTS,
    state=STATE,
    definitions=DEFINITIONS,
    initial=lambda s: And(
        And(s.epoch == 0, s.at == 1, each(lambda a: s.phase(a) == IDLE)),
        each(lambda o: And(Not(s.named(o)), Not(s.objects(o)), s.place(o) == 0)),
        each(lambda o: And(Not(s.listed(o)), Not(s.found(o)))),
    ),
    actions=ACTIONS,
    laws=LAWS,
    wrong=WRONG,
    structure=structure,
    numbers=len(STEPS) + 1,
    never=frozenset({"LearnAgain"}),
)
