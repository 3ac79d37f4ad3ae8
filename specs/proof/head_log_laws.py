"""What HeadLog promises (specs/HeadLog/HeadLogProperties.tla), and why it holds, in any state and in any step.

The invariant is the promised laws and helpers, in small letters, from which they follow again after each step.
A helper names a decision where it says what the decision is for: otherwise another law would be blamed.
"""

from functools import partial
from typing import Any

from z3 import And, If, Implies, Not, Or

from specs.proof.head_log import (
    ASIDE,
    DELETED,
    DONE,
    FACTS,
    IDLE,
    LOGIC,
    STATE,
    WRITTEN,
    F,
    each,
    finds_writer,
    found,
    is_in_run,
    is_readable,
    is_there,
    same_id,
    same_payload,
    some,
    within,
)
from specs.proof.head_log_steps import ACTIONS, group, let_go
from specs.proof.language import Model, Term

Laws = dict[str, Term]
AXIOMS = {
    "counts": each(lambda b, k: F.count(b, k) >= 0),
    "limits": And(
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
    none = lambda i, k: F.count(F.batch(s.log(i)), k) == 0
    first = lambda i, k: ack(b, k) == If(none(i, k), -1, F.first(s.log(i), k))
    only = lambda i, j: same_payload(F.batch(s.log(j)), b) == (j == i)
    return some(
        lambda i: And(
            And(within(0, i, s.length), same_id(F.batch(s.log(i)), b)),
            each(lambda k: first(i, k)),
            each(lambda j: Implies(within(0, j, s.length), only(i, j))),
        )
    )


def promised(s: Any) -> Laws:
    """The laws of a state."""
    batch = lambda i: F.batch(s.log(i))
    slot = lambda i: within(0, i, s.length)
    live = lambda n: And(s.phase(n) != IDLE, s.claimed(n) == s.claim)
    first = lambda i, k: F.first(s.log(i), k) == s.total(i, k)
    grows = lambda i, k: s.total(i + 1, k) == s.total(i, k) + F.count(batch(i), k)
    dense = lambda i, k: And(Implies(F.count(batch(i), k) > 0, first(i, k)), grows(i, k))
    pair = lambda i, j: And(i >= 0, i < j, j < s.length)
    return {
        "TypeOK": And(
            And(F.end(s.head) == s.length, F.epoch_of(s.head) >= 0),
            within(0, F.base(s.head), s.length + 1),
            each(lambda n: within(0, s.viewed(n), s.length + 1)),
        ),
        "OffsetsDense": And(
            each(lambda k: s.total(0, k) == 0),
            each(lambda i, k: Implies(slot(i), dense(i, k))),
            each(lambda i, j: Implies(pair(i, j), Not(same_id(batch(i), batch(j))))),
        ),
        "AckedExactlyOnce": each(lambda b: Implies(s.acked(b), answers(s, b, s.ack))),
        "RejectedNeverAppended": each(
            lambda b, i: Implies(And(slot(i), s.rejected(b)), Not(same_id(batch(i), b)))
        ),
        "ViewIsPrefix": each(
            lambda n, i: Implies(
                within(0, i, s.viewed(n)), And(s.view(n, i) == s.log(i), s.sees_writer(n, i))
            ),
            at=lambda n, i: [(s.view(n, i),), (s.sees_writer(n, i),), (s.viewed(n), s.log(i))],
        ),
        "CommittedReadable": each(
            lambda i: Implies(
                slot(i), And(is_readable(s, i), found(s, i) == s.log(i), finds_writer(s, i))
            )
        ),
        "CursorNeverPassesCompacted": each(
            lambda i: Implies(
                within(0, i, s.cursor), And(Implies(s.segment(i), s.tombstone(i)), is_in_run(s, i))
            )
        ),
        "OneLiveClaim": each(lambda n, m: Implies(And(live(n), live(m)), n == m)),
    }


def of_batches(m: Any, s: Any) -> Laws:
    """Where batches come from, and what is over."""
    life = lambda w: s.incarnation(F.node(w))
    old = lambda b: And(F.made_in(b) <= F.epoch_of(s.head), F.born(b) <= life(F.writer(b)))
    now = lambda b: Implies(F.born(b) == life(F.writer(b)), F.seq(b) <= s.last(F.writer(b)))
    its = lambda w, b: And(F.writer(b) == w, F.seq(b) == s.last(w), F.born(b) == life(w))
    batch, epoch = (lambda i: F.batch(s.log(i))), (lambda i: F.epoch(s.log(i)))
    fenced = lambda i: Or(F.is_open(s.head), epoch(i) < F.epoch_of(s.head))
    both = lambda i, j: And(i >= 0, i < j, j < s.length, F.writer(batch(i)) == F.writer(batch(j)))
    may = lambda h: lambda b: And(s.made(b), m.fresh(s.log, F.end(h), b))
    follows = lambda h, g: group(m, h, g, lambda k: s.total(F.end(h), k), may(h))
    base = lambda h, g: Or(F.base(g) == F.base(h), let_go(m, s, h, g))
    return {
        "made": each(
            lambda b: Implies(
                s.made(b), And(F.seq(b) >= 1, old(b), m.WriterOf(F.writer(b), F.born(b)), now(b))
            )
        ),
        "unique": each(lambda b, c: Implies(And(s.made(b), s.made(c), same_payload(b, c)), b == c)),
        "own": each(
            lambda w: And(
                Implies(s.waits(w), And(s.made(s.own(w)), its(w, s.own(w)))), s.last(w) >= 0
            )
        ),
        "handed": each(
            lambda n, b: Implies(
                s.handed(n, b), And(s.made(b), within(0, s.asked(n, b), s.length + 1))
            )
        ),
        "entries": each(
            lambda i: Implies(
                within(0, i, s.length),
                And(
                    And(s.made(batch(i)), m.InEpoch(batch(i), epoch(i)), fenced(i)),
                    epoch(i) <= F.epoch_of(s.head),
                ),
            )
        ),
        "ordered": each(lambda i, j: Implies(both(i, j), F.seq(batch(i)) < F.seq(batch(j)))),
        "requests": each(
            lambda h, g: Implies(s.inflight(h, g), And(s.was(h), follows(h, g), base(h, g)))
        ),
        "acked": each(lambda b: Implies(s.acked(b), s.made(b))),
        "over": each(lambda b: Implies(s.rejected(b), And(s.made(b), m.stays_over(b, s.head)))),
    }


def of_heads(s: Any) -> Laws:
    """What is true of every head that the register held, and of whoever knows it."""
    h = s.head
    bounds = lambda g: And(F.base(g) >= 0, F.base(g) <= F.end(g), F.end(g) <= s.length)
    older = lambda g: And(
        F.base(g) <= F.base(h), s.starts(F.base(g)), F.epoch_of(g) <= F.epoch_of(h)
    )
    same = lambda g: And(
        F.is_open(g) == F.is_open(h), Implies(F.end(g) == F.end(h), g == h)
    )  # in one epoch
    behind = lambda g, i: And(s.was(g), within(F.end(g), i, s.length))
    fenced = lambda g, i: Or(F.is_open(g), F.epoch(s.log(i)) > F.epoch_of(g))
    bring = lambda a, i: And(s.answer(a), within(F.start(a), i, F.end(F.head_of(a))))
    start = lambda a: within(0, F.start(a), F.end(F.head_of(a)) + 1)
    now = lambda g: Implies(F.epoch_of(g) == F.epoch_of(h), same(g))
    return {
        "was": And(s.was(h), each(lambda g: Implies(s.was(g), And(bounds(g), older(g), now(g))))),
        "later": each(
            lambda g, i: Implies(
                behind(g, i), And(F.epoch(s.log(i)) >= F.epoch_of(g), fenced(g, i))
            )
        ),
        "tails": each(
            lambda g, i: Implies(
                And(s.was(g), within(F.base(g), i, F.end(g))), F.at(g, i) == s.log(i)
            )
        ),
        "known": each(
            lambda n: Implies(s.knows(n), And(s.was(s.known(n)), s.viewed(n) == F.end(s.known(n))))
        ),
        "answers": each(lambda a: Implies(s.answer(a), And(s.was(F.head_of(a)), start(a)))),
        "brought": each(lambda a, i: Implies(bring(a, i), F.brought(a, i) == s.log(i))),
    }


def of_segments(m: Any, s: Any) -> Laws:
    """Segments and runs: each slot below the tail is in just one segment, each run is some whole segments."""
    base, of = F.base(s.head), s.segment_of
    start = lambda i: And(of(i) >= 0, of(i) <= i, of(of(i)) == of(i), s.segment(of(i)))
    end = lambda b: And(s.sealed_to(b) <= base, s.starts(s.sealed_to(b)))
    bounds = lambda i, end, most: And(i >= 0, i < end, end <= most, s.starts(i))
    cursor = lambda i: And(i <= s.cursor, Implies(i < s.cursor, s.run_to(i) <= s.cursor))
    in_run = lambda i, j: And(s.run(i), within(i, j, s.run_to(i)))
    whole = lambda i, j: And(i <= of(j), s.sealed_to(of(j)) <= s.run_to(i))
    return {
        "owned": each(
            lambda i: Implies(within(0, i, base), And(start(i), i < s.sealed_to(of(i)), end(of(i))))
        ),
        "starts": And(
            And(s.starts(0), s.starts(base)),
            each(lambda i: Implies(s.starts(i), within(0, i, base + 1))),
            each(
                lambda i: Implies(And(s.starts(i), i < base), of(i) == i),
                at=lambda i: [(s.starts(i), of(i))],
            ),
        ),
        "owns": each(
            lambda i, j: Implies(
                And(within(0, i, base), within(of(i), j, s.sealed_to(of(i)))), of(j) == of(i)
            )
        ),
        "segments": each(lambda i: Implies(s.segment(i), bounds(i, s.sealed_to(i), s.length))),
        "sealed": each(
            lambda i, j: Implies(
                And(is_there(s, i), within(i, j, s.sealed_to(i))), s.sealed(i, j) == s.log(j)
            )
        ),
        "tombstones": each(
            lambda i: Implies(s.tombstone(i), And(s.segment(i), i < base, is_in_run(s, i)))
        ),
        "runs": each(
            lambda i: Implies(
                s.run(i),
                And(
                    And(bounds(i, s.run_to(i), base), s.starts(s.run_to(i)), cursor(i)),
                    s.has_writers(i) == m.RunOf,
                ),
            )
        ),
        "whole": each(
            lambda i, j: Implies(in_run(i, j), whole(i, j)),
            at=lambda i, j: [(s.run(i), of(j))],
        ),
        "kept": each(
            lambda i, j: Implies(in_run(i, j), And(s.kept(i, j) == s.log(j), s.run_of(j) == i)),
            at=lambda i, j: [(s.kept(i, j),), (s.run(i), s.run_of(j))],
        ),
    }


def of_claims(s: Any) -> Laws:
    """Workers: what each has done, and that the one with the newest claim works at the cursor."""
    phase, b = s.phase, s.job
    bounds = lambda n: And(phase(n) > IDLE, phase(n) <= DONE, s.claimed(n) <= s.claim)
    job = lambda n: And(b(n) >= 0, b(n) <= s.cursor, s.starts(b(n)))
    newest = lambda n: Implies(And(s.claimed(n) == s.claim, phase(n) != DONE), b(n) == s.cursor)
    wrote = lambda n: Implies(Or(phase(n) >= WRITTEN, b(n) < s.cursor), s.run(b(n)))
    deleted = lambda n, i: And(phase(n) >= DELETED, within(b(n), i, s.run_to(b(n))), s.segment(i))
    return {
        "cursor": And(within(0, s.cursor, F.base(s.head) + 1), s.starts(s.cursor), s.claim >= 0),
        "workers": each(
            lambda n: Implies(phase(n) != IDLE, And(bounds(n), job(n), newest(n), wrote(n)))
        ),
        "deleted": each(lambda n, i: Implies(deleted(n, i), s.tombstone(i))),
    }


def invariant(m: Any, s: Any) -> Laws:
    return promised(s) | of_batches(m, s) | of_heads(s) | of_segments(m, s) | of_claims(s)


def follows(m: Any, s: Any) -> Laws:
    """What is true in every state of the invariant, and needs no proof of its own steps.

    A poll from offset x finds each block that ends behind x, and blocks leave no gap between them. A reader
    that stands where a segment begins finds it or its run, and goes on where one begins; all between is as in
    the log.
    """
    count = lambda n, i, k: F.count(F.batch(s.view(n, i)), k)
    first = lambda n, i, k: F.first(s.view(n, i), k)
    behind = lambda n, i, k, x: And(count(n, i, k) > 0, first(n, i, k) + count(n, i, k) > x)
    found_by = lambda n, i, k, x: m.PollAnswer(first(n, i, k), count(n, i, k), x)
    begins = lambda n, i, k: Implies(count(n, i, k) > 0, first(n, i, k) == s.total(i, k))
    ends = lambda n, i, k: s.total(i + 1, k) == s.total(i, k) + count(n, i, k)
    tiles = lambda n, i, k: And(begins(n, i, k), ends(n, i, k))
    in_view = lambda n, i: within(0, i, s.viewed(n))
    here = lambda i: And(within(0, i, F.base(s.head)), s.starts(i), s.segment_of(i) == i)
    end = lambda i: If(is_there(s, i), s.sealed_to(i), s.run_to(s.run_of(i)))
    there = lambda i: Or(is_there(s, i), And(s.tombstone(i), is_in_run(s, i)))
    on = lambda i: And(i < end(i), end(i) <= F.base(s.head), s.starts(end(i)))
    entry = lambda i, j: If(is_there(s, i), s.sealed(i, j), s.kept(s.run_of(i), j))
    return {
        "PollContiguous": And(
            each(
                lambda n, i, k, x: Implies(
                    And(in_view(n, i), x >= 0, behind(n, i, k, x)), found_by(n, i, k, x)
                )
            ),
            each(lambda n, i, k: Implies(in_view(n, i), tiles(n, i, k))),
        ),
        "WalkEnds": And(s.starts(0), each(lambda i: Implies(here(i), And(there(i), on(i))))),
        "WalkReads": each(
            lambda i, j: Implies(
                And(here(i), within(i, j, end(i))),
                And(entry(i, j) == s.log(j), entry(i, j) == found(s, j)),
            )
        ),
    }


def of_steps(s: Any, t: Any) -> Laws:
    """What is true of every step from s to t."""
    h, g = s.head, t.head
    grew = t.length != s.length
    new = lambda i: within(s.length, i, t.length)
    same = lambda i, end, a, b: each(lambda j: Implies(within(i, j, end), b(i, j) == a(i, j)))
    entries = lambda i: same(i, s.sealed_to(i), s.sealed, t.sealed)
    there = lambda i: Implies(is_there(s, i), And(t.sealed_to(i) == s.sealed_to(i), entries(i)))
    stays = lambda i: And(t.tombstone(i) == s.tombstone(i), there(i))
    gone = lambda i: And(t.tombstone(i), is_in_run(s, i))
    run = lambda i: And(t.run(i), t.run_to(i) == s.run_to(i), same(i, s.run_to(i), s.kept, t.kept))
    counts = lambda i, k: F.count(F.batch(t.log(i)), k) > 0
    first = lambda i, k: F.first(t.log(i), k) == t.total(i, k)
    taken = lambda b, i: And(within(0, i, s.length), same_id(F.batch(s.log(i)), b))
    refused = lambda b: And(t.rejected(b), Not(s.rejected(b)))
    return {
        "NoAppendWhileFenced": Implies(
            grew,
            And(F.is_open(h), each(lambda i: Implies(new(i), F.epoch(t.log(i)) == F.epoch_of(h)))),
        ),
        "SegmentsImmutable": And(
            each(lambda i: Implies(s.segment(i), And(t.segment(i), Or(stays(i), gone(i))))),
            each(lambda i: Implies(s.run(i), run(i))),
        ),
        "CursorNeverMovesBack": t.cursor >= s.cursor,
        "HeadNeverReturns": Or(
            Or(g == h, F.epoch_of(g) > F.epoch_of(h)),
            And(F.epoch_of(g) == F.epoch_of(h), F.end(g) > F.end(h)),
        ),
        "RefinesLog": And(
            And(t.length >= s.length, Implies(grew, And(F.is_open(h), F.is_open(g)))),
            each(lambda i: Implies(within(0, i, s.length), t.log(i) == s.log(i))),
            each(lambda i, k: Implies(And(new(i), counts(i, k)), first(i, k))),
            each(lambda b: Implies(s.acked(b), t.acked(b))),
            each(lambda b: Implies(And(t.acked(b), Not(s.acked(b))), answers(s, b, t.ack))),
            each(lambda b, i: Implies(refused(b), Not(taken(b, i)))),
        ),
    }


def model(m: Any) -> Model:
    """HeadLog with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms=AXIOMS,
        initial=initial,
        actions={name: partial(action, m) for name, action in ACTIONS.items()},
        invariant=partial(invariant, m),
        of_steps=of_steps,
        follows=partial(follows, m),
        aside=ASIDE,
        wide=frozenset({"Head"}),
    )
