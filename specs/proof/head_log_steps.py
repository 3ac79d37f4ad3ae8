"""The actions of HeadLog.tla; `s` is the state before."""

from functools import partial

from z3 import And, If, Implies, Not, Or

from specs.proof.head_log import (
    CLAIMED,
    DELETED,
    DONE,
    IDLE,
    WRITTEN,
    F,
    batch_in,
    each,
    same_id,
    some,
    within,
)
from specs.proof.language import NO, YES, Formulas, Step, Symbols, Term, added, put, removed


def accepted(s: Symbols, g: Term, o: Term) -> tuple[Term, dict[str, Term]]:
    """The store accepts head g: head o is g in the present state and epoch."""
    switch = And(F.is_open(o) == F.is_open(s.head), F.epoch_of(o) == F.epoch_of(s.head))
    slots = And(F.base(o) == F.base(g), F.end(o) == F.end(g))
    sealed = lambda i: within(F.base(s.head), i, F.base(g))
    return And(switch, slots, s.same_tail(g, o, F.base(g), F.end(g))), {
        **{"head": o, "was": added(s.was, o), "length": F.end(g)},
        "log": lambda i: If(i < s.length, s.log(i), F.at(g, i)),
        "total": lambda i, k: If(i <= s.length, s.total(i, k), F.offset(g, i, k)),
        "segment_of": lambda i: If(sealed(i), F.base(s.head), s.segment_of(i)),
        "starts": added(s.starts, F.base(g)),
    }


def longer(s: Symbols, n: Term, length: Term, entry: Term) -> dict[str, Term]:
    """The view of node n has these entries more."""
    new = lambda other, i: And(other == n, within(s.viewed(n), i, length))
    return {
        "viewed": put(s.viewed, n, length),
        "view": lambda other, i: If(new(other, i), entry(i), s.view(other, i)),
        "sees_writer": lambda other, i: Or(new(other, i), s.sees_writer(other, i)),
    }


def commit(s: Symbols, n: Term, g: Term, o: Term) -> Step:
    """The cas takes place, and those who have handed over a batch of the group are answered."""
    took, changes = accepted(s, g, o)
    asked = lambda a, b, i: And(
        And(s.is_new(s.known(n), g, i), batch_in(g, i) == b, s.handed(n, b)),
        And(F.to(a) == F.node(F.writer(b)), F.start(a) == s.asked(n, b)),
    )
    brings = lambda a, i: Implies(
        within(F.start(a), i, F.end(o)), F.brought(a, i) == changes["log"](i)
    )
    told = lambda a: And(
        F.head_of(a) == o,
        some(lambda b, i: asked(a, b, i)),
        each(lambda i: brings(a, i)),
    )
    length = s.viewed(n) + F.end(g) - F.end(s.known(n))
    own = {"known": put(s.known, n, o), "answer": lambda a: Or(s.answer(a), told(a))}
    return Step(
        And(s.may_cas(n, g), took), {**changes, **own, **longer(s, n, length, partial(F.at, g))}
    )


def late_commit(s: Symbols, h: Term, g: Term, o: Term) -> Step:
    took, changes = accepted(s, g, o)
    when = And(s.inflight(h, g), s.SameHead(h, s.head), took)
    return Step(when, {**changes, "inflight": removed(s.inflight, h, g)})


def seal(s: Symbols, n: Term) -> Step:
    h, b = s.known(n), F.base(s.known(n))
    new = lambda i: And(i == b, s.SegmentWrite(b))
    return Step(
        And(s.knows(n), F.full(n, h)),
        {
            "segment": added(s.segment, b),
            "tombstone": lambda i: And(s.tombstone(i), Not(new(i))),
            "sealed_to": lambda i: If(new(i), F.end(h), s.sealed_to(i)),
            "sealed": lambda i, j: If(new(i), F.at(h, j), s.sealed(i, j)),
        },
    )


def taken(s: Symbols, n: Term, a: Term) -> dict[str, Term]:
    """Node n takes the entries of an answer that it lacks; of a hole between them it knows nothing."""
    own, start = s.viewed(n), F.start(a)
    hole = If(start > own, start - own, 0)
    entry = lambda i: If(start <= own, F.brought(a, i), F.brought(a, i + hole))
    known = {"knows": added(s.knows, n), "known": put(s.known, n, F.head_of(a))}
    return known | longer(s, n, F.end(F.head_of(a)) - hole, entry)


def acknowledge(s: Symbols, w: Term, i: Term) -> Step:
    """Slot i of the view has the first entry with the batch's id, if there is one."""
    n, b = F.node(w), s.own(w)
    has = lambda j: And(within(0, j, s.viewed(n)), same_id(F.batch(s.view(n, j)), b))
    first = And(has(i), Not(some(lambda j: And(has(j), j < i))))
    at = lambda k: If(has(i), F.first(s.view(n, i), k), s.total(s.viewed(n), k))
    ack = lambda c, k: If(c == b, If(F.count(b, k) == 0, -1, at(k)), s.ack(c, k))
    return Step(
        And(s.waits(w), s.HasOutcome(n, b), Or(first, Not(some(has)))),
        {"acked": added(s.acked, b), "ack": ack, "waits": removed(s.waits, w)},
    )


def switched(s: Symbols, o: Term, may: Term, is_open: Term) -> Step:
    """Nothing but state and epoch changes."""
    h = s.head
    slots = And(
        F.base(o) == F.base(h), F.end(o) == F.end(h), s.same_tail(h, o, F.base(h), F.end(h))
    )
    switch = And(F.epoch_of(o) == s.NextEpoch(F.epoch_of(h)), F.is_open(o) == is_open)
    return Step(And(may, slots, switch), {"head": o, "was": added(s.was, o)})


def compact_write(s: Symbols, n: Term, j: Term) -> Step:
    b = s.job(n)
    new = lambda i: And(i == b, Not(s.run(b)))
    slot = lambda i: And(within(b, i, j), Not(s.run(b)))
    return Step(
        And(s.phase(n) == CLAIMED, Or(s.run(b), s.are_sealed(b, j))),
        {
            **{"phase": put(s.phase, n, WRITTEN), "run": added(s.run, b)},
            "run_to": lambda i: If(new(i), j, s.run_to(i)),
            "kept": lambda i, x: If(new(i), s.sealed(s.segment_of(x), x), s.kept(i, x)),
            "has_writers": lambda i: If(new(i), s.RunOf(), s.has_writers(i)),
            "run_of": lambda i: If(slot(i), b, s.run_of(i)),
        },
    )


ACTIONS: Formulas = {
    "Send": lambda s, b: Step(
        And(
            And(Not(s.waits(F.writer(b))), Not(F.named(F.writer(b)))),
            s.WriterOf(F.writer(b), s.incarnation(F.node(F.writer(b)))),
            F.seq(b) == s.last(F.writer(b)) + 1,
            F.born(b) == s.incarnation(F.node(F.writer(b))),
            F.made_in(b) <= F.epoch_of(s.head),
        ),
        {
            **{"last": put(s.last, F.writer(b), F.seq(b)), "made": added(s.made, b)},
            **{"waits": added(s.waits, F.writer(b)), "own": put(s.own, F.writer(b), b)},
        },
    ),
    # A caller hands over what it has named; it may do so again, to anybody, with other content.
    "Named": lambda s, n, b: Step(
        And(F.named(F.writer(b)), F.seq(b) >= 1, F.made_in(b) <= F.epoch_of(s.head)),
        {
            **{"made": added(s.made, b), "handed": added(s.handed, n, b)},
            "asked": put(s.asked, n, b, s.viewed(n)),
        },
    ),
    "Commit": commit,
    "Conflict": lambda s, n: Step(
        And(s.knows(n), Not(s.SameHead(s.known(n), s.head))), {"knows": removed(s.knows, n)}
    ),
    # The cas may happen, now or later; where it may not, that is `Conflict`.
    "Unknown": lambda s, n, g: Step(
        s.may_cas(n, g),
        {"inflight": added(s.inflight, s.known(n), g), "knows": removed(s.knows, n)},
    ),
    # The first half of a cas as the code makes it: its answer comes later, in `Learnt`.
    "Try": lambda s, n, g: Step(s.may_cas(n, g), {"inflight": added(s.inflight, s.known(n), g)}),
    "LateCommit": late_commit,
    "Seal": seal,
    "Refresh": lambda s, n: Step(
        YES,
        {
            "viewed": put(s.viewed, n, s.CatchUp(n)[0]),
            "view": lambda m, i: If(m == n, s.CatchUp(n)[1](i), s.view(m, i)),
            "sees_writer": lambda m, i: If(m == n, s.CatchUp(n)[2](i), s.sees_writer(m, i)),
            **{"knows": added(s.knows, n), "known": put(s.known, n, s.head)},
        },
    ),
    "HandOver": lambda s, w, n: Step(
        And(
            And(n != F.node(w), s.waits(w), Not(s.handed(n, s.own(w)))),
            Not(s.in_log(F.node(w), s.own(w))),
        ),
        {
            "handed": added(s.handed, n, s.own(w)),
            "asked": put(s.asked, n, s.own(w), s.viewed(F.node(w))),
        },
    ),
    "Answered": lambda s, n, a: Step(
        And(
            And(s.answer(a), F.to(a) == n),
            And(s.Follows(n, F.start(a)), s.viewed(n) < F.end(F.head_of(a))),
        ),
        {**taken(s, n, a), "answer": removed(s.answer, a)},
    ),
    # The second half of a cas or read as the code makes it: the head may be another one by now.
    "Learnt": lambda s, n, a: Step(
        And(s.answer(a), And(F.start(a) <= s.viewed(n), s.viewed(n) <= F.end(F.head_of(a)))),
        taken(s, n, a),
    ),
    # The head, with the log before it, is on its way to somebody, as in any answer of the store.
    "Told": lambda s, a: Step(
        And(
            F.head_of(a) == s.head,
            within(0, F.start(a), F.end(s.head) + 1),
            each(
                lambda i: Implies(within(F.start(a), i, F.end(s.head)), F.brought(a, i) == s.log(i))
            ),
        ),
        {"answer": added(s.answer, a)},
    ),
    # A message of each kind is lost. A concrete step may lose any of them.
    "Lost": lambda s, h, g, n, b, a: Step(
        YES,
        {
            **{"inflight": removed(s.inflight, h, g), "handed": removed(s.handed, n, b)},
            "answer": removed(s.answer, a),
        },
    ),
    "Acked": acknowledge,
    "Reject": lambda s, w: Step(
        And(
            s.waits(w),
            Or(
                And(s.knows(F.node(w)), s.IsOver(s.own(w), s.known(F.node(w)))),
                s.IsKeptOut(
                    s.own(w),
                    lambda i: s.view(F.node(w), i),
                    s.viewed(F.node(w)),
                    lambda k: s.total(s.viewed(F.node(w)), k),
                ),
            ),
            Not(s.in_log(F.node(w), s.own(w))),
        ),
        {"rejected": added(s.rejected, s.own(w)), "waits": removed(s.waits, w)},
    ),
    "Abandon": lambda s, w: Step(s.waits(w), {"waits": removed(s.waits, w)}),
    "Restart": lambda s, n, i: Step(
        i > s.incarnation(n),
        {
            "incarnation": put(s.incarnation, n, i),
            "last": lambda w: If(F.node(w) == n, 0, s.last(w)),
            "waits": lambda w: And(s.waits(w), F.node(w) != n),
            **{"knows": removed(s.knows, n), "viewed": put(s.viewed, n, IDLE)},
            "phase": put(s.phase, n, IDLE),
        },
    ),
    # Also where there is nothing to compact: a worker looks when it has its claim.
    "Claim": lambda s, n: Step(
        s.phase(n) == IDLE,
        {
            **{"phase": put(s.phase, n, CLAIMED), "job": put(s.job, n, s.cursor)},
            **{"claim": s.ClaimEpoch(), "claimed": put(s.claimed, n, s.ClaimEpoch())},
        },
    ),
    "CompactWrite": compact_write,
    "CompactDelete": lambda s, n: Step(
        s.phase(n) == s.ReadyToDelete(),
        {
            "tombstone": lambda i: Or(
                s.tombstone(i),
                And(within(s.job(n), i, s.DeletedUpTo(s.job(n))), s.segment(i)),
            ),
            "phase": put(s.phase, n, DELETED),
        },
    ),
    "CompactCursor": lambda s, n: Step(
        And(s.phase(n) == DELETED, s.CasClaim(n)),
        {"phase": put(s.phase, n, DONE), "cursor": s.CursorAfter(n)},
    ),
    "Release": lambda s, n: Step(
        And(s.phase(n) != IDLE, Or(s.phase(n) == DONE, s.claim != s.claimed(n))),
        {"phase": put(s.phase, n, IDLE)},
    ),
    "GiveUp": lambda s, n: Step(s.phase(n) != IDLE, {"phase": put(s.phase, n, IDLE)}),
    "Fence": lambda s, o: switched(s, o, F.is_open(s.head), NO),
    "Unfence": lambda s, o: switched(s, o, Not(F.is_open(s.head)), YES),
    "RaiseEpoch": lambda s, o: switched(s, o, YES, F.is_open(s.head)),
}
