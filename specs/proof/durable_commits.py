"""DurableCommits (specs/HeadLog/DurableCommits.tla) for any number of nodes, registers and keys."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import z3
from z3 import And, If, Implies, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import Language, Model, Step, Symbols, Term, added, put, removed

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
YES, NO, ZERO = z3.BoolVal(True), z3.BoolVal(False), z3.IntVal(0)


def most(a: Term, b: Term) -> Term:
    return If(a >= b, a, b)


def is_written(r: Term) -> Term:
    """It is the register of some node."""
    return some(lambda n: F.register_of(n) == r)


def covered(s: Any, n: Term, k: Term) -> Term:
    """The offset that a node knows in its register or in the log."""
    return most(s.held(n, k), s.logged(s.viewed(n), k))


def base_is_current(s: Any, c: Term) -> Term:
    same = each(lambda k: s.offset(F.at(c), k) == F.old(c, k))
    return And(s.slot(F.at(c)) == F.old_slot(c), same)


def in_store(s: Any, n: Term) -> Term:
    return And(s.holds(n), each(lambda k: covered(s, n, k) >= s.waiting(n, k)))


def forgotten(s: Any, n: Term) -> dict[str, Any]:
    """The node must read its register again."""
    return {"holds": removed(s.holds, n)}


def as_if_written(s: Any, n: Term) -> dict[str, Any]:
    c = s.call(n)
    held = lambda other, k: If(other == n, F.new(c, k), s.held(other, k))
    own = {"holds": added(s.holds, n), "held_slot": put(s.held_slot, n, F.new_slot(c))}
    return {**own, "held": held}


# Each under the name that it has in DurableCommits.tla.
DECISIONS = {
    "RegisterOf": F.register_of,  # nothing is known of it: some may share one
    "BaseIsCurrent": base_is_current,
    "Lacks": lambda s, n, k: s.waiting(n, k) > covered(s, n, k),
    "InStore": in_store,
    "MayLeaveOut": lambda s, n, k: s.held(n, k) <= s.logged(s.viewed(n), k),
    "SlotOf": lambda s, n: most(s.held_slot(n), s.viewed(n)),
    "KnownAfterSilence": forgotten,
    "KnownAfterRefusal": forgotten,
    "ReadsOn": lambda s: s.read_slot > s.view,
    "ToRead": is_written,
}


def waits(s: Any, n: Term) -> Term:
    return some(lambda k: s.waiting(n, k) > 0)


def read_own(m: Any, s: Any, n: Term) -> Step:
    r = m.RegisterOf(n)
    held = lambda other, k: If(other == n, s.offset(r, k), s.held(other, k))
    own = {"holds": added(s.holds, n), "held_slot": put(s.held_slot, n, s.slot(r))}
    return Step(And(Not(s.holds(n)), waits(s, n)), {**own, "held": held})


def write(m: Any, s: Any, n: Term, c: Term) -> Step:
    out = lambda k: And(s.held(n, k) > 0, m.MayLeaveOut(s, n, k))
    kept = lambda k: If(out(k), 0, s.held(n, k))
    new = lambda k: If(m.Lacks(s, n, k), s.waiting(n, k), kept(k))
    slot = If(some(out), m.SlotOf(s, n), s.held_slot(n))
    return Step(
        And(
            And(s.holds(n), Not(s.calls(n)), some(lambda k: m.Lacks(s, n, k))),
            And(F.at(c) == m.RegisterOf(n), F.old_slot(c) == s.held_slot(n), F.new_slot(c) == slot),
            each(lambda k: And(F.old(c, k) == s.held(n, k), F.new(c, k) == new(k))),
        ),
        {"calls": added(s.calls, n), "call": put(s.call, n, c), "late": added(s.late, c)},
    )


def takes_effect(s: Any, c: Term) -> dict[str, Any]:
    offset = lambda r, k: If(r == F.at(c), F.new(c, k), s.offset(r, k))
    slot = put(s.slot, F.at(c), F.new_slot(c))
    return {"slot": slot, "offset": offset, "late": removed(s.late, c)}


def written(m: Any, s: Any, n: Term) -> Step:
    c = s.call(n)
    changes = {**takes_effect(s, c), **as_if_written(s, n), "calls": removed(s.calls, n)}
    return Step(And(s.calls(n), s.late(c), m.BaseIsCurrent(s, c)), changes)


def refused(m: Any, s: Any, n: Term) -> Step:
    c = s.call(n)
    changes = {"calls": removed(s.calls, n), "late": removed(s.late, c)}
    when = And(s.calls(n), s.late(c), Not(m.BaseIsCurrent(s, c)))
    return Step(when, {**changes, **m.KnownAfterRefusal(s, n)})


def none_waits(s: Any, n: Term) -> Any:
    return lambda other, k: If(other == n, 0, s.waiting(other, k))


def acknowledge(m: Any, s: Any, n: Term) -> Step:
    acked = lambda k: most(s.acked(k), s.waiting(n, k))
    return Step(And(waits(s, n), m.InStore(s, n)), {"acked": acked, "waiting": none_waits(s, n)})


def move_into_log(m: Any, s: Any, n: Term) -> Step:
    end = s.length + 1
    new = some(lambda k: s.logged(s.length, k) < s.held(n, k))
    now = lambda k: most(s.logged(s.length, k), s.held(n, k))
    logged = lambda i, k: If(i == end, now(k), s.logged(i, k))
    return Step(
        And(s.holds(n), s.viewed(n) == s.length, new),
        {"length": end, "logged": logged, "viewed": put(s.viewed, n, end)},
    )


def restart(m: Any, s: Any, n: Term) -> Step:
    changes = {**forgotten(s, n), "viewed": put(s.viewed, n, ZERO), "waiting": none_waits(s, n)}
    return Step(YES, {**changes, "calls": removed(s.calls, n)})


def begin_list(m: Any, s: Any) -> Step:
    start = {"lists": YES, "floor": s.acked, "view": s.length, "left": m.ToRead}
    return Step(Not(s.lists), {**start, "read_slot": ZERO, "read": lambda k: ZERO})


def read_register(m: Any, s: Any, r: Term) -> Step:
    read = lambda k: most(s.read(k), s.offset(r, k))
    changes = {"left": removed(s.left, r), "read_slot": most(s.read_slot, s.slot(r))}
    return Step(And(s.lists, s.left(r)), {**changes, "read": read})


def answer_list(m: Any, s: Any) -> Step:
    view = If(m.ReadsOn(s), s.length, s.view)
    listed = lambda k: most(s.logged(view, k), s.read(k))
    changes = {"lists": NO, "listed_floor": s.floor, "listed": listed}
    return Step(And(s.lists, each(lambda r: Not(s.left(r)))), changes)


ACTIONS: Mapping[str, Any] = {
    "Ask": lambda m, s, n, k, i: Step(
        i >= 1, {"waiting": put(s.waiting, n, k, most(s.waiting(n, k), i))}
    ),
    "Read": read_own,
    "Write": write,
    "Written": written,
    "Refused": refused,
    "Unanswered": lambda m, s, n: Step(
        s.calls(n), {"calls": removed(s.calls, n), **m.KnownAfterSilence(s, n)}
    ),
    "Acknowledge": acknowledge,
    "MoveIntoLog": move_into_log,
    "TakesEffectLate": lambda m, s, c: Step(
        And(s.late(c), m.BaseIsCurrent(s, c)), takes_effect(s, c)
    ),
    "Refresh": lambda m, s, n: Step(s.viewed(n) < s.length, {"viewed": put(s.viewed, n, s.length)}),
    "Restart": restart,
    "BeginList": begin_list,
    "ReadRegister": read_register,
    "AnswerList": answer_list,
}


def initial(s: Any) -> Term:
    return And(
        And(s.length == 0, Not(s.lists), each(lambda k: s.logged(0, k) == 0)),
        each(lambda r, k: And(s.slot(r) == 0, s.offset(r, k) == 0)),
        each(lambda n, k: And(Not(s.holds(n)), s.viewed(n) == 0, s.waiting(n, k) == 0)),
        each(lambda n: And(Not(s.calls(n)), Not(s.holds(n)), s.viewed(n) == 0)),
        each(lambda r: s.slot(r) == 0),
        each(lambda c: Not(s.late(c))),
        each(lambda k: And(s.acked(k) == 0, s.listed(k) == 0, s.listed_floor(k) == 0)),
    )


def is_stored(s: Any, k: Term, offset: Term) -> Term:
    """A reader of everything finds this offset, or a higher one."""
    in_register = some(lambda r: s.offset(r, k) >= offset)
    return Or(offset <= 0, s.logged(s.length, k) >= offset, in_register)


def invariant(m: Any, s: Any) -> dict[str, Term]:
    order = lambda i, j: And(i >= 0, i <= j, j <= s.length)
    grows = lambda i, j, k: And(s.logged(i, k) >= 0, s.logged(i, k) <= s.logged(j, k))
    asked = lambda c: Or(s.late(c), some(lambda n: And(s.calls(n), s.call(n) == c)))
    slots = lambda c: And(F.old_slot(c) >= 0, F.old_slot(c) <= F.new_slot(c))
    request = lambda c: And(is_written(F.at(c)), slots(c), F.new_slot(c) <= s.length)
    left_out = lambda c, k: F.old(c, k) <= s.logged(F.new_slot(c), k)
    raised = lambda c, k: And(F.new(c, k) >= 0, Or(F.new(c, k) >= F.old(c, k), left_out(c, k)))
    # What a list has to find is in what it has read, or in a register that it has still to read.
    logged = lambda k, slot: s.logged(slot, k) >= s.floor(k)
    later = lambda k, r: Or(s.offset(r, k) >= s.floor(k), logged(k, s.slot(r)))
    left = lambda k: some(lambda r: And(s.left(r), later(k, r)))
    has = lambda k: Or(s.read(k) >= s.floor(k), logged(k, s.view), logged(k, s.read_slot))
    bounds = And(within(0, s.view, s.length), within(0, s.read_slot, s.length))
    return {
        "TypeOK": And(
            And(s.length >= 0, each(lambda r: within(0, s.slot(r), s.length))),
            each(lambda r, k: s.offset(r, k) >= 0),
            each(lambda n: within(0, s.viewed(n), s.length)),
            each(lambda n: Implies(s.holds(n), within(0, s.held_slot(n), s.length))),
            each(lambda n, k: s.waiting(n, k) >= 0),
            each(lambda n, k: Implies(s.holds(n), s.held(n, k) >= 0)),
        ),
        "AckedInStore": each(lambda k: is_stored(s, k, s.acked(k))),
        "CommitsKept": each(lambda k: s.listed(k) >= s.listed_floor(k)),
        "LeftOutIsLogged": each(lambda r: s.slot(r) <= s.length),
        "logged": And(
            each(lambda k: s.logged(0, k) == 0),
            each(lambda i, j, k: Implies(order(i, j), grows(i, j, k))),
        ),
        "held": each(lambda n, k: Implies(s.holds(n), is_stored(s, k, s.held(n, k)))),
        "requests": each(lambda c: Implies(asked(c), request(c))),
        "raises": each(lambda c, k: Implies(asked(c), raised(c, k))),
        "empty": each(lambda r, k: Implies(Not(is_written(r)), s.offset(r, k) == 0)),
        "list": Implies(s.lists, And(bounds, each(lambda k: Or(s.floor(k) <= 0, has(k), left(k))))),
    }


def within(low: Term, i: Term, high: Term) -> Term:
    return And(low <= i, i <= high)


def of_steps(s: Any, t: Any) -> dict[str, Term]:
    kept = each(lambda r, k: is_stored(t, k, s.offset(r, k)))
    logged = each(lambda k: is_stored(t, k, s.logged(s.length, k)))
    return {"CommitsNeverGoBack": And(kept, logged)}


# By what the manifest names: the operator, and what stands in for it; then the helpers that this makes false.
INSTEAD: Mapping[tuple[str, str], Any] = {
    ("BaseIsCurrent", "StaleBase"): lambda s, c: YES,
    ("Lacks", "AskedFor"): lambda s, n, k: s.waiting(n, k) > 0,
    ("InStore", "Always"): lambda s, n: YES,
    ("KnownAfterSilence", "AsIfWritten"): as_if_written,
    ("KnownAfterRefusal", "AsIfWritten"): as_if_written,
    ("MayLeaveOut", "AnyMayBeLeftOut"): lambda s, n, k: YES,
    ("SlotOf", "SlotAhead"): lambda s, n: s.length + 1,
    ("SlotOf", "OldSlot"): lambda s, n: s.held_slot(n),
    ("ReadsOn", "NeverReadsOn"): lambda s: NO,
    ("ToRead", "OneRegister"): lambda r: r == F.register_of(F.one_node),
    ("ToRead", "AsItCounts"): lambda r: r == F.register_of(F.one_node),
    ("RegisterOf", "OneForAll"): None,
}
UNTRUE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("Lacks", "AskedFor"): ("raises",),
    ("KnownAfterSilence", "AsIfWritten"): ("held",),
    ("KnownAfterRefusal", "AsIfWritten"): ("held",),
    ("MayLeaveOut", "AnyMayBeLeftOut"): ("raises",),
    ("SlotOf", "SlotAhead"): ("requests",),
    ("SlotOf", "OldSlot"): ("raises", "list"),
    ("ToRead", "OneRegister"): ("list",),
    ("ToRead", "AsItCounts"): ("list",),
}


def model(m: Any) -> Model:
    """DurableCommits with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms={},
        initial=initial,
        actions={name: partial(action, m) for name, action in ACTIONS.items()},
        invariant=partial(invariant, m),
        of_steps=of_steps,
    )


def structure(configuration: Configuration, state: Mapping[str, Any]) -> Structure:
    """A state that TLC has found."""
    register, node, log = state["register"], state["node"], state["log"]
    keys, first = tuple(state["acked"]), min(node)
    shared = configuration.replace.get("RegisterOf") == "OneForAll"
    totals = [dict.fromkeys(keys, 0)]
    for entry in log:
        totals.append({k: max(totals[-1][k], entry[k]) for k in keys})
    asked = {n: c for n, c in state["call"].items() if c != "None"}
    reader = state["reader"] if state["reader"] != "None" else {}
    held = {n: each["held"] for n, each in node.items() if each["held"] != "None"}
    parts = {
        **{
            "register_of": Part(None, lambda n: first if shared else n),
            "one_node": Part(None, first),
        },
        **{"at": Part(None, lambda c: c["at"])},
        "old_slot": Part(None, lambda c: c["old"]["slot"]),
        "old": Part(None, lambda c, k: c["old"]["offsets"][k]),
        "new_slot": Part(None, lambda c: c["new"]["slot"]),
        "new": Part(None, lambda c, k: c["new"]["offsets"][k]),
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


def _of(value: Any, *names: Any) -> Any:
    """A field of a field; UNSET of nothing."""
    for name in names:
        if not value:
            return UNSET
        value = value[name]
    return value
