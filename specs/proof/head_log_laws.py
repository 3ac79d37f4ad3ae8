"""What HeadLog promises (specs/HeadLog/HeadLogProperties.tla), and why it holds, in any state and in any step.

The laws are the promised ones and helpers, in small letters, from which they follow again after each step.
A helper names a decision where it says what the decision is for: otherwise another law would be blamed.
"""

from functools import partial
from typing import Any

from z3 import And, If, Implies, Not, Or

from specs.proof.head_log import (
    ASIDE,
    DEFINITIONS,
    DELETED,
    DONE,
    FACTS,
    IDLE,
    LOGIC,
    STATE,
    WRITTEN,
    WRONG,
    F,
    each,
    same_id,
    same_payload,
    some,
    within,
)
from specs.proof.head_log_states import structure
from specs.proof.head_log_steps import ACTIONS, group, let_go
from specs.proof.language import Formulas, Model, Term
from specs.proof.walks import walked

AXIOMS: Formulas = {
    "counts": lambda s: each(lambda b, k: F.count(b, k) >= 0),
    "limits": lambda s: And(
        F.tail_limit >= 1, each(lambda n, h: Implies(F.full(n, h), F.base(h) < F.end(h)))
    ),
}


def initial(s: Any) -> Term:
    h = s.head
    return And(
        And(F.is_open(h), F.epoch_of(h) == 0, F.base(h) == 0, F.end(h) == 0, s.length == 0),
        And(s.claim == 0, s.cursor == 0, each(lambda k: s.total(0, k) == 0)),
        each(lambda i: And(Not(s.segment(i)), Not(s.tombstone(i)), Not(s.run(i)))),
        each(lambda i: s.starts(i) == (i == 0)),
        each(lambda n: And(s.incarnation(n) == 0, Not(s.knows(n)), s.viewed(n) == 0)),
        each(lambda n: s.phase(n) == IDLE),
        each(lambda w: And(s.last(w) == 0, Not(s.waits(w)))),
        each(lambda h, g: Not(s.inflight(h, g))),
        each(lambda n, b: Not(s.handed(n, b))),
        each(lambda a: Not(s.answer(a))),
        each(lambda b: Not(Or(s.acked(b), s.rejected(b), s.made(b)))),
        each(lambda o: s.was(o) == (o == h)),
    )


def answers(s: Any, b: Term, ack: Any) -> Term:
    """The answer for batch b names one entry of the log, the only one with its payload."""
    none = lambda i, k: F.count(s.batch_at(i), k) == 0
    first = lambda i, k: ack(b, k) == If(none(i, k), -1, F.first(s.log(i), k))
    only = lambda i, j: same_payload(s.batch_at(j), b) == (j == i)
    return some(
        lambda i: And(
            And(s.slot(i), same_id(s.batch_at(i), b)),
            each(lambda k: first(i, k)),
            each(lambda j: Implies(s.slot(j), only(i, j))),
        )
    )


def dense(s: Any, i: Term, k: Term) -> Term:
    """In slot i a key goes on with the offset that follows."""
    first = Implies(s.counts(i, k), F.first(s.log(i), k) == s.total(i, k))
    return And(first, s.total(i + 1, k) == s.total(i, k) + F.count(s.batch_at(i), k))


def is_live(s: Any, n: Term) -> Term:
    return And(s.phase(n) != IDLE, s.claimed(n) == s.claim)


# The laws of a state.
PROMISED: Formulas = {
    "TypeOK": lambda s: And(
        And(F.end(s.head) == s.length, F.epoch_of(s.head) >= 0),
        within(0, F.base(s.head), s.length + 1),
        each(lambda n: within(0, s.viewed(n), s.length + 1)),
    ),
    "OffsetsDense": lambda s: And(
        each(lambda k: s.total(0, k) == 0),
        each(lambda i, k: Implies(s.slot(i), dense(s, i, k))),
        each(
            lambda i, j: Implies(
                And(i >= 0, i < j, j < s.length), Not(same_id(s.batch_at(i), s.batch_at(j)))
            )
        ),
    ),
    "AckedExactlyOnce": lambda s: each(lambda b: Implies(s.acked(b), answers(s, b, s.ack))),
    "RejectedNeverAppended": lambda s: each(
        lambda b, i: Implies(And(s.slot(i), s.rejected(b)), Not(same_id(s.batch_at(i), b)))
    ),
    "ViewIsPrefix": lambda s: each(
        lambda n, i: Implies(
            within(0, i, s.viewed(n)), And(s.view(n, i) == s.log(i), s.sees_writer(n, i))
        ),
        at=lambda n, i: [(s.view(n, i),), (s.sees_writer(n, i),), (s.viewed(n), s.log(i))],
    ),
    "CommittedReadable": lambda s: each(
        lambda i: Implies(
            s.slot(i), And(s.is_readable(i), s.found(i) == s.log(i), s.finds_writer(i))
        )
    ),
    "CursorNeverPassesCompacted": lambda s: each(
        lambda i: Implies(
            within(0, i, s.cursor), And(Implies(s.segment(i), s.tombstone(i)), s.is_in_run(i))
        )
    ),
    "OneLiveClaim": lambda s: each(
        lambda n, m: Implies(And(is_live(s, n), is_live(s, m)), n == m)
    ),
}


def was_made(s: Any, b: Term) -> Term:
    """What is true of a batch that a writer has made."""
    w, life = F.writer(b), s.incarnation(F.node(F.writer(b)))
    now = Implies(F.born(b) == life, F.seq(b) <= s.last(w))
    old = And(F.made_in(b) <= F.epoch_of(s.head), F.born(b) <= life)
    return And(F.seq(b) >= 1, old, s.WriterOf(w, F.born(b)), now)


def is_own(s: Any, w: Term, b: Term) -> Term:
    """Batch b is the newest of its writer."""
    born = F.born(b) == s.incarnation(F.node(w))
    return And(s.made(b), And(F.writer(b) == w, F.seq(b) == s.last(w), born))


def is_entry(s: Any, i: Term) -> Term:
    """What is true of the entry in slot i, by its epoch."""
    b, epoch = s.batch_at(i), F.epoch(s.log(i))
    fenced = Or(F.is_open(s.head), epoch < F.epoch_of(s.head))
    return And(And(s.made(b), s.InEpoch(b, epoch), fenced), epoch <= F.epoch_of(s.head))


def is_request(s: Any, h: Term, g: Term) -> Term:
    """What is true of a request to put head g in place of h."""
    may = lambda b: And(s.made(b), s.fresh(F.end(h), b))
    base = Or(F.base(g) == F.base(h), let_go(s, h, g))
    return And(s.was(h), group(s, h, g, lambda k: s.total(F.end(h), k), may), base)


# Where batches come from, and what is over.
OF_BATCHES: Formulas = {
    "made": lambda s: each(lambda b: Implies(s.made(b), was_made(s, b))),
    "unique": lambda s: each(
        lambda b, c: Implies(And(s.made(b), s.made(c), same_payload(b, c)), b == c)
    ),
    "own": lambda s: each(
        lambda w: And(Implies(s.waits(w), is_own(s, w, s.own(w))), s.last(w) >= 0)
    ),
    "handed": lambda s: each(
        lambda n, b: Implies(
            s.handed(n, b), And(s.made(b), within(0, s.asked(n, b), s.length + 1))
        )
    ),
    "entries": lambda s: each(lambda i: Implies(s.slot(i), is_entry(s, i))),
    "ordered": lambda s: each(
        lambda i, j: Implies(
            And(
                And(i >= 0, i < j, j < s.length),
                F.writer(s.batch_at(i)) == F.writer(s.batch_at(j)),
            ),
            F.seq(s.batch_at(i)) < F.seq(s.batch_at(j)),
        )
    ),
    "requests": lambda s: each(lambda h, g: Implies(s.inflight(h, g), is_request(s, h, g))),
    "acked": lambda s: each(lambda b: Implies(s.acked(b), s.made(b))),
    "over": lambda s: each(
        lambda b: Implies(s.rejected(b), And(s.made(b), s.stays_over(b, s.head)))
    ),
}


def was_held(s: Any, g: Term) -> Term:
    """What is true of a head that the register held."""
    h = s.head
    bounds = And(F.base(g) >= 0, F.base(g) <= F.end(g), F.end(g) <= s.length)
    older = And(F.base(g) <= F.base(h), s.starts(F.base(g)), F.epoch_of(g) <= F.epoch_of(h))
    same = And(F.is_open(g) == F.is_open(h), Implies(F.end(g) == F.end(h), g == h))
    return And(bounds, older, Implies(F.epoch_of(g) == F.epoch_of(h), same))


# What is true of every head that the register held, and of whoever knows it.
OF_HEADS: Formulas = {
    "was": lambda s: And(s.was(s.head), each(lambda g: Implies(s.was(g), was_held(s, g)))),
    "later": lambda s: each(
        lambda g, i: Implies(
            And(s.was(g), within(F.end(g), i, s.length)),
            And(
                F.epoch(s.log(i)) >= F.epoch_of(g),
                Or(F.is_open(g), F.epoch(s.log(i)) > F.epoch_of(g)),
            ),
        )
    ),
    "tails": lambda s: each(
        lambda g, i: Implies(And(s.was(g), within(F.base(g), i, F.end(g))), F.at(g, i) == s.log(i))
    ),
    "known": lambda s: each(
        lambda n: Implies(s.knows(n), And(s.was(s.known(n)), s.viewed(n) == F.end(s.known(n))))
    ),
    "answers": lambda s: each(
        lambda a: Implies(
            s.answer(a), And(s.was(F.head_of(a)), within(0, F.start(a), F.end(F.head_of(a)) + 1))
        )
    ),
    "brought": lambda s: each(
        lambda a, i: Implies(
            And(s.answer(a), within(F.start(a), i, F.end(F.head_of(a)))),
            F.brought(a, i) == s.log(i),
        )
    ),
}


def has_owner(s: Any, i: Term, of: Term) -> Term:
    """Slot i is in the segment at slot `of`, which ends where another one begins."""
    start = And(of >= 0, of <= i, s.segment_of(of) == of, s.segment(of))
    end = And(s.sealed_to(of) <= F.base(s.head), s.starts(s.sealed_to(of)))
    return And(start, i < s.sealed_to(of), end)


def bounds(s: Any, i: Term, end: Term, most: Term) -> Term:
    return And(i >= 0, i < end, end <= most, s.starts(i))


def is_run(s: Any, i: Term) -> Term:
    """What is true of a run at slot i."""
    cursor = And(i <= s.cursor, Implies(i < s.cursor, s.run_to(i) <= s.cursor))
    slots = And(bounds(s, i, s.run_to(i), F.base(s.head)), s.starts(s.run_to(i)), cursor)
    return And(slots, s.has_writers(i) == s.RunOf())


def in_run(s: Any, i: Term, j: Term) -> Term:
    return And(s.run(i), within(i, j, s.run_to(i)))


# Segments and runs: each slot below the tail is in just one segment, each run is some whole segments.
OF_SEGMENTS: Formulas = {
    "owned": lambda s: each(
        lambda i: Implies(within(0, i, F.base(s.head)), has_owner(s, i, s.segment_of(i)))
    ),
    "starts": lambda s: And(
        And(s.starts(0), s.starts(F.base(s.head))),
        each(lambda i: Implies(s.starts(i), within(0, i, F.base(s.head) + 1))),
        each(
            lambda i: Implies(And(s.starts(i), i < F.base(s.head)), s.segment_of(i) == i),
            at=lambda i: [(s.starts(i), s.segment_of(i))],
        ),
    ),
    "owns": lambda s: each(
        lambda i, j: Implies(
            And(
                within(0, i, F.base(s.head)),
                within(s.segment_of(i), j, s.sealed_to(s.segment_of(i))),
            ),
            s.segment_of(j) == s.segment_of(i),
        )
    ),
    "segments": lambda s: each(
        lambda i: Implies(s.segment(i), bounds(s, i, s.sealed_to(i), s.length))
    ),
    "sealed": lambda s: each(
        lambda i, j: Implies(
            And(s.is_there(i), within(i, j, s.sealed_to(i))), s.sealed(i, j) == s.log(j)
        )
    ),
    "tombstones": lambda s: each(
        lambda i: Implies(s.tombstone(i), And(s.segment(i), i < F.base(s.head), s.is_in_run(i)))
    ),
    "runs": lambda s: each(lambda i: Implies(s.run(i), is_run(s, i))),
    "whole": lambda s: each(
        lambda i, j: Implies(
            in_run(s, i, j),
            And(i <= s.segment_of(j), s.sealed_to(s.segment_of(j)) <= s.run_to(i)),
        ),
        at=lambda i, j: [(s.run(i), s.segment_of(j))],
    ),
    "kept": lambda s: each(
        lambda i, j: Implies(in_run(s, i, j), And(s.kept(i, j) == s.log(j), s.run_of(j) == i)),
        at=lambda i, j: [(s.kept(i, j),), (s.run(i), s.run_of(j))],
    ),
}


def is_at_work(s: Any, n: Term) -> Term:
    """What a worker has done; the one with the newest claim works at the cursor."""
    phase, b = s.phase(n), s.job(n)
    own = And(phase > IDLE, phase <= DONE, s.claimed(n) <= s.claim)
    job = And(b >= 0, b <= s.cursor, s.starts(b))
    newest = Implies(And(s.claimed(n) == s.claim, phase != DONE), b == s.cursor)
    return And(own, job, newest, Implies(Or(phase >= WRITTEN, b < s.cursor), s.run(b)))


OF_CLAIMS: Formulas = {
    "cursor": lambda s: And(
        within(0, s.cursor, F.base(s.head) + 1), s.starts(s.cursor), s.claim >= 0
    ),
    "workers": lambda s: each(lambda n: Implies(s.phase(n) != IDLE, is_at_work(s, n))),
    "deleted": lambda s: each(
        lambda n, i: Implies(
            And(
                s.phase(n) >= DELETED, within(s.job(n), i, s.run_to(s.job(n))), s.segment(i)
            ),
            s.tombstone(i),
        )
    ),
}


def polls(s: Any) -> Term:
    """A poll from offset x finds each block that ends behind x, and blocks leave no gap between them."""
    count = lambda n, i, k: F.count(F.batch(s.view(n, i)), k)
    first = lambda n, i, k: F.first(s.view(n, i), k)
    behind = lambda n, i, k, x: And(count(n, i, k) > 0, first(n, i, k) + count(n, i, k) > x)
    begins = lambda n, i, k: Implies(count(n, i, k) > 0, first(n, i, k) == s.total(i, k))
    tiles = lambda n, i, k: And(begins(n, i, k), s.total(i + 1, k) == s.total(i, k) + count(n, i, k))
    in_view = lambda n, i: within(0, i, s.viewed(n))
    return And(
        each(
            lambda n, i, k, x: Implies(
                And(in_view(n, i), x >= 0, behind(n, i, k, x)),
                s.PollAnswer(first(n, i, k), count(n, i, k), x),
            )
        ),
        each(lambda n, i, k: Implies(in_view(n, i), tiles(n, i, k))),
    )


def end_of(s: Any, i: Term) -> Term:
    """Where a reader goes on that stands at slot i, where a segment begins."""
    return If(s.is_there(i), s.sealed_to(i), s.run_to(s.run_of(i)))


def stands_at(s: Any, i: Term) -> Term:
    return And(within(0, i, F.base(s.head)), s.starts(i), s.segment_of(i) == i)


def goes_on(s: Any, i: Term) -> Term:
    """At slot i there is the segment or its run, and it ends where another one begins, or the tail."""
    there = Or(s.is_there(i), And(s.tombstone(i), s.is_in_run(i)))
    return And(there, i < end_of(s, i), end_of(s, i) <= F.base(s.head), s.starts(end_of(s, i)))


def reads(s: Any, i: Term, j: Term) -> Term:
    """What a reader that stands at slot i finds in slot j."""
    entry = If(s.is_there(i), s.sealed(i, j), s.kept(s.run_of(i), j))
    return And(entry == s.log(j), entry == s.found(j))


FOLLOWS: Formulas = {
    "PollContiguous": polls,
    "WalkEnds": lambda s: And(
        s.starts(0), each(lambda i: Implies(stands_at(s, i), goes_on(s, i)))
    ),
    "WalkReads": lambda s: each(
        lambda i, j: Implies(And(stands_at(s, i), within(i, j, end_of(s, i))), reads(s, i, j))
    ),
}


def same_slots(i: Term, end: Term, before: Any, after: Any) -> Term:
    return each(lambda j: Implies(within(i, j, end), after(i, j) == before(i, j)))


def segment_stays(s: Any, t: Any, i: Term) -> Term:
    """The segment at slot i is as it was, or a run has its entries."""
    entries = same_slots(i, s.sealed_to(i), s.sealed, t.sealed)
    there = Implies(s.is_there(i), And(t.sealed_to(i) == s.sealed_to(i), entries))
    gone = And(t.tombstone(i), s.is_in_run(i))
    return And(t.segment(i), Or(And(t.tombstone(i) == s.tombstone(i), there), gone))


def run_stays(s: Any, t: Any, i: Term) -> Term:
    kept = same_slots(i, s.run_to(i), s.kept, t.kept)
    return And(t.run(i), t.run_to(i) == s.run_to(i), kept)


def only_grows(s: Any, t: Any) -> Term:
    """Entries are added in an open log alone; each gets the offsets that follow, and stays."""
    grew = And(F.is_open(s.head), F.is_open(t.head))
    new = lambda i, k: And(within(s.length, i, t.length), t.counts(i, k))
    return And(
        And(t.length >= s.length, Implies(t.length != s.length, grew)),
        each(lambda i: Implies(s.slot(i), t.log(i) == s.log(i))),
        each(lambda i, k: Implies(new(i, k), F.first(t.log(i), k) == t.total(i, k))),
    )


OF_STEPS: Formulas = {
    "NoAppendWhileFenced": lambda s, t: Implies(
        t.length != s.length,
        And(
            F.is_open(s.head),
            each(
                lambda i: Implies(
                    within(s.length, i, t.length), F.epoch(t.log(i)) == F.epoch_of(s.head)
                )
            ),
        ),
    ),
    "SegmentsImmutable": lambda s, t: And(
        each(lambda i: Implies(s.segment(i), segment_stays(s, t, i))),
        each(lambda i: Implies(s.run(i), run_stays(s, t, i))),
    ),
    "CursorNeverMovesBack": lambda s, t: t.cursor >= s.cursor,
    "HeadNeverReturns": lambda s, t: Or(
        Or(t.head == s.head, F.epoch_of(t.head) > F.epoch_of(s.head)),
        And(F.epoch_of(t.head) == F.epoch_of(s.head), F.end(t.head) > F.end(s.head)),
    ),
    "RefinesLog": lambda s, t: And(
        only_grows(s, t),
        each(lambda b: Implies(s.acked(b), t.acked(b))),
        each(lambda b: Implies(And(t.acked(b), Not(s.acked(b))), answers(s, b, t.ack))),
        each(
            lambda b, i: Implies(
                And(t.rejected(b), Not(s.rejected(b))),
                Not(And(s.slot(i), same_id(s.batch_at(i), b))),
            )
        ),
    ),
}
MODEL = Model(
    language=LOGIC,
    facts=FACTS,
    state=STATE,
    definitions=DEFINITIONS,
    initial=initial,
    actions=ACTIONS,
    laws={**PROMISED, **OF_BATCHES, **OF_HEADS, **OF_SEGMENTS, **OF_CLAIMS},
    of_steps=OF_STEPS,
    follows=FOLLOWS,
    axioms=AXIOMS,
    wrong=WRONG,
    reached=partial(walked, structure),
    aside=ASIDE,
    wide=frozenset({"Head"}),
    # A cas that is refused, and whose answer is lost; an answer that brings nothing.
    also={"Unknown": ("Conflict",), "Answered": ("Lost",)},
)
