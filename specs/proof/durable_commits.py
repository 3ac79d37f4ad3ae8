"""DurableCommits (specs/HeadLog/DurableCommits.tla) for any number of nodes, registers and keys."""

from collections.abc import Mapping

from z3 import And, If, Implies, IntVal, Not, Or

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
    removed,
)

LOGIC = Language(n="Node", r="Register", k="Key", c="Cas", i=int, j=int, p=bool)
each, some = LOGIC.each, LOGIC.some
FACTS = LOGIC.symbols(
    **{"register_of": "n r", "at": "c r", "old_slot": "c i", "old": "c k i"},
    **{"new_slot": "c i", "new": "c k i", "one_node": "n"},
)
STATE = LOGIC.symbols(
    **{"slot": "r i", "offset": "r k i", "length": "i", "logged": "i k i"},
    **{"holds": "n p", "held_slot": "n i", "held": "n k i", "viewed": "n i", "waiting": "n k i"},
    **{"calls": "n p", "call": "n c", "late": "c p"},
    **{"lists": "p", "floor": "k i", "view": "i", "left": "r p", "read_slot": "i", "read": "k i"},
    **{"acked": "k i", "listed_floor": "k i", "listed": "k i"},
)
F = Symbols(**FACTS)


def most(a: Term, b: Term) -> Term:
    return If(a >= b, a, b)


def within(low: Term, i: Term, high: Term) -> Term:
    return And(low <= i, i <= high)


def as_if_written(s: Symbols, n: Term) -> dict[str, Term]:
    """The node takes its register for what it has asked to write."""
    held = lambda other, k: If(other == n, F.new(s.call(n), k), s.held(other, k))
    slot = put(s.held_slot, n, F.new_slot(s.call(n)))
    return {"holds": added(s.holds, n), "held_slot": slot, "held": held}


# Decisions have the names of DurableCommits.tla.
DEFINITIONS: Formulas = {
    # It is the register of some node.
    "is_written": lambda s, r: some(lambda n: F.register_of(n) == r),
    # The offset that a node knows in its register or in the log.
    "covered": lambda s, n, k: most(s.held(n, k), s.logged(s.viewed(n), k)),
    "waits": lambda s, n: some(lambda k: s.waiting(n, k) > 0),
    "none_waits": lambda s, n: lambda other, k: If(other == n, 0, s.waiting(other, k)),
    # What a write leaves out of the register, for it is in the log.
    "out": lambda s, n, k: And(s.held(n, k) > 0, s.MayLeaveOut(n, k)),
    "takes_effect": lambda s, c: {
        **{"slot": put(s.slot, F.at(c), F.new_slot(c)), "late": removed(s.late, c)},
        "offset": lambda r, k: If(r == F.at(c), F.new(c, k), s.offset(r, k)),
    },
    # The node must read its register again.
    "forgotten": lambda s, n: {"holds": removed(s.holds, n)},
    "is_asked": lambda s, c: Or(s.late(c), some(lambda n: And(s.calls(n), s.call(n) == c))),
    "is_logged": lambda s, slot, k: s.logged(slot, k) >= s.floor(k),
    # A reader of everything finds this offset, or a higher one.
    "is_stored": lambda s, k, offset: Or(
        offset <= 0,
        s.logged(s.length, k) >= offset,
        some(lambda r: s.offset(r, k) >= offset),
    ),
    "RegisterOf": lambda s, n: F.register_of(n),  # nothing is known of it: some may share one
    "BaseIsCurrent": lambda s, c: And(
        s.slot(F.at(c)) == F.old_slot(c), each(lambda k: s.offset(F.at(c), k) == F.old(c, k))
    ),
    "Lacks": lambda s, n, k: s.waiting(n, k) > s.covered(n, k),
    "InStore": lambda s, n: And(s.holds(n), each(lambda k: s.covered(n, k) >= s.waiting(n, k))),
    "MayLeaveOut": lambda s, n, k: s.held(n, k) <= s.logged(s.viewed(n), k),
    "SlotOf": lambda s, n: most(s.held_slot(n), s.viewed(n)),
    "KnownAfterSilence": lambda s, n: s.forgotten(n),
    "KnownAfterRefusal": lambda s, n: s.forgotten(n),
    "ReadsOn": lambda s: s.read_slot > s.view,
    "ToRead": lambda s, r: s.is_written(r),
}


ACTIONS: Formulas = {
    "Ask": lambda s, n, k, i: Step(
        i >= 1, {"waiting": put(s.waiting, n, k, most(s.waiting(n, k), i))}
    ),
    "Read": lambda s, n: Step(
        And(Not(s.holds(n)), s.waits(n)),
        {
            "holds": added(s.holds, n),
            "held_slot": put(s.held_slot, n, s.slot(s.RegisterOf(n))),
            "held": lambda o, k: If(o == n, s.offset(s.RegisterOf(n), k), s.held(o, k)),
        },
    ),
    "Write": lambda s, n, c: Step(
        And(
            And(s.holds(n), Not(s.calls(n)), some(lambda k: s.Lacks(n, k))),
            And(F.at(c) == s.RegisterOf(n), F.old_slot(c) == s.held_slot(n)),
            F.new_slot(c) == If(some(lambda k: s.out(n, k)), s.SlotOf(n), s.held_slot(n)),
            each(lambda k: F.old(c, k) == s.held(n, k)),
            each(
                lambda k: (
                    F.new(c, k)
                    == If(s.Lacks(n, k), s.waiting(n, k), If(s.out(n, k), 0, s.held(n, k)))
                )
            ),
        ),
        {"calls": added(s.calls, n), "call": put(s.call, n, c), "late": added(s.late, c)},
    ),
    "Written": lambda s, n: Step(
        And(s.calls(n), s.late(s.call(n)), s.BaseIsCurrent(s.call(n))),
        {**s.takes_effect(s.call(n)), **as_if_written(s, n), "calls": removed(s.calls, n)},
    ),
    "Refused": lambda s, n: Step(
        And(s.calls(n), s.late(s.call(n)), Not(s.BaseIsCurrent(s.call(n)))),
        {
            **{"calls": removed(s.calls, n), "late": removed(s.late, s.call(n))},
            **s.KnownAfterRefusal(n),
        },
    ),
    "Unanswered": lambda s, n: Step(
        s.calls(n), {"calls": removed(s.calls, n), **s.KnownAfterSilence(n)}
    ),
    "Acknowledge": lambda s, n: Step(
        And(s.waits(n), s.InStore(n)),
        {"acked": lambda k: most(s.acked(k), s.waiting(n, k)), "waiting": s.none_waits(n)},
    ),
    "MoveIntoLog": lambda s, n: Step(
        And(
            s.holds(n),
            s.viewed(n) == s.length,
            some(lambda k: s.logged(s.length, k) < s.held(n, k)),
        ),
        {
            **{"length": s.length + 1, "viewed": put(s.viewed, n, s.length + 1)},
            "logged": lambda i, k: If(
                i == s.length + 1, most(s.logged(s.length, k), s.held(n, k)), s.logged(i, k)
            ),
        },
    ),
    "TakesEffectLate": lambda s, c: Step(And(s.late(c), s.BaseIsCurrent(c)), s.takes_effect(c)),
    "Refresh": lambda s, n: Step(s.viewed(n) < s.length, {"viewed": put(s.viewed, n, s.length)}),
    "Restart": lambda s, n: Step(
        YES,
        {
            **{**s.forgotten(n), "viewed": put(s.viewed, n, 0), "waiting": s.none_waits(n)},
            "calls": removed(s.calls, n),
        },
    ),
    "BeginList": lambda s: Step(
        Not(s.lists),
        {
            **{"lists": YES, "floor": s.acked, "view": s.length, "left": s.ToRead},
            **{"read_slot": IntVal(0), "read": lambda k: IntVal(0)},
        },
    ),
    "ReadRegister": lambda s, r: Step(
        And(s.lists, s.left(r)),
        {
            **{"left": removed(s.left, r), "read_slot": most(s.read_slot, s.slot(r))},
            "read": lambda k: most(s.read(k), s.offset(r, k)),
        },
    ),
    "AnswerList": lambda s: Step(
        And(s.lists, each(lambda r: Not(s.left(r)))),
        {
            **{"lists": NO, "listed_floor": s.floor},
            "listed": lambda k: most(s.logged(If(s.ReadsOn(), s.length, s.view), k), s.read(k)),
        },
    ),
}


LAWS: Formulas = {
    "TypeOK": lambda s: And(
        And(s.length >= 0, each(lambda r: within(0, s.slot(r), s.length))),
        each(lambda r, k: s.offset(r, k) >= 0),
        each(lambda n: within(0, s.viewed(n), s.length)),
        each(lambda n: Implies(s.holds(n), within(0, s.held_slot(n), s.length))),
        each(lambda n, k: s.waiting(n, k) >= 0),
        each(lambda n, k: Implies(s.holds(n), s.held(n, k) >= 0)),
    ),
    "AckedInStore": lambda s: each(lambda k: s.is_stored(k, s.acked(k))),
    "CommitsKept": lambda s: each(lambda k: s.listed(k) >= s.listed_floor(k)),
    "LeftOutIsLogged": lambda s: each(lambda r: s.slot(r) <= s.length),
    "logged": lambda s: And(
        each(lambda k: s.logged(0, k) == 0),
        each(
            lambda i, j, k: Implies(
                And(i >= 0, i <= j, j <= s.length),
                And(s.logged(i, k) >= 0, s.logged(i, k) <= s.logged(j, k)),
            )
        ),
    ),
    "held": lambda s: each(lambda n, k: Implies(s.holds(n), s.is_stored(k, s.held(n, k)))),
    "requests": lambda s: each(
        lambda c: Implies(
            s.is_asked(c),
            And(
                s.is_written(F.at(c)),
                And(F.old_slot(c) >= 0, F.old_slot(c) <= F.new_slot(c)),
                F.new_slot(c) <= s.length,
            ),
        )
    ),
    "raises": lambda s: each(
        lambda c, k: Implies(
            s.is_asked(c),
            And(
                F.new(c, k) >= 0,
                Or(F.new(c, k) >= F.old(c, k), F.old(c, k) <= s.logged(F.new_slot(c), k)),
            ),
        )
    ),
    "empty": lambda s: each(lambda r, k: Implies(Not(s.is_written(r)), s.offset(r, k) == 0)),
    # What a list has to find is in what it has read, or in a register that it has still to read.
    "list": lambda s: Implies(
        s.lists,
        And(
            And(within(0, s.view, s.length), within(0, s.read_slot, s.length)),
            each(
                lambda k: Or(
                    Or(s.floor(k) <= 0, s.read(k) >= s.floor(k)),
                    Or(s.is_logged(s.view, k), s.is_logged(s.read_slot, k)),
                    some(
                        lambda r: And(
                            s.left(r),
                            Or(s.offset(r, k) >= s.floor(k), s.is_logged(s.slot(r), k)),
                        )
                    ),
                )
            ),
        ),
    ),
}
OF_STEPS: Formulas = {
    "CommitsNeverGoBack": lambda s, t: And(
        each(lambda r, k: t.is_stored(k, s.offset(r, k))),
        each(lambda k: t.is_stored(k, s.logged(s.length, k))),
    )
}
ONE_REGISTER = Wrong(lambda s, r: r == F.register_of(F.one_node), untrue=("list",))
WRONG = {  # of specs/HeadLog/DurableCommitsBroken.tla
    ("BaseIsCurrent", "StaleBase"): Wrong(lambda s, c: YES),
    ("Lacks", "AskedFor"): Wrong(lambda s, n, k: s.waiting(n, k) > 0, untrue=("raises",)),
    ("InStore", "Always"): Wrong(lambda s, n: YES),
    ("KnownAfterSilence", "AsIfWritten"): Wrong(as_if_written, untrue=("held",)),
    ("KnownAfterRefusal", "AsIfWritten"): Wrong(as_if_written, untrue=("held",)),
    ("MayLeaveOut", "AnyMayBeLeftOut"): Wrong(lambda s, n, k: YES, untrue=("raises",)),
    ("SlotOf", "SlotAhead"): Wrong(lambda s, n: s.length + 1, untrue=("requests",)),
    ("SlotOf", "OldSlot"): Wrong(lambda s, n: s.held_slot(n), untrue=("raises", "list")),
    ("ReadsOn", "NeverReadsOn"): Wrong(lambda s: NO),
    ("ToRead", "OneRegister"): ONE_REGISTER,
    ("ToRead", "AsItCounts"): ONE_REGISTER,
    ("RegisterOf", "OneForAll"): Wrong(),
}


def structure(configuration: Configuration, state: Mapping[str, Term]) -> Structure:
    """A state that TLC has found."""
    register, node, log = state["register"], state["node"], state["log"]
    keys, first = tuple(state["acked"]), min(node)
    shared = configuration.replace.get("RegisterOf") == "OneForAll"
    totals = [{k: max((0, *(e[k] for e in log[:i]))) for k in keys} for i in range(len(log) + 1)]
    asked = {n: c for n, c in state["call"].items() if c != "None"}
    reader = state["reader"] if state["reader"] != "None" else {}
    held = {n: each["held"] for n, each in node.items() if each["held"] != "None"}
    facts = {
        **{"register_of": lambda n: first if shared else n, "one_node": first},
        **{"at": lambda c: c["at"], "old_slot": lambda c: c["old"]["slot"]},
        **{"old": lambda c, k: c["old"]["offsets"][k], "new_slot": lambda c: c["new"]["slot"]},
        "new": lambda c, k: c["new"]["offsets"][k],
    }
    parts = {name: Part(None, value) for name, value in facts.items()} | {
        "slot": Part(register, lambda r: register[r]["slot"]),
        "offset": Part(register, lambda r, k: register[r]["offsets"][k]),
        "length": Part(log, len(log)),
        "logged": Part(log, lambda i, k: totals[i][k] if 0 <= i < len(totals) else UNSET),
        "holds": Part(node, lambda n: n in held),
        "held_slot": Part(node, lambda n: _of(held.get(n), "slot")),
        "held": Part(node, lambda n, k: _of(held.get(n), "offsets", k)),
        "viewed": Part(node, lambda n: node[n]["view"]),
        "waiting": Part(node, lambda n, k: node[n]["waiting"][k]),
        "calls": Part(state["call"], lambda n: n in asked),
        "call": Part(state["call"], lambda n: asked.get(n, UNSET)),
        "late": Part(state["late"], lambda c: c in state["late"]),
        "lists": Part(state["reader"], bool(reader)),
        "floor": Part(state["reader"], lambda k: _of(reader, "floor", k)),
        "view": Part(state["reader"], _of(reader, "view")),
        "left": Part(state["reader"], lambda r: r in reader.get("left", ())),
        "read_slot": Part(state["reader"], _of(reader, "slot")),
        "read": Part(state["reader"], lambda k: _of(reader, "offsets", k)),
        "acked": Part(state["acked"], lambda k: state["acked"][k]),
        "listed_floor": Part(state["listed"], lambda k: state["listed"]["floor"][k]),
        "listed": Part(state["listed"], lambda k: state["listed"]["offsets"][k]),
    }
    calls = dict.fromkeys((*state["late"], *asked.values()))
    waiting = (offset for each in node.values() for offset in each["waiting"].values())
    top = max(len(log), *totals[-1].values(), *waiting)
    domains = {"Node": tuple(node), "Register": tuple(register), "Key": keys, "Cas": tuple(calls)}
    return Structure(domains | {"Int": tuple(range(top + 2))}, parts)


def _of(value: Term, *names: str) -> Term:
    """A field of a field; UNSET of nothing."""
    for name in names:
        if not value:
            return UNSET
        value = value[name]
    return value


MODEL = Model(
    language=LOGIC,
    facts=FACTS,
    state=STATE,
    definitions=DEFINITIONS,
    initial=lambda s: And(
        And(s.length == 0, Not(s.lists), each(lambda k: s.logged(0, k) == 0)),
        each(lambda r, k: And(s.slot(r) == 0, s.offset(r, k) == 0)),
        each(lambda n, k: And(Not(s.holds(n)), s.viewed(n) == 0, s.waiting(n, k) == 0)),
        each(lambda n: And(Not(s.calls(n)), Not(s.holds(n)), s.viewed(n) == 0)),
        each(lambda r: s.slot(r) == 0),
        each(lambda c: Not(s.late(c))),
        each(lambda k: And(s.acked(k) == 0, s.listed(k) == 0, s.listed_floor(k) == 0)),
    ),
    actions=ACTIONS,
    laws=LAWS,
    of_steps=OF_STEPS,
    wrong=WRONG,
    structure=structure,
)
