"""What HeadLog promises (specs/HeadLog/HeadLogProperties.tla), and why it holds, in any state and in any step.

The laws are the promised ones and helpers, in small letters, from which they follow again after each step.
A helper names a decision where it says what the decision is for: otherwise another law would be blamed.
"""

from z3 import And, If, Implies, Not, Or

from specs.head_log.small import small_model, state_of, unlike
from specs.proof import head_log
from specs.proof.head_log import (
    AXIOMS,
    DELETED,
    DONE,
    IDLE,
    WRITTEN,
    F,
    each,
    most,
    same_id,
    same_payload,
    some,
    within,
)
from specs.proof.head_log_states import structure
from specs.proof.head_log_steps import ACTIONS
from specs.proof.language import Formulas, Model, Symbols, Term

# Together they have all actions.
VISITED = "conditions", "restart", "shape", "answered-epochs", "one-claim-of-pairs"
NOTIONS: Formulas = {
    "epoch_at": lambda s, i: F.epoch(s.log(i)),
    "token_at": lambda s, i, k: F.token(s.batch_at(i), k),
    "pair": lambda s, i, j: And(i >= 0, i < j, j < s.length),
    # The answer for batch b names one entry of the log, the only one with its payload.
    "answers": lambda s, b, ack: some(
        lambda i: And(
            And(s.slot(i), same_id(s.batch_at(i), b)),
            each(
                lambda k: ack(b, k) == If(F.count(s.batch_at(i), k) == 0, -1, F.first(s.log(i), k))
            ),
            each(lambda j: Implies(s.slot(j), same_payload(s.batch_at(j), b) == (j == i))),
        )
    ),
    "is_live": lambda s, n: And(s.phase(n) != IDLE, s.claimed(n) == s.claim),
    "bounds": lambda s, i, end, most: And(i >= 0, i < end, end <= most, s.starts(i)),
    "in_run": lambda s, i, j: And(s.run(i), within(i, j, s.run_to(i))),
    "in_view": lambda s, n, i: within(0, i, s.viewed(n)),
    "count_in": lambda s, n, i, k: F.count(F.batch(s.view(n, i)), k),
    "first_in": lambda s, n, i, k: F.first(s.view(n, i), k),
    # A reader stands at slot i, where a segment begins, and goes on where it ends, or its run.
    "stands_at": lambda s, i: And(within(0, i, F.base(s.head)), s.starts(i), s.segment_of(i) == i),
    "end_of": lambda s, i: If(s.is_there(i), s.sealed_to(i), s.run_to(s.run_of(i))),
}


def initial(s: Symbols) -> Term:
    h = s.head
    return And(
        And(F.is_open(h), F.epoch_of(h) == 0, F.base(h) == 0, F.end(h) == 0, s.length == 0),
        And(s.claim == 0, s.cursor == 0, each(lambda k: s.total(0, k) == 0)),
        each(lambda k: s.tokens(0, k) == 0),
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


LAWS: Formulas = {
    "TypeOK": lambda s: And(
        And(F.end(s.head) == s.length, F.epoch_of(s.head) >= 0),
        within(0, F.base(s.head), s.length + 1),
        each(lambda n: within(0, s.viewed(n), s.length + 1)),
    ),
    "OffsetsDense": lambda s: And(
        each(lambda k: s.total(0, k) == 0),
        each(
            lambda i, k: Implies(
                s.slot(i),
                And(
                    Implies(s.counts(i, k), F.first(s.log(i), k) == s.total(i, k)),
                    s.total(i + 1, k) == s.total(i, k) + F.count(s.batch_at(i), k),
                ),
            )
        ),
        each(lambda i, j: Implies(s.pair(i, j), Not(same_id(s.batch_at(i), s.batch_at(j))))),
    ),
    "AckedExactlyOnce": lambda s: each(lambda b: Implies(s.acked(b), s.answers(b, s.ack))),
    "RejectedNeverAppended": lambda s: each(
        lambda b, i: Implies(And(s.slot(i), s.rejected(b)), Not(same_id(s.batch_at(i), b)))
    ),
    "ViewIsPrefix": lambda s: each(
        lambda n, i: Implies(s.in_view(n, i), And(s.view(n, i) == s.log(i), s.sees_writer(n, i))),
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
    "OneLiveClaim": lambda s: each(lambda n, m: Implies(And(s.is_live(n), s.is_live(m)), n == m)),
    "ConditionKept": lambda s: each(
        lambda i, k: Implies(
            And(s.slot(i), F.expected(s.batch_at(i), k) >= 0),
            F.expected(s.batch_at(i), k) == s.total(i, k),
        )
    ),
    "TokenNeverFalls": lambda s: each(
        lambda i, k: Implies(
            And(s.slot(i), s.token_at(i, k) > 0), s.token_at(i, k) >= s.tokens(i, k)
        )
    ),
    "ClosedForEver": lambda s: each(
        lambda i, k: Implies(
            And(s.slot(i), s.tokens(i, k) == F.closed), F.count(s.batch_at(i), k) == 0
        )
    ),
    "rises": lambda s: each(
        lambda i, j, k: Implies(And(i >= 0, i <= j, j <= s.length), s.total(i, k) <= s.total(j, k)),
        at=lambda i, j, k: [(s.total(i, k), s.total(j, k))],
    ),
    "tokens": lambda s: And(
        each(lambda k: s.tokens(0, k) == 0),
        each(
            lambda i, k: Implies(
                s.slot(i), s.tokens(i + 1, k) == most(s.token_at(i, k), s.tokens(i, k))
            )
        ),
        each(lambda i, k: Implies(within(0, i, s.length + 1), s.tokens(i, k) <= F.closed)),
    ),
    "grow": lambda s: each(
        lambda i, j, k: Implies(
            And(i >= 0, i <= j, j <= s.length), s.tokens(i, k) <= s.tokens(j, k)
        ),
        at=lambda i, j, k: [(s.tokens(i, k), s.tokens(j, k))],
    ),
    # Where batches come from, and what is over.
    "made": lambda s: each(
        lambda b: Implies(
            s.made(b),
            And(
                F.seq(b) >= 1,
                F.made_in(b) <= F.epoch_of(s.head),
                Or(
                    F.named(F.writer(b)),
                    And(
                        F.born(b) <= s.incarnation(F.node(F.writer(b))),
                        s.WriterOf(F.writer(b), F.born(b)),
                        Implies(
                            F.born(b) == s.incarnation(F.node(F.writer(b))),
                            F.seq(b) <= s.last(F.writer(b)),
                        ),
                    ),
                ),
            ),
        )
    ),
    "unique": lambda s: each(
        lambda b, c: Implies(
            And(s.made(b), s.made(c), same_payload(b, c), Not(F.named(F.writer(b)))), b == c
        )
    ),
    "own": lambda s: each(
        lambda w: And(
            Implies(
                s.waits(w),
                And(
                    And(s.made(s.own(w)), F.writer(s.own(w)) == w, F.seq(s.own(w)) == s.last(w)),
                    Not(F.named(w)),
                    F.born(s.own(w)) == s.incarnation(F.node(w)),
                ),
            ),
            s.last(w) >= 0,
        )
    ),
    "handed": lambda s: each(
        lambda n, b: Implies(s.handed(n, b), And(s.made(b), within(0, s.asked(n, b), s.length + 1)))
    ),
    "entries": lambda s: each(
        lambda i: Implies(
            s.slot(i),
            And(
                And(s.made(s.batch_at(i)), s.InEpoch(s.batch_at(i), s.epoch_at(i))),
                Or(F.is_open(s.head), s.epoch_at(i) < F.epoch_of(s.head)),
                s.epoch_at(i) <= F.epoch_of(s.head),
            ),
        )
    ),
    "ordered": lambda s: each(
        lambda i, j: Implies(
            And(s.pair(i, j), F.writer(s.batch_at(i)) == F.writer(s.batch_at(j))),
            F.seq(s.batch_at(i)) < F.seq(s.batch_at(j)),
        )
    ),
    "requests": lambda s: each(
        lambda h, g: Implies(
            s.inflight(h, g),
            And(
                s.was(h),
                s.group(
                    h,
                    g,
                    F.end(h),
                    lambda b: And(s.made(b), s.fresh(F.end(h), b)),
                ),
                Or(F.base(g) == F.base(h), s.let_go(h, g)),
            ),
        )
    ),
    "acked": lambda s: each(lambda b: Implies(s.acked(b), s.made(b))),
    "over": lambda s: each(
        lambda b: Implies(
            s.rejected(b),
            And(
                And(s.made(b), Not(F.named(F.writer(b)))),
                Or(s.stays_over(b, s.head), s.stays_out(b)),
            ),
        )
    ),
    # What is true of every head that the register held, and of whoever knows it.
    "was": lambda s: And(
        s.was(s.head),
        each(
            lambda g: Implies(
                s.was(g),
                And(
                    And(F.base(g) >= 0, F.base(g) <= F.end(g), F.end(g) <= s.length),
                    And(F.base(g) <= F.base(s.head), s.starts(F.base(g))),
                    F.epoch_of(g) <= F.epoch_of(s.head),
                    Implies(
                        F.epoch_of(g) == F.epoch_of(s.head),
                        And(
                            F.is_open(g) == F.is_open(s.head),
                            Implies(F.end(g) == F.end(s.head), g == s.head),
                        ),
                    ),
                ),
            )
        ),
    ),
    "later": lambda s: each(
        lambda g, i: Implies(
            And(s.was(g), within(F.end(g), i, s.length)),
            And(
                s.epoch_at(i) >= F.epoch_of(g),
                Or(F.is_open(g), s.epoch_at(i) > F.epoch_of(g)),
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
    # Segments and runs: each slot below the tail is in just one segment, each run is some whole segments.
    "owned": lambda s: each(
        lambda i: Implies(
            within(0, i, F.base(s.head)),
            And(
                And(s.segment_of(i) >= 0, s.segment_of(i) <= i),
                And(s.segment_of(s.segment_of(i)) == s.segment_of(i), s.segment(s.segment_of(i))),
                And(i < s.sealed_to(s.segment_of(i)), s.starts(s.sealed_to(s.segment_of(i)))),
                s.sealed_to(s.segment_of(i)) <= F.base(s.head),
            ),
        )
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
        lambda i: Implies(s.segment(i), s.bounds(i, s.sealed_to(i), s.length))
    ),
    "sealed": lambda s: each(
        lambda i, j: Implies(
            And(s.is_there(i), within(i, j, s.sealed_to(i))), s.sealed(i, j) == s.log(j)
        )
    ),
    "tombstones": lambda s: each(
        lambda i: Implies(s.tombstone(i), And(s.segment(i), i < F.base(s.head), s.is_in_run(i)))
    ),
    "runs": lambda s: each(
        lambda i: Implies(
            s.run(i),
            And(
                And(s.bounds(i, s.run_to(i), F.base(s.head)), s.starts(s.run_to(i))),
                And(i <= s.cursor, Implies(i < s.cursor, s.run_to(i) <= s.cursor)),
                s.has_writers(i) == s.RunOf(),
            ),
        )
    ),
    "whole": lambda s: each(
        lambda i, j: Implies(
            s.in_run(i, j),
            And(i <= s.segment_of(j), s.sealed_to(s.segment_of(j)) <= s.run_to(i)),
        ),
        at=lambda i, j: [(s.run(i), s.segment_of(j))],
    ),
    "kept": lambda s: each(
        lambda i, j: Implies(s.in_run(i, j), And(s.kept(i, j) == s.log(j), s.run_of(j) == i)),
        at=lambda i, j: [(s.kept(i, j),), (s.run(i), s.run_of(j))],
    ),
    # What workers have done; the one with the newest claim works at the cursor.
    "cursor": lambda s: And(
        within(0, s.cursor, F.base(s.head) + 1), s.starts(s.cursor), s.claim >= 0
    ),
    "workers": lambda s: each(
        lambda n: Implies(
            s.phase(n) != IDLE,
            And(
                And(s.phase(n) > IDLE, s.phase(n) <= DONE, s.claimed(n) <= s.claim),
                And(s.job(n) >= 0, s.job(n) <= s.cursor, s.starts(s.job(n))),
                Implies(And(s.claimed(n) == s.claim, s.phase(n) != DONE), s.job(n) == s.cursor),
                Implies(Or(s.phase(n) >= WRITTEN, s.job(n) < s.cursor), s.run(s.job(n))),
            ),
        )
    ),
    "deleted": lambda s: each(
        lambda n, i: Implies(
            And(s.phase(n) >= DELETED, within(s.job(n), i, s.run_to(s.job(n))), s.segment(i)),
            s.tombstone(i),
        )
    ),
}
FOLLOWS: Formulas = {
    # A poll from offset x finds each block that ends behind x, and blocks leave no gap between them.
    "PollContiguous": lambda s: And(
        each(
            lambda n, i, k, x: Implies(
                And(
                    And(s.in_view(n, i), x >= 0, s.count_in(n, i, k) > 0),
                    s.first_in(n, i, k) + s.count_in(n, i, k) > x,
                ),
                s.PollAnswer(s.first_in(n, i, k), s.count_in(n, i, k), x),
            )
        ),
        each(
            lambda n, i, k: Implies(
                s.in_view(n, i),
                And(
                    Implies(s.count_in(n, i, k) > 0, s.first_in(n, i, k) == s.total(i, k)),
                    s.total(i + 1, k) == s.total(i, k) + s.count_in(n, i, k),
                ),
            )
        ),
    ),
    # A reader that stands where a segment begins finds it or its run, and goes on where one begins.
    "WalkEnds": lambda s: And(
        s.starts(0),
        each(
            lambda i: Implies(
                s.stands_at(i),
                And(
                    Or(s.is_there(i), And(s.tombstone(i), s.is_in_run(i))),
                    And(i < s.end_of(i), s.end_of(i) <= F.base(s.head), s.starts(s.end_of(i))),
                ),
            )
        ),
    ),
    # All between is as in the log.
    "WalkReads": lambda s: each(
        lambda i, j: Implies(
            And(s.stands_at(i), within(i, j, s.end_of(i))),
            And(
                If(s.is_there(i), s.sealed(i, j), s.kept(s.run_of(i), j)) == s.log(j),
                s.found(j) == s.log(j),
            ),
        )
    ),
}
OF_STEPS: Formulas = {
    "NoAppendWhileFenced": lambda s, t: Implies(
        t.length != s.length,
        And(
            F.is_open(s.head),
            each(
                lambda i: Implies(
                    within(s.length, i, t.length), t.epoch_at(i) == F.epoch_of(s.head)
                )
            ),
        ),
    ),
    # A segment is as it was, or a run has its entries; a run is as it was.
    "SegmentsImmutable": lambda s, t: And(
        each(
            lambda i: Implies(
                s.segment(i),
                And(
                    t.segment(i),
                    Or(t.tombstone(i) == s.tombstone(i), And(t.tombstone(i), s.is_in_run(i))),
                    Implies(t.is_there(i), t.sealed_to(i) == s.sealed_to(i)),
                ),
            )
        ),
        each(
            lambda i, j: Implies(
                And(t.is_there(i), s.segment(i), within(i, j, s.sealed_to(i))),
                t.sealed(i, j) == s.sealed(i, j),
            )
        ),
        each(lambda i: Implies(s.run(i), And(t.run(i), t.run_to(i) == s.run_to(i)))),
        each(lambda i, j: Implies(s.in_run(i, j), t.kept(i, j) == s.kept(i, j))),
    ),
    "CursorNeverMovesBack": lambda s, t: t.cursor >= s.cursor,
    "HeadNeverReturns": lambda s, t: Or(
        Or(t.head == s.head, F.epoch_of(t.head) > F.epoch_of(s.head)),
        And(F.epoch_of(t.head) == F.epoch_of(s.head), F.end(t.head) > F.end(s.head)),
    ),
    # Entries are added in an open log alone; each gets the offsets that follow, and stays. Answers are true.
    "RefinesLog": lambda s, t: And(
        t.length >= s.length,
        Implies(t.length != s.length, And(F.is_open(s.head), F.is_open(t.head))),
        each(lambda i: Implies(s.slot(i), t.log(i) == s.log(i))),
        each(
            lambda i, k: Implies(
                And(within(s.length, i, t.length), t.counts(i, k)),
                F.first(t.log(i), k) == t.total(i, k),
            )
        ),
        each(lambda b: Implies(s.acked(b), t.acked(b))),
        each(lambda b: Implies(And(t.acked(b), Not(s.acked(b))), s.answers(b, t.ack))),
        each(
            lambda b, i: Implies(
                And(t.rejected(b), Not(s.rejected(b)), s.slot(i)), Not(same_id(s.batch_at(i), b))
            )
        ),
    ),
}
MODEL = Model(
    language=head_log.LOGIC,
    facts=head_log.FACTS,
    state=head_log.STATE,
    definitions={**head_log.DEFINITIONS, **NOTIONS},
    initial=initial,
    actions=ACTIONS,
    laws=LAWS,
    of_steps=OF_STEPS,
    follows=FOLLOWS,
    axioms=AXIOMS,
    wrong=head_log.WRONG,
    structure=lambda configuration, v: structure(small_model(configuration), state_of(v)),
    unlike=unlike,
    visited=VISITED,
    aside=head_log.ASIDE,
    wide=frozenset({"Head"}),
    # A cas that is refused, and whose answer is lost; an answer that brings nothing.
    also={"Unknown": ("Conflict",), "Answered": ("Lost",)},
)
