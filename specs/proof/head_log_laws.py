"""What HeadLog promises (specs/HeadLog/HeadLogProperties.tla), and why it holds, in any state and in any step.

The invariant is the promised laws and helpers, in small letters, from which they follow again after each step.
A helper names a decision where it says what the decision is for: otherwise another law would be blamed.
"""

from collections.abc import Callable
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
    HeadLog,
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
from specs.proof.language import Model, Step, Term

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
        each(lambda n: And(s.incarnation(n) == 0, Not(s.knows(n)), s.viewed(n) == 0)),
        each(lambda n: s.phase(n) == IDLE),
        each(lambda i: s.starts(i) == (i == 0)),
        each(lambda w: And(s.last(w) == 0, Not(s.waits(w)))),
        each(lambda h, g: Not(s.inflight(h, g))),
        each(lambda n, b: Not(s.handed(n, b))),
        each(lambda a: Not(s.answer(a))),
        each(lambda b: Not(Or(s.acked(b), s.rejected(b), s.made(b)))),
        each(lambda o: s.was(o) == (o == h)),
    )


def answers(s: Any, b: Term, ack: Any) -> Term:
    """The answer for batch b names one entry of the log, the only one with its payload."""

    def first(e: Term, k: Term) -> Term:
        return ack(b, k) == If(F.count(F.batch(e), k) == 0, -1, F.first(e, k))

    def names(i: Term) -> Term:
        same = And(same_id(F.batch(s.log(i)), b), each(lambda k: first(s.log(i), k)))
        only = lambda j: same_payload(F.batch(s.log(j)), b) == (j == i)
        alone = each(lambda j: Implies(within(0, j, s.length), only(j)))
        return And(within(0, i, s.length), same, alone)

    return some(names)


def slots(s: Any, body: Any) -> Term:
    """It is so of every slot of the log."""
    return each(lambda i: Implies(within(0, i, s.length), body(i)))


def promised(m: HeadLog, s: Any) -> Laws:
    """The laws of a state."""
    h = s.head

    def dense(i: Term, k: Term) -> Term:
        e = s.log(i)
        count = F.count(F.batch(e), k)
        first = Implies(count > 0, F.first(e, k) == s.total(i, k))
        return Implies(
            within(0, i, s.length), And(first, s.total(i + 1, k) == s.total(i, k) + count)
        )

    def apart(i: Term, j: Term) -> Term:
        return Implies(
            And(0 <= i, i < j, j < s.length), Not(same_id(F.batch(s.log(i)), F.batch(s.log(j))))
        )

    def prefix(n: Term, i: Term) -> Term:
        same = And(s.view(n, i) == s.log(i), s.sees_writer(n, i))
        return Implies(within(0, i, s.viewed(n)), same)

    def one_run(i: Term) -> Term:
        compacted = And(Implies(s.segment(i), s.tombstone(i)), is_in_run(s, i))
        return Implies(within(0, i, s.cursor), compacted)

    def live(n: Term) -> Term:
        return And(s.phase(n) != IDLE, s.claimed(n) == s.claim)

    def refused(b: Term, i: Term) -> Term:
        in_it = And(within(0, i, s.length), s.rejected(b))
        return Implies(in_it, Not(same_id(F.batch(s.log(i)), b)))

    return {
        "TypeOK": And(
            F.end(h) == s.length,
            within(0, F.base(h), F.end(h) + 1),
            F.epoch_of(h) >= 0,
            each(lambda n: within(0, s.viewed(n), s.length + 1)),
        ),
        "OffsetsDense": And(
            each(lambda k: s.total(0, k) == 0),
            each(dense),
            each(apart),
        ),
        "AckedExactlyOnce": each(lambda b: Implies(s.acked(b), answers(s, b, s.ack))),
        "RejectedNeverAppended": each(refused),
        "ViewIsPrefix": each(
            prefix,
            at=lambda n, i: [(s.view(n, i),), (s.sees_writer(n, i),), (s.viewed(n), s.log(i))],
        ),
        "CommittedReadable": slots(
            s, lambda i: And(is_readable(s, i), found(s, i) == s.log(i), finds_writer(s, i))
        ),
        "CursorNeverPassesCompacted": each(one_run),
        "OneLiveClaim": each(lambda n, m: Implies(And(live(n), live(m)), n == m)),
    }


def of_batches(m: HeadLog, s: Any) -> Laws:
    """Where batches come from, and what is over."""
    h = s.head

    def made(b: Term) -> Term:
        n = F.node(F.writer(b))
        now = F.born(b) == s.incarnation(n)
        return And(
            And(F.seq(b) >= 1, F.made_in(b) <= F.epoch_of(h), F.born(b) <= s.incarnation(n)),
            m.writer_of(F.writer(b), F.born(b)),
            Implies(now, F.seq(b) <= s.last(F.writer(b))),
        )

    def own(w: Term) -> Term:
        b = s.own(w)
        its = And(F.writer(b) == w, F.seq(b) == s.last(w), F.born(b) == s.incarnation(F.node(w)))
        return Implies(s.waits(w), And(s.made(b), its))

    def entry(i: Term) -> Term:
        e = s.log(i)
        return And(
            s.made(F.batch(e)),
            m.in_epoch(F.batch(e), F.epoch(e)),
            F.epoch(e) <= F.epoch_of(h),
            Implies(Not(F.is_open(h)), F.epoch(e) < F.epoch_of(h)),
        )

    def ordered(i: Term, j: Term) -> Term:
        b, c = F.batch(s.log(i)), F.batch(s.log(j))
        both = And(0 <= i, i < j, j < s.length, F.writer(b) == F.writer(c))
        return Implies(both, F.seq(b) < F.seq(c))

    def request(h: Term, g: Term) -> Term:
        may = lambda b: And(s.made(b), m.fresh(s.log, F.end(h), b))
        its = m.group(h, g, lambda k: s.total(F.end(h), k), may)
        return Implies(s.inflight(h, g), And(s.was(h), its, m.head_after(s, h, g)))

    def payload(b: Term, c: Term) -> Term:
        return Implies(And(s.made(b), s.made(c), same_payload(b, c)), b == c)

    def handed(n: Term, b: Term) -> Term:
        asked = within(0, s.asked(n, b), s.length + 1)
        return Implies(s.handed(n, b), And(s.made(b), asked))

    return {
        "made": each(lambda b: Implies(s.made(b), made(b))),
        "unique": each(payload),
        "own": each(lambda w: And(own(w), s.last(w) >= 0)),
        "handed": each(handed),
        "entries": slots(s, entry),
        "ordered": each(ordered),
        "requests": each(request),
        "acked": each(lambda b: Implies(s.acked(b), s.made(b))),
        "over": each(lambda b: Implies(s.rejected(b), And(s.made(b), m.stays_over(b, s.head)))),
    }


def of_heads(m: HeadLog, s: Any) -> Laws:
    """What is true of every head that the register held, and of whoever knows it."""
    h = s.head

    def earlier(g: Term) -> Term:
        now = F.epoch_of(g) == F.epoch_of(h)
        return And(
            And(0 <= F.base(g), F.base(g) <= F.end(g), F.end(g) <= s.length),
            And(F.base(g) <= F.base(h), s.starts(F.base(g)), F.epoch_of(g) <= F.epoch_of(h)),
            Implies(now, F.is_open(g) == F.is_open(h)),
            Implies(And(now, F.end(g) == F.end(h)), g == h),
        )

    def later(g: Term, i: Term) -> Term:
        e = F.epoch(s.log(i))
        behind = And(s.was(g), within(F.end(g), i, s.length))
        return Implies(
            behind, And(e >= F.epoch_of(g), Implies(Not(F.is_open(g)), e > F.epoch_of(g)))
        )

    def tail(g: Term, i: Term) -> Term:
        return Implies(And(s.was(g), within(F.base(g), i, F.end(g))), F.at(g, i) == s.log(i))

    def known(n: Term) -> Term:
        return And(s.was(s.known(n)), s.viewed(n) == F.end(s.known(n)))

    def answer(a: Term) -> Term:
        g = F.head_of(a)
        return And(s.was(g), 0 <= F.start(a), F.start(a) <= F.end(g))

    def brought(a: Term, i: Term) -> Term:
        has = And(s.answer(a), within(F.start(a), i, F.end(F.head_of(a))))
        return Implies(has, F.brought(a, i) == s.log(i))

    return {
        "was": And(s.was(h), each(lambda g: Implies(s.was(g), earlier(g)))),
        "later": each(later),
        "tails": each(tail),
        "known": each(lambda n: Implies(s.knows(n), known(n))),
        "answers": each(lambda a: Implies(s.answer(a), answer(a))),
        "brought": each(brought),
    }


def of_segments(m: HeadLog, s: Any) -> Laws:
    """Segments and runs: each slot below the tail is in just one segment, each run is some whole segments."""
    base = F.base(s.head)

    def owned(i: Term) -> Term:
        b = s.segment_of(i)
        ends = And(i < s.sealed_to(b), s.sealed_to(b) <= base, s.starts(s.sealed_to(b)))
        return Implies(
            within(0, i, base), And(0 <= b, b <= i, s.segment_of(b) == b, s.segment(b), ends)
        )

    def first(i: Term) -> Term:
        return Implies(And(s.starts(i), i < base), s.segment_of(i) == i)

    def owns(i: Term, j: Term) -> Term:
        b = s.segment_of(i)
        return Implies(And(within(0, i, base), within(b, j, s.sealed_to(b))), s.segment_of(j) == b)

    def segment(i: Term) -> Term:
        bounds = And(0 <= i, i < s.sealed_to(i), s.sealed_to(i) <= s.length)
        return Implies(s.segment(i), And(bounds, s.starts(i)))

    def sealed(i: Term, j: Term) -> Term:
        has = And(is_there(s, i), within(i, j, s.sealed_to(i)))
        return Implies(has, s.sealed(i, j) == s.log(j))

    def gone(i: Term) -> Term:
        return Implies(s.tombstone(i), And(s.segment(i), i < base, is_in_run(s, i)))

    def run(i: Term) -> Term:
        end = s.run_to(i)
        return And(
            And(0 <= i, i < end, end <= base, s.starts(i), s.starts(end)),
            And(i <= s.cursor, Implies(i < s.cursor, end <= s.cursor)),
            s.has_writers(i) == m.keeps_writers,
        )

    def whole(i: Term, j: Term) -> Term:
        b = s.segment_of(j)
        inside = And(s.run(i), within(i, j, s.run_to(i)))
        return Implies(inside, And(i <= b, s.sealed_to(b) <= s.run_to(i)))

    def kept(i: Term, j: Term) -> Term:
        has = And(s.run(i), within(i, j, s.run_to(i)))
        return Implies(has, And(s.kept(i, j) == s.log(j), s.run_of(j) == i))

    return {
        "owned": each(owned),
        "starts": And(
            And(s.starts(0), s.starts(base)),
            each(lambda i: Implies(s.starts(i), And(0 <= i, i <= base))),
            each(first, at=lambda i: [(s.starts(i), s.segment_of(i))]),
        ),
        "owns": each(owns),
        "segments": each(segment),
        "sealed": each(sealed),
        "tombstones": each(gone),
        "runs": each(lambda i: Implies(s.run(i), run(i))),
        "whole": each(whole, at=lambda i, j: [(s.run(i), s.segment_of(j))]),
        "kept": each(kept, at=lambda i, j: [(s.kept(i, j),), (s.run(i), s.run_of(j))]),
    }


def of_claims(m: HeadLog, s: Any) -> Laws:
    """Workers: what each has done, and that the one with the newest claim works at the cursor."""

    def worker(n: Term) -> Term:
        phase, b = s.phase(n), s.job(n)
        newest = And(s.claimed(n) == s.claim, phase != DONE)
        return And(
            And(IDLE < phase, phase <= DONE, s.claimed(n) <= s.claim),
            And(0 <= b, b <= s.cursor, s.starts(b)),
            Implies(newest, b == s.cursor),
            Implies(Or(phase >= WRITTEN, b < s.cursor), s.run(b)),
        )

    def deleted(n: Term, i: Term) -> Term:
        b = s.job(n)
        has = And(s.phase(n) >= DELETED, within(b, i, s.run_to(b)), s.segment(i))
        return Implies(has, s.tombstone(i))

    bounds = And(0 <= s.cursor, s.cursor <= F.base(s.head), s.starts(s.cursor))
    return {
        "cursor": And(bounds, s.claim >= 0),
        "workers": each(lambda n: Implies(s.phase(n) != IDLE, worker(n))),
        "deleted": each(deleted),
    }


def invariant(m: HeadLog, s: Any) -> Laws:
    return promised(m, s) | of_batches(m, s) | of_heads(m, s) | of_segments(m, s) | of_claims(m, s)


def follows(m: HeadLog, s: Any) -> Laws:
    """What is true in every state of the invariant, and needs no proof of its own steps."""
    base = F.base(s.head)

    def poll(n: Term, i: Term, k: Term, x: Term) -> Term:
        """A poll from offset x finds each block that ends behind x, and the next one adjoins it."""
        e, later = s.view(n, i), s.view(n, i + 1)
        first, count = F.first(e, k), F.count(F.batch(e), k)
        has = And(0 <= x, within(0, i, s.viewed(n)), count > 0)
        behind = And(i + 1 < s.viewed(n), F.count(F.batch(later), k) > 0)
        return And(
            Implies(And(has, first + count > x), m.look_up(first, count, x)),
            Implies(And(has, behind), F.first(later, k) == first + count),
        )

    def walk(i: Term) -> Term:
        """A reader that stands where a segment begins finds it or its run, and goes on where one begins."""
        run = s.run_of(i)
        end = If(is_there(s, i), s.sealed_to(i), s.run_to(run))
        there = Or(is_there(s, i), And(s.tombstone(i), is_in_run(s, i)))
        return Implies(
            And(within(0, i, base), s.starts(i), s.segment_of(i) == i),
            And(there, i < end, end <= base, s.starts(end)),
        )

    def reads(i: Term, j: Term) -> Term:
        """What it finds there, up to the place where it goes on, is what stands in the log."""
        run = s.run_of(i)
        end = If(is_there(s, i), s.sealed_to(i), s.run_to(run))
        entry = If(is_there(s, i), s.sealed(i, j), s.kept(run, j))
        here = And(within(0, i, base), s.starts(i), within(i, j, end))
        return Implies(here, And(entry == s.log(j), entry == found(s, j)))

    return {
        "PollContiguous": each(poll),
        "WalkEnds": And(each(walk), s.starts(0)),
        "WalkReads": each(reads),
    }


def of_steps(s: Any, t: Any) -> Laws:
    """What is true of every step from s to t."""
    h, g = s.head, t.head
    grew = t.length != s.length

    def appended(i: Term) -> Term:
        return Implies(within(s.length, i, t.length), F.epoch(t.log(i)) == F.epoch_of(h))

    def segment(i: Term) -> Term:
        same = And(t.segment(i), t.tombstone(i) == s.tombstone(i))
        entries = each(
            lambda j: Implies(within(i, j, s.sealed_to(i)), t.sealed(i, j) == s.sealed(i, j))
        )
        kept = And(same, Implies(is_there(s, i), And(t.sealed_to(i) == s.sealed_to(i), entries)))
        return Implies(s.segment(i), Or(kept, And(t.segment(i), t.tombstone(i), is_in_run(s, i))))

    def run(i: Term) -> Term:
        entries = each(lambda j: Implies(within(i, j, s.run_to(i)), t.kept(i, j) == s.kept(i, j)))
        return Implies(s.run(i), And(t.run(i), t.run_to(i) == s.run_to(i), entries))

    def told(b: Term) -> Term:
        acked = Implies(And(t.acked(b), Not(s.acked(b))), answers(s, b, t.ack))
        taken = lambda i: Implies(within(0, i, s.length), Not(same_id(F.batch(s.log(i)), b)))
        refused = Implies(And(t.rejected(b), Not(s.rejected(b))), each(taken))
        return And(acked, refused, Implies(s.acked(b), t.acked(b)))

    def is_log(i: Term, k: Term) -> Term:
        same = Implies(within(0, i, s.length), t.log(i) == s.log(i))
        offset = F.first(t.log(i), k) == t.total(i, k)
        some_there = F.count(F.batch(t.log(i)), k) > 0
        return And(same, Implies(And(within(s.length, i, t.length), some_there), offset))

    return {
        "NoAppendWhileFenced": Implies(grew, And(F.is_open(h), each(appended))),
        "SegmentsImmutable": each(lambda i: And(segment(i), run(i))),
        "CursorNeverMovesBack": t.cursor >= s.cursor,
        "HeadNeverReturns": Or(
            g == h,
            F.epoch_of(g) > F.epoch_of(h),
            And(F.epoch_of(g) == F.epoch_of(h), F.end(g) > F.end(h)),
        ),
        "RefinesLog": And(
            t.length >= s.length,
            Implies(grew, And(F.is_open(h), F.is_open(g))),
            each(is_log),
            each(told),
        ),
    }


def model(m: HeadLog) -> Model:
    """HeadLog with these decisions."""
    actions: dict[str, Callable[..., Step]] = {
        "Send": m.send_in,
        "Commit": m.commit_group,
        "Conflict": m.conflict,
        "Unknown": m.unknown_group,
        "Try": m.try_group,
        "LateCommit": m.late_commit_of,
        "Seal": m.seal,
        "Refresh": m.refresh,
        "HandOver": m.hand_over,
        "Answered": m.answered_with,
        "Learnt": m.learnt,
        "Told": m.told,
        "Lost": m.lost,
        "Acked": m.acknowledge,
        "Reject": m.reject,
        "Abandon": m.abandon,
        "Restart": m.restart_as,
        "Claim": m.claims,
        "CompactWrite": m.compact_write,
        "CompactDelete": m.compact_delete,
        "CompactCursor": m.compact_cursor,
        "Release": m.release,
        "GiveUp": m.give_up,
        "Fence": m.fence,
        "Unfence": m.unfence,
        "RaiseEpoch": m.raise_epoch,
    }
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms=AXIOMS,
        initial=initial,
        actions=actions,
        invariant=lambda s: invariant(m, s),
        of_steps=of_steps,
        follows=lambda s: follows(m, s),
        aside=ASIDE,
        wide=frozenset({"Head"}),
    )
