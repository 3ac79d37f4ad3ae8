"""DurableCommits (specs/HeadLog/DurableCommits.tla) for any number of nodes, registers and keys."""

from collections.abc import Mapping
from typing import Any

import z3
from z3 import And, BoolVal, If, Implies, Not, Or

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


def most(a: Term, b: Term) -> Term:
    return If(a >= b, a, b)


def is_written(r: Term) -> Term:
    """It is the register of some node."""
    return some(lambda n: F.register_of(n) == r)


class DurableCommits:
    """The decisions under the names of DurableCommits.tla, and the actions."""

    def base_is_current(self, s: Any, c: Term) -> Term:
        r = F.at(c)
        return And(s.slot(r) == F.old_slot(c), each(lambda k: s.offset(r, k) == F.old(c, k)))

    def in_view(self, s: Any, n: Term, k: Term) -> Term:
        return s.logged(s.viewed(n), k)

    def lacks(self, s: Any, n: Term, k: Term) -> Term:
        return s.waiting(n, k) > most(s.held(n, k), self.in_view(s, n, k))

    def in_store(self, s: Any, n: Term) -> Term:
        known = lambda k: most(s.held(n, k), self.in_view(s, n, k))
        return And(s.holds(n), each(lambda k: known(k) >= s.waiting(n, k)))

    def may_leave_out(self, s: Any, n: Term, k: Term) -> Term:
        return s.held(n, k) <= self.in_view(s, n, k)

    def slot_of(self, s: Any, n: Term) -> Term:
        return most(s.held_slot(n), s.viewed(n))

    def known_after_silence(self, s: Any, n: Term) -> dict[str, Term]:
        return {"holds": removed(s.holds, n)}

    def known_after_refusal(self, s: Any, n: Term) -> dict[str, Term]:
        return {"holds": removed(s.holds, n)}

    def reads_on(self, s: Any) -> Term:
        return s.read_slot > s.view

    def to_read(self, r: Term) -> Term:
        return is_written(r)

    # ---------------------------------------------------------------- a node

    def ask(self, s: Any, n: Term, k: Term, i: Term) -> Step:
        return Step(i >= 1, {"waiting": put(s.waiting, n, k, most(s.waiting(n, k), i))})

    def waits(self, s: Any, n: Term) -> Term:
        return some(lambda k: s.waiting(n, k) > 0)

    def read_own(self, s: Any, n: Term) -> Step:
        r = F.register_of(n)
        changes = {
            "holds": added(s.holds, n),
            "held_slot": put(s.held_slot, n, s.slot(r)),
            "held": lambda m, k: If(m == n, s.offset(r, k), s.held(m, k)),
        }
        return Step(And(Not(s.holds(n)), self.waits(s, n)), changes)

    def write(self, s: Any, n: Term, c: Term) -> Step:
        out = lambda k: And(s.held(n, k) > 0, self.may_leave_out(s, n, k))
        kept = lambda k: If(out(k), 0, s.held(n, k))
        new = lambda k: If(self.lacks(s, n, k), s.waiting(n, k), kept(k))
        slot = If(some(out), self.slot_of(s, n), s.held_slot(n))
        when = And(
            And(s.holds(n), Not(s.calls(n)), some(lambda k: self.lacks(s, n, k))),
            And(
                F.at(c) == F.register_of(n), F.old_slot(c) == s.held_slot(n), F.new_slot(c) == slot
            ),
            each(lambda k: And(F.old(c, k) == s.held(n, k), F.new(c, k) == new(k))),
        )
        changes = {"calls": added(s.calls, n), "call": put(s.call, n, c)}
        return Step(when, changes | {"late": added(s.late, c)})

    def takes_effect(self, s: Any, c: Term) -> dict[str, Term]:
        r = F.at(c)
        return {
            "slot": put(s.slot, r, F.new_slot(c)),
            "offset": lambda q, k: If(q == r, F.new(c, k), s.offset(q, k)),
            "late": removed(s.late, c),
        }

    def as_if_written(self, s: Any, n: Term) -> dict[str, Term]:
        c = s.call(n)
        return {
            "holds": added(s.holds, n),
            "held_slot": put(s.held_slot, n, F.new_slot(c)),
            "held": lambda m, k: If(m == n, F.new(c, k), s.held(m, k)),
        }

    def written(self, s: Any, n: Term) -> Step:
        c = s.call(n)
        when = And(s.calls(n), s.late(c), self.base_is_current(s, c))
        changes = self.takes_effect(s, c) | self.as_if_written(s, n)
        return Step(when, changes | {"calls": removed(s.calls, n)})

    def refused(self, s: Any, n: Term) -> Step:
        c = s.call(n)
        when = And(s.calls(n), s.late(c), Not(self.base_is_current(s, c)))
        changes = {"calls": removed(s.calls, n), "late": removed(s.late, c)}
        return Step(when, changes | self.known_after_refusal(s, n))

    def unanswered(self, s: Any, n: Term) -> Step:
        changes = {"calls": removed(s.calls, n)}
        return Step(s.calls(n), changes | self.known_after_silence(s, n))

    def takes_effect_late(self, s: Any, c: Term) -> Step:
        return Step(And(s.late(c), self.base_is_current(s, c)), self.takes_effect(s, c))

    def acknowledge(self, s: Any, n: Term) -> Step:
        changes = {
            "acked": lambda k: most(s.acked(k), s.waiting(n, k)),
            "waiting": lambda m, k: If(m == n, 0, s.waiting(m, k)),
        }
        return Step(And(self.waits(s, n), self.in_store(s, n)), changes)

    def move_into_log(self, s: Any, n: Term) -> Step:
        new = some(lambda k: s.logged(s.length, k) < s.held(n, k))
        now = lambda k: most(s.logged(s.length, k), s.held(n, k))
        return Step(
            And(s.holds(n), s.viewed(n) == s.length, new),
            {
                "length": s.length + 1,
                "logged": lambda i, k: If(i == s.length + 1, now(k), s.logged(i, k)),
                "viewed": put(s.viewed, n, s.length + 1),
            },
        )

    def refresh(self, s: Any, n: Term) -> Step:
        return Step(s.viewed(n) < s.length, {"viewed": put(s.viewed, n, s.length)})

    def restart(self, s: Any, n: Term) -> Step:
        return Step(
            BoolVal(True),
            {
                "holds": removed(s.holds, n),
                "viewed": put(s.viewed, n, z3.IntVal(0)),
                "waiting": lambda m, k: If(m == n, 0, s.waiting(m, k)),
                "calls": removed(s.calls, n),
            },
        )

    # ---------------------------------------------------------------- a list

    def begin_list(self, s: Any) -> Step:
        return Step(
            Not(s.lists),
            {
                "lists": BoolVal(True),
                "floor": s.acked,
                "view": s.length,
                "left": self.to_read,
                "read_slot": z3.IntVal(0),
                "read": lambda k: z3.IntVal(0),
            },
        )

    def read_register(self, s: Any, r: Term) -> Step:
        changes = {
            "left": removed(s.left, r),
            "read_slot": most(s.read_slot, s.slot(r)),
            "read": lambda k: most(s.read(k), s.offset(r, k)),
        }
        return Step(And(s.lists, s.left(r)), changes)

    def answer_list(self, s: Any) -> Step:
        view = If(self.reads_on(s), s.length, s.view)
        changes = {
            "lists": BoolVal(False),
            "listed_floor": s.floor,
            "listed": lambda k: most(s.logged(view, k), s.read(k)),
        }
        return Step(And(s.lists, each(lambda r: Not(s.left(r)))), changes)


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


def invariant(m: DurableCommits, s: Any) -> dict[str, Term]:
    def grows(i: Term, j: Term, k: Term) -> Term:
        ordered = And(0 <= i, i <= j, j <= s.length)
        return Implies(ordered, And(0 <= s.logged(i, k), s.logged(i, k) <= s.logged(j, k)))

    def request(c: Term) -> Term:
        return And(
            is_written(F.at(c)),
            And(0 <= F.old_slot(c), F.old_slot(c) <= F.new_slot(c), F.new_slot(c) <= s.length),
        )

    def raises(c: Term, k: Term) -> Term:
        left_out = F.old(c, k) <= s.logged(F.new_slot(c), k)
        return And(0 <= F.new(c, k), Or(F.new(c, k) >= F.old(c, k), left_out))

    def finds(k: Term) -> Term:
        """What a list has to find is in what it has read, or in a register that it has still to read."""
        floor = s.floor(k)
        later = lambda r: Or(s.offset(r, k) >= floor, s.logged(s.slot(r), k) >= floor)
        logged = Or(s.logged(s.view, k) >= floor, s.logged(s.read_slot, k) >= floor)
        return Or(floor <= 0, s.read(k) >= floor, logged, some(lambda r: And(s.left(r), later(r))))

    asked = lambda c: Or(s.late(c), some(lambda n: And(s.calls(n), s.call(n) == c)))
    bounds = And(0 <= s.view, s.view <= s.length, 0 <= s.read_slot, s.read_slot <= s.length)
    return {
        "TypeOK": And(
            s.length >= 0,
            each(lambda r: within(0, s.slot(r), s.length)),
            each(lambda r, k: s.offset(r, k) >= 0),
            each(lambda n: within(0, s.viewed(n), s.length)),
            each(lambda n: Implies(s.holds(n), within(0, s.held_slot(n), s.length))),
            each(lambda n, k: s.waiting(n, k) >= 0),
            each(lambda n, k: Implies(s.holds(n), s.held(n, k) >= 0)),
        ),
        "AckedInStore": each(lambda k: is_stored(s, k, s.acked(k))),
        "CommitsKept": each(lambda k: s.listed(k) >= s.listed_floor(k)),
        "LeftOutIsLogged": each(lambda r: s.slot(r) <= s.length),
        "logged": And(each(lambda k: s.logged(0, k) == 0), each(grows)),
        "held": each(lambda n, k: Implies(s.holds(n), is_stored(s, k, s.held(n, k)))),
        "requests": each(lambda c: Implies(asked(c), request(c))),
        "raises": each(lambda c, k: Implies(asked(c), raises(c, k))),
        "empty": each(lambda r, k: Implies(Not(is_written(r)), s.offset(r, k) == 0)),
        "list": Implies(s.lists, And(bounds, each(finds))),
    }


def within(low: Term, i: Term, high: Term) -> Term:
    return And(low <= i, i <= high)


def of_steps(s: Any, t: Any) -> dict[str, Term]:
    kept = each(lambda r, k: is_stored(t, k, s.offset(r, k)))
    logged = each(lambda k: is_stored(t, k, s.logged(s.length, k)))
    return {"CommitsNeverGoBack": And(kept, logged)}


# By what the manifest names: the operator, and what stands in for it. `untrue`: helpers that this makes false.
INSTEAD: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("BaseIsCurrent", "StaleBase"): {"base_is_current": lambda _, s, c: BoolVal(True)},
    ("Lacks", "AskedFor"): {
        "lacks": lambda _, s, n, k: s.waiting(n, k) > 0,
        "untrue": ("raises",),
    },
    ("InStore", "Always"): {"in_store": lambda _, s, n: BoolVal(True)},
    ("KnownAfterSilence", "AsIfWritten"): {
        "known_after_silence": lambda m, s, n: m.as_if_written(s, n),
        "untrue": ("held",),
    },
    ("KnownAfterRefusal", "AsIfWritten"): {
        "known_after_refusal": lambda m, s, n: m.as_if_written(s, n),
        "untrue": ("held",),
    },
    ("MayLeaveOut", "AnyMayBeLeftOut"): {
        "may_leave_out": lambda _, s, n, k: BoolVal(True),
        "untrue": ("raises",),
    },
    ("SlotOf", "SlotAhead"): {
        "slot_of": lambda _, s, n: s.length + 1,
        "untrue": ("requests",),
    },
    ("SlotOf", "OldSlot"): {
        "slot_of": lambda _, s, n: s.held_slot(n),
        "untrue": ("raises", "list"),
    },
    ("ReadsOn", "NeverReadsOn"): {"reads_on": lambda _, s: BoolVal(False)},
    ("ToRead", "OneRegister"): {
        "to_read": lambda _, r: r == F.register_of(F.one_node),
        "untrue": ("list",),
    },
    ("ToRead", "AsItCounts"): {
        "to_read": lambda _, r: r == F.register_of(F.one_node),
        "untrue": ("list",),
    },
    ("RegisterOf", "OneForAll"): {},  # any node may share any register here
}
UNSEEN: Mapping[tuple[str, str], str] = {}


def model(m: DurableCommits) -> Model:
    """DurableCommits with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms={},
        initial=initial,
        actions={
            **{"Ask": m.ask, "Read": m.read_own, "Write": m.write, "Written": m.written},
            **{"Refused": m.refused, "Unanswered": m.unanswered, "Acknowledge": m.acknowledge},
            **{"TakesEffectLate": m.takes_effect_late, "MoveIntoLog": m.move_into_log},
            **{"Refresh": m.refresh, "Restart": m.restart, "BeginList": m.begin_list},
            **{"ReadRegister": m.read_register, "AnswerList": m.answer_list},
        },
        invariant=lambda s: invariant(m, s),
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
    part = Part
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
