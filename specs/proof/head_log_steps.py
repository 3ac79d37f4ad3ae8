"""The actions of HeadLog.tla; `m` has the decisions, `s` is the state before."""

from collections.abc import Mapping
from typing import Any

from z3 import And, If, Implies, Not, Or

from specs.proof.head_log import (
    CLAIMED,
    DELETED,
    DONE,
    IDLE,
    NO,
    WRITTEN,
    YES,
    F,
    each,
    in_log,
    same_id,
    some,
    within,
)
from specs.proof.language import Step, Term, added, put, removed


def send(m: Any, s: Any, b: Term) -> Step:
    w, n = F.writer(b), F.node(F.writer(b))
    return Step(
        And(
            Not(s.waits(w)),
            m.WriterOf(w, s.incarnation(n)),
            And(F.seq(b) == s.last(w) + 1, F.born(b) == s.incarnation(n)),
            F.made_in(b) <= F.epoch_of(s.head),
        ),
        {
            **{"last": put(s.last, w, F.seq(b)), "made": added(s.made, b)},
            **{"waits": added(s.waits, w), "own": put(s.own, w, b)},
        },
    )


def waiting(m: Any, s: Any, n: Term, b: Term) -> Term:
    """What node n may put into its next cas."""
    w = F.writer(b)
    own = And(F.node(w) == n, s.waits(w), s.own(w) == b)
    return And(Or(own, s.handed(n, b)), Not(m.IsCommitted(s, n, b)))


def same_tail(h: Term, g: Term, low: Term, high: Term) -> Term:
    return each(lambda i: Implies(within(low, i, high), F.at(g, i) == F.at(h, i)))


def group(m: Any, h: Term, g: Term, first: Any, may: Any) -> Term:
    """Head g is head h with a group of batches more, each of which is one that `may` be added.

    `first(k)` is the offset of a key before the group.
    """
    new = lambda i: within(F.end(h), i, F.end(g))
    batch = lambda i: F.batch(F.at(g, i))
    count = lambda i, k: F.count(batch(i), k)
    epoch = lambda i: And(m.InEpoch(batch(i), F.epoch_of(h)), F.epoch(F.at(g, i)) == F.epoch_of(h))
    offset = lambda i, k: F.first(F.at(g, i), k) == m.FirstOffset(i, F.offset(g, i, k))
    follows = lambda i, k: F.offset(g, i + 1, k) == F.offset(g, i, k) + count(i, k)
    of_one = lambda i, j: And(new(i), new(j), i < j, F.writer(batch(i)) == F.writer(batch(j)))
    return And(
        m.ObservedOpen(h),
        And(F.is_open(g) == F.is_open(h), F.epoch_of(g) == F.epoch_of(h)),
        And(F.end(h) < F.end(g), F.base(g) <= F.end(h)),
        same_tail(h, g, F.base(g), F.end(h)),
        each(lambda i: Implies(new(i), And(may(batch(i)), epoch(i)))),
        each(lambda k: F.offset(g, F.end(h), k) == first(k)),
        each(
            lambda i, k: Implies(new(i), And(Implies(count(i, k) > 0, offset(i, k)), follows(i, k)))
        ),
        each(lambda i, j: Implies(of_one(i, j), F.seq(batch(i)) < F.seq(batch(j)))),
    )


def let_go(m: Any, s: Any, h: Term, g: Term) -> Term:
    """Head g begins behind the segment that h let go of."""
    return And(m.IsSealed(s, h), F.base(g) == m.Freed(s, h))


def may_cas(m: Any, s: Any, n: Term, g: Term) -> Term:
    """Node n may ask for head g in place of the one that it knows."""
    h = s.known(n)
    room = If(F.full(n, h), let_go(m, s, h, g), F.base(g) == F.base(h))
    may = lambda b: waiting(m, s, n, b)
    return And(s.knows(n), room, group(m, h, g, lambda k: s.total(s.viewed(n), k), may))


def accepted(s: Any, g: Term, o: Term) -> tuple[Term, dict[str, Any]]:
    """The store accepts head g: head o is g in the present state and epoch."""
    switch = And(F.is_open(o) == F.is_open(s.head), F.epoch_of(o) == F.epoch_of(s.head))
    slots = And(F.base(o) == F.base(g), F.end(o) == F.end(g))
    sealed = lambda i: within(F.base(s.head), i, F.base(g))
    return And(switch, slots, same_tail(g, o, F.base(g), F.end(g))), {
        **{"head": o, "was": added(s.was, o), "length": F.end(g)},
        "log": lambda i: If(i < s.length, s.log(i), F.at(g, i)),
        "total": lambda i, k: If(i <= s.length, s.total(i, k), F.offset(g, i, k)),
        "segment_of": lambda i: If(sealed(i), F.base(s.head), s.segment_of(i)),
        "starts": added(s.starts, F.base(g)),
    }


def told_of(s: Any, n: Term, g: Term, o: Term, log: Any) -> Any:
    """The answers to whoever has handed over a batch of the group."""
    new = lambda b, i: And(within(F.end(s.known(n)), i, F.end(g)), F.batch(F.at(g, i)) == b)
    asked = lambda a, b: And(F.to(a) == F.node(F.writer(b)), F.start(a) == s.asked(n, b))
    brings = lambda a, i: Implies(within(F.start(a), i, F.end(o)), F.brought(a, i) == log(i))
    return lambda a: And(
        F.head_of(a) == o,
        some(lambda b, i: And(new(b, i), s.handed(n, b), asked(a, b))),
        each(lambda i: brings(a, i)),
    )


def commit_group(m: Any, s: Any, n: Term, g: Term, o: Term) -> Step:
    took, changes = accepted(s, g, o)
    own, length = s.viewed(n), s.viewed(n) + F.end(g) - F.end(s.known(n))
    new = lambda other, i: And(other == n, within(own, i, length))
    told = told_of(s, n, g, o, changes["log"])
    changes |= {
        "viewed": put(s.viewed, n, length),
        "view": lambda other, i: If(new(other, i), F.at(g, i), s.view(other, i)),
        "sees_writer": lambda other, i: Or(new(other, i), s.sees_writer(other, i)),
        "known": put(s.known, n, o),
        "answer": lambda a: Or(s.answer(a), told(a)),
    }
    return Step(And(may_cas(m, s, n, g), m.SameHead(s.known(n), s.head), took), changes)


def conflict(m: Any, s: Any, n: Term) -> Step:
    when = And(s.knows(n), Not(m.SameHead(s.known(n), s.head)))
    return Step(when, {"knows": removed(s.knows, n)})


def try_group(m: Any, s: Any, n: Term, g: Term) -> Step:
    """The first half of a cas as the code makes it: its answer comes later, in `learnt`."""
    when = And(may_cas(m, s, n, g), m.SameHead(s.known(n), s.head))
    return Step(when, {"inflight": added(s.inflight, s.known(n), g)})


def unknown_group(m: Any, s: Any, n: Term, g: Term) -> Step:
    """The cas may happen, now or later; where it may not, that is `conflict`."""
    when, becomes = try_group(m, s, n, g)
    return Step(when, {**becomes, "knows": removed(s.knows, n)})


def late_commit_of(m: Any, s: Any, h: Term, g: Term, o: Term) -> Step:
    took, changes = accepted(s, g, o)
    when = And(s.inflight(h, g), m.SameHead(h, s.head), took)
    return Step(when, {**changes, "inflight": removed(s.inflight, h, g)})


def seal(m: Any, s: Any, n: Term) -> Step:
    h, b = s.known(n), F.base(s.known(n))
    new = lambda i: And(i == b, m.SegmentWrite(s, b))
    return Step(
        And(s.knows(n), F.full(n, h)),
        {
            "segment": added(s.segment, b),
            "tombstone": lambda i: And(s.tombstone(i), Not(new(i))),
            "sealed_to": lambda i: If(new(i), F.end(h), s.sealed_to(i)),
            "sealed": lambda i, j: If(new(i), F.at(h, j), s.sealed(i, j)),
        },
    )


def refresh(m: Any, s: Any, n: Term) -> Step:
    length, entry, seen = m.CatchUp(s, n)
    changes = {
        "viewed": put(s.viewed, n, length),
        "view": lambda other, i: If(other == n, entry(i), s.view(other, i)),
        "sees_writer": lambda other, i: If(other == n, seen(i), s.sees_writer(other, i)),
    }
    return Step(YES, {**changes, "knows": added(s.knows, n), "known": put(s.known, n, s.head)})


def hand_over(m: Any, s: Any, w: Term, n: Term) -> Step:
    of, b = F.node(w), s.own(w)
    return Step(
        And(n != of, s.waits(w), Not(in_log(s, of, b)), Not(s.handed(n, b))),
        {"handed": added(s.handed, n, b), "asked": put(s.asked, n, b, s.viewed(of))},
    )


def taken(s: Any, n: Term, a: Term) -> dict[str, Any]:
    """Node n takes the entries of an answer that it lacks; of a hole between them it knows nothing."""
    own, start = s.viewed(n), F.start(a)
    hole = If(start > own, start - own, 0)
    length = F.end(F.head_of(a)) - hole
    new = lambda other, i: And(other == n, within(own, i, length))
    entry = lambda i: If(start <= own, F.brought(a, i), F.brought(a, i + hole))
    return {
        **{"knows": added(s.knows, n), "known": put(s.known, n, F.head_of(a))},
        "viewed": put(s.viewed, n, length),
        "view": lambda other, i: If(new(other, i), entry(i), s.view(other, i)),
        "sees_writer": lambda other, i: Or(new(other, i), s.sees_writer(other, i)),
    }


def answered_with(m: Any, s: Any, n: Term, a: Term) -> Step:
    """An answer that brings nothing, or would leave a hole, is dropped: that is `lost`."""
    brings = And(m.Follows(s, n, F.start(a)), s.viewed(n) < F.end(F.head_of(a)))
    changes = {**taken(s, n, a), "answer": removed(s.answer, a)}
    return Step(And(s.answer(a), F.to(a) == n, brings), changes)


def learnt(m: Any, s: Any, n: Term, a: Term) -> Step:
    """The second half of a cas or read as the code makes it: the head may be another one by now."""
    brings = And(F.start(a) <= s.viewed(n), s.viewed(n) <= F.end(F.head_of(a)))
    return Step(And(s.answer(a), brings), taken(s, n, a))


def told(m: Any, s: Any, a: Term) -> Step:
    """The head, with the log before it, is on its way to somebody, as in any answer of the store."""
    slot = lambda i: within(F.start(a), i, F.end(s.head))
    brings = each(lambda i: Implies(slot(i), F.brought(a, i) == s.log(i)))
    bounds = within(0, F.start(a), F.end(s.head) + 1)
    return Step(And(F.head_of(a) == s.head, bounds, brings), {"answer": added(s.answer, a)})


def lost(m: Any, s: Any, h: Term, g: Term, n: Term, b: Term, a: Term) -> Step:
    """A message of each kind is lost. A concrete step may lose any of them."""
    gone = {"inflight": removed(s.inflight, h, g), "handed": removed(s.handed, n, b)}
    return Step(YES, {**gone, "answer": removed(s.answer, a)})


def acknowledge(m: Any, s: Any, w: Term, i: Term) -> Step:
    """Slot i of the view has the first entry with the batch's id, if there is one."""
    n, b = F.node(w), s.own(w)
    has = lambda j: And(within(0, j, s.viewed(n)), same_id(F.batch(s.view(n, j)), b))
    first = And(has(i), Not(some(lambda j: And(has(j), j < i))))
    at = lambda k: If(has(i), F.first(s.view(n, i), k), s.total(s.viewed(n), k))
    ack = lambda c, k: If(c == b, If(F.count(b, k) == 0, -1, at(k)), s.ack(c, k))
    return Step(
        And(s.waits(w), m.HasOutcome(s, n, b), Or(first, Not(some(has)))),
        {"acked": added(s.acked, b), "ack": ack, "waits": removed(s.waits, w)},
    )


def reject(m: Any, s: Any, w: Term) -> Step:
    n, b = F.node(w), s.own(w)
    over = And(s.knows(n), m.IsOver(b, s.known(n)), Not(in_log(s, n, b)))
    changes = {"rejected": added(s.rejected, b), "waits": removed(s.waits, w)}
    return Step(And(s.waits(w), over), changes)


def switched(m: Any, s: Any, o: Term, may: Term, is_open: Term) -> Step:
    """Nothing but state and epoch changes."""
    h = s.head
    slots = And(F.base(o) == F.base(h), F.end(o) == F.end(h), same_tail(h, o, F.base(h), F.end(h)))
    switch = And(F.epoch_of(o) == m.NextEpoch(F.epoch_of(h)), F.is_open(o) == is_open)
    return Step(And(may, slots, switch), {"head": o, "was": added(s.was, o)})


def are_sealed(s: Any, i: Term, j: Term) -> Term:
    """From slot i to j there are whole segments, and none is a tombstone."""
    begins = lambda x: And(s.starts(x), Or(x == F.base(s.head), s.segment_of(x) == x))
    there = lambda x: And(s.segment(s.segment_of(x)), Not(s.tombstone(s.segment_of(x))))
    bounds = And(i >= 0, i < j, j <= F.base(s.head), begins(i), begins(j))
    return And(bounds, each(lambda x: Implies(within(i, x, j), there(x))))


def claim(m: Any, s: Any, n: Term, j: Term) -> Step:
    may = Or(s.run(s.cursor), are_sealed(s, s.cursor, j))
    changes = {"phase": put(s.phase, n, CLAIMED), "job": put(s.job, n, s.cursor)}
    own = {"claim": m.ClaimEpoch(s), "claimed": put(s.claimed, n, m.ClaimEpoch(s))}
    return Step(And(s.phase(n) == IDLE, may), {**changes, **own})


def compact_write(m: Any, s: Any, n: Term, j: Term) -> Step:
    b = s.job(n)
    new = lambda i: And(i == b, Not(s.run(b)))
    slot = lambda i: And(within(b, i, j), Not(s.run(b)))
    return Step(
        And(s.phase(n) == CLAIMED, Or(s.run(b), are_sealed(s, b, j))),
        {
            **{"phase": put(s.phase, n, WRITTEN), "run": added(s.run, b)},
            "run_to": lambda i: If(new(i), j, s.run_to(i)),
            "kept": lambda i, x: If(new(i), s.sealed(s.segment_of(x), x), s.kept(i, x)),
            "has_writers": lambda i: If(new(i), m.RunOf, s.has_writers(i)),
            "run_of": lambda i: If(slot(i), b, s.run_of(i)),
        },
    )


def compact_delete(m: Any, s: Any, n: Term) -> Step:
    gone = lambda i: And(within(s.job(n), i, m.DeletedUpTo(s, s.job(n))), s.segment(i))
    changes = {"tombstone": lambda i: Or(s.tombstone(i), gone(i))}
    return Step(s.phase(n) == m.ReadyToDelete, {**changes, "phase": put(s.phase, n, DELETED)})


def compact_cursor(m: Any, s: Any, n: Term) -> Step:
    when = And(s.phase(n) == DELETED, m.CasClaim(s, n))
    return Step(when, {"phase": put(s.phase, n, DONE), "cursor": m.CursorAfter(s, n)})


def release(m: Any, s: Any, n: Term) -> Step:
    ends = Or(s.phase(n) == DONE, s.claim != s.claimed(n))
    return Step(And(s.phase(n) != IDLE, ends), {"phase": put(s.phase, n, IDLE)})


ACTIONS: Mapping[str, Any] = {
    "Send": send,
    "Commit": commit_group,
    "Conflict": conflict,
    "Unknown": unknown_group,
    "Try": try_group,
    "LateCommit": late_commit_of,
    "Seal": seal,
    "Refresh": refresh,
    "HandOver": hand_over,
    "Answered": answered_with,
    "Learnt": learnt,
    "Told": told,
    "Lost": lost,
    "Acked": acknowledge,
    "Reject": reject,
    "Abandon": lambda m, s, w: Step(s.waits(w), {"waits": removed(s.waits, w)}),
    "Restart": lambda m, s, n, i: Step(
        i > s.incarnation(n),
        {
            "incarnation": put(s.incarnation, n, i),
            "last": lambda w: If(F.node(w) == n, 0, s.last(w)),
            "waits": lambda w: And(s.waits(w), F.node(w) != n),
            **{"knows": removed(s.knows, n), "viewed": put(s.viewed, n, IDLE)},
            "phase": put(s.phase, n, IDLE),
        },
    ),
    "Claim": claim,
    "CompactWrite": compact_write,
    "CompactDelete": compact_delete,
    "CompactCursor": compact_cursor,
    "Release": release,
    "GiveUp": lambda m, s, n: Step(s.phase(n) != IDLE, {"phase": put(s.phase, n, IDLE)}),
    "Fence": lambda m, s, o: switched(m, s, o, F.is_open(s.head), NO),
    "Unfence": lambda m, s, o: switched(m, s, o, Not(F.is_open(s.head)), YES),
    "RaiseEpoch": lambda m, s, o: switched(m, s, o, YES, F.is_open(s.head)),
}
