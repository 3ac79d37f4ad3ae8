"""HeadLog (specs/HeadLog/HeadLog.tla) for any number of nodes, writers, keys, batches, epochs, segments and claims.

Names are those of HeadLog.tla. An entry is a value; a head, too, with all that it holds: `at(h, i)` is the entry of
its tail in slot i. What the model does not bound is a fact of which nothing is known: `full` says which head which
node takes for full, so each may have limits of its own.
"""

from typing import Any

import z3
from z3 import And, If, Implies, Not, Or

from specs.proof.language import Language, Step, Symbols, Term, added, put, removed

LOGIC = Language(
    **{"n": "Node", "m": "Node", "w": "Writer", "k": "Key", "b": "Batch", "c": "Batch"},
    **{"e": "Entry", "h": "Head", "g": "Head", "o": "Head", "a": "Answer"},
    **{"i": int, "j": int, "x": int, "p": bool},
)
each, some = LOGIC.each, LOGIC.some
IDLE, CLAIMED, WRITTEN, DELETED, DONE = range(5)

FACTS = LOGIC.symbols(
    **{
        "node": "w n",
        "life": "w i",
    },  # a writer is a node in one of its lives; it may be one of several
    **{"writer": "b w", "seq": "b i", "made_in": "b i", "born": "b i", "count": "b k i"},
    **{"batch": "e b", "epoch": "e i", "first": "e k i"},
    **{"is_open": "h p", "epoch_of": "h i", "base": "h i", "end": "h i", "at": "h i e"},
    **{"full": "n h p", "offset": "h i k i"},  # the offset of a key before a slot of the head's log
    **{"to": "a n", "head_of": "a h", "start": "a i", "brought": "a i e"},
    tail_limit="i",
)
STATE = LOGIC.symbols(
    head="h",
    **{"segment": "i p", "tombstone": "i p", "sealed_to": "i i", "sealed": "i i e"},
    **{"run": "i p", "run_to": "i i", "kept": "i i e", "has_writers": "i p"},
    **{"claim": "i", "cursor": "i"},
    **{"length": "i", "log": "i e", "total": "i k i"},  # total: of a key, before a slot
    **{"incarnation": "n i", "last": "w i", "knows": "n p", "known": "n h"},
    **{"viewed": "n i", "view": "n i e", "sees_writer": "n i p"},
    **{"waits": "w p", "own": "w b", "phase": "n i", "claimed": "n i", "job": "n i"},
    **{"inflight": "h h p", "handed": "n b p", "asked": "n b i", "answer": "a p"},
    **{"acked": "b p", "ack": "b k i", "rejected": "b p"},
    # Ghosts: the heads that the register held, the batches that were made, the segment and the run of a slot.
    **{"was": "h p", "made": "b p", "segment_of": "i i", "run_of": "i i"},
    starts="i p",  # a segment begins at a slot, or the tail does
)
ASIDE = frozenset({"inflight", "handed", "answer", "was", "made"})
F = Symbols(**FACTS)


def fields(h: Term, s: Any = F) -> tuple[Term, Term]:
    return s.is_open(h), s.epoch_of(h)


def within(low: Term, i: Term, high: Term) -> Term:
    """Slot i is one of those from `low` on, before `high`."""
    return And(low <= i, i < high)


def same_id(b: Term, c: Term) -> Term:
    return And(F.writer(b) == F.writer(c), F.seq(b) == F.seq(c))


def same_payload(b: Term, c: Term) -> Term:
    """What a batch really is: which one of which life of which node."""
    lives = And(F.node(F.writer(b)) == F.node(F.writer(c)), F.born(b) == F.born(c))
    return And(lives, same_id(b, c))


def in_log(s: Any, n: Term, b: Term) -> Term:
    """The highest seq of a writer in the view answers for all of them."""

    def answers(i: Term) -> Term:
        c = F.batch(s.view(n, i))
        seen = And(within(0, i, s.viewed(n)), s.sees_writer(n, i))
        return And(seen, F.writer(c) == F.writer(b), F.seq(c) >= F.seq(b))

    return some(answers)


class HeadLog:
    """The decisions, each under the name that it has in HeadLog.tla, and the actions."""

    # ---------------------------------------------------------------- decisions

    def writer_of(self, w: Term, incarnation: Term) -> Term:
        """Whether a node in this life appends as w: a restarted node is a new writer."""
        return F.life(w) == incarnation

    def same_head(self, a: Term, b: Term) -> Term:
        return a == b

    def next_epoch(self, epoch: Term) -> Term:
        return epoch + 1

    def is_sealed(self, s: Any, h: Term) -> Term:
        return s.segment(F.base(h))

    def freed(self, s: Any, h: Term) -> Term:
        """The slot up to which a full head lets go of entries: the end of its segment."""
        return s.sealed_to(F.base(h))

    def segment_write(self, s: Any, i: Term) -> Term:
        """Whether a write of the segment at slot i changes it: create, never overwrite."""
        return Not(s.segment(i))

    def observed_open(self, h: Term) -> Term:
        return F.is_open(h)

    def in_epoch(self, b: Term, epoch: Term) -> Term:
        return F.made_in(b) == epoch

    def follows(self, s: Any, n: Term, start: Term) -> Term:
        return start <= s.viewed(n)

    def is_committed(self, s: Any, n: Term, b: Term) -> Term:
        return in_log(s, n, b)

    def fresh(self, log: Any, upto: Term, b: Term) -> Term:
        """What a request keeps of it: no entry before it has this seq of its writer, or a higher one."""

        def older(j: Term) -> Term:
            c = F.batch(log(j))
            return Implies(And(within(0, j, upto), F.writer(c) == F.writer(b)), F.seq(c) < F.seq(b))

        return each(older)

    def has_outcome(self, s: Any, n: Term, b: Term) -> Term:
        return in_log(s, n, b)

    def is_over(self, b: Term, h: Term) -> Term:
        later, same = F.epoch_of(h) > F.made_in(b), F.epoch_of(h) == F.made_in(b)
        return Or(later, And(same, Not(F.is_open(h))))

    def stays_over(self, b: Term, h: Term) -> Term:
        """What is known of a batch that was refused, when the head is h."""
        return self.is_over(b, h)

    def first_offset(self, slot: Term, offset: Term) -> Term:
        """The offset that an append gets in this slot, with a view in which `offset` follows."""
        return offset

    def look_up(self, first: Term, count: Term, start: Term) -> Term:
        """Whether a poll from `start` finds this block."""
        return first + count > start

    keeps_writers = z3.BoolVal(True)  # RunOf
    ready_to_delete = WRITTEN

    def deleted_up_to(self, s: Any, i: Term) -> Term:
        return s.run_to(i)

    def cas_claim(self, s: Any, n: Term) -> Term:
        return s.claim == s.claimed(n)

    def cursor_after(self, s: Any, n: Term) -> Term:
        return s.run_to(s.cursor)

    def claim_epoch(self, s: Any) -> Term:
        return s.claim + 1

    def caught_up(self, s: Any, n: Term) -> tuple[Term, Any, Any]:
        """CatchUp: the length of a view after a read, its entries, and where it has the writers.

        That a walk over the segments brings just `found` is proved in `WalkReads`.
        """
        entry = lambda i: If(i < s.viewed(n), s.view(n, i), found(s, i))
        seen = lambda i: If(i < s.viewed(n), s.sees_writer(n, i), finds_writer(s, i))
        return F.end(s.head), entry, seen

    # ---------------------------------------------------------------- appending

    def send_in(self, s: Any, b: Term) -> Step:
        w = F.writer(b)
        n = F.node(w)
        when = And(
            Not(s.waits(w)),
            self.writer_of(w, s.incarnation(n)),
            F.seq(b) == s.last(w) + 1,
            F.born(b) == s.incarnation(n),
            F.made_in(b) <= F.epoch_of(s.head),
        )
        changes = {"last": put(s.last, w, F.seq(b)), "made": added(s.made, b)}
        return Step(when, changes | {"waits": added(s.waits, w), "own": put(s.own, w, b)})

    def waiting(self, s: Any, n: Term, b: Term) -> Term:
        w = F.writer(b)
        own = And(F.node(w) == n, s.waits(w), s.own(w) == b)
        return And(Or(own, s.handed(n, b)), Not(self.is_committed(s, n, b)))

    def group(self, h: Term, g: Term, first: Any, may: Any) -> Term:
        """Head g is head h with a group of batches more, each of which is one that `may` be added.

        `first(k)` is the offset of a key before the group.
        """

        def entry(i: Term) -> Term:
            e = F.at(g, i)
            b = F.batch(e)
            added_here = within(F.end(h), i, F.end(g))
            its = And(may(b), self.in_epoch(b, F.epoch_of(h)), F.epoch(e) == F.epoch_of(h))
            return Implies(added_here, its)

        def offsets(i: Term, k: Term) -> Term:
            e, offset = F.at(g, i), F.offset(g, i, k)
            count = F.count(F.batch(e), k)
            its = Implies(count > 0, F.first(e, k) == self.first_offset(i, offset))
            follows = F.offset(g, i + 1, k) == offset + count
            return Implies(within(F.end(h), i, F.end(g)), And(its, follows))

        def ordered(i: Term, j: Term) -> Term:
            b, c = F.batch(F.at(g, i)), F.batch(F.at(g, j))
            both = And(F.end(h) <= i, i < j, j < F.end(g), F.writer(b) == F.writer(c))
            return Implies(both, F.seq(b) < F.seq(c))

        return And(
            self.observed_open(h),
            F.end(h) < F.end(g),
            F.is_open(g) == F.is_open(h),
            F.epoch_of(g) == F.epoch_of(h),
            F.base(g) <= F.end(h),
            each(lambda i: Implies(within(F.base(g), i, F.end(h)), F.at(g, i) == F.at(h, i))),
            each(entry),
            each(lambda k: F.offset(g, F.end(h), k) == first(k)),
            each(offsets),
            each(ordered),
        )

    def head_after(self, s: Any, h: Term, g: Term) -> Term:
        """HeadAfter, for whichever node: g begins where h does, or behind the segment that h let go of."""
        let_go = And(self.is_sealed(s, h), F.base(g) == self.freed(s, h))
        return Or(F.base(g) == F.base(h), let_go)

    def may_cas(self, s: Any, n: Term, g: Term) -> Term:
        """Node n may ask for head g in place of the one that it knows."""
        h = s.known(n)
        freed = And(self.is_sealed(s, h), F.base(g) == self.freed(s, h))
        return And(
            s.knows(n),
            If(F.full(n, h), freed, F.base(g) == F.base(h)),
            self.group(h, g, lambda k: s.total(s.viewed(n), k), lambda b: self.waiting(s, n, b)),
        )

    def accepted(self, s: Any, g: Term, o: Term) -> tuple[Term, dict[str, Term]]:
        """The store accepts head g: head o is g in the present state and epoch."""
        same = each(lambda i: Implies(within(F.base(g), i, F.end(g)), F.at(o, i) == F.at(g, i)))
        bounds = And(F.base(o) == F.base(g), F.end(o) == F.end(g))
        switch = And(F.is_open(o) == F.is_open(s.head), F.epoch_of(o) == F.epoch_of(s.head))
        new, base = s.length, F.base(s.head)
        let_go = lambda i: And(base <= i, i < F.base(g))
        return And(same, bounds, switch), {
            "head": o,
            "was": added(s.was, o),
            "length": F.end(g),
            "log": lambda i: If(i < new, s.log(i), F.at(g, i)),
            "total": lambda i, k: If(i <= new, s.total(i, k), F.offset(g, i, k)),
            "segment_of": lambda i: If(let_go(i), base, s.segment_of(i)),
            "starts": added(s.starts, F.base(g)),
        }

    def commit_group(self, s: Any, n: Term, g: Term, o: Term) -> Step:
        h = s.known(n)
        took, changes = self.accepted(s, g, o)
        when = And(self.may_cas(s, n, g), self.same_head(h, s.head), took)
        own = s.viewed(n)
        new = own + F.end(g) - F.end(h)
        added_at = lambda m, i: And(m == n, own <= i, i < new)

        def told(a: Term) -> Term:
            def asked(b: Term, i: Term) -> Term:
                given = And(within(F.end(h), i, F.end(g)), F.batch(F.at(g, i)) == b, s.handed(n, b))
                return And(given, F.node(F.writer(b)) == F.to(a), F.start(a) == s.asked(n, b))

            brought = each(
                lambda i: Implies(
                    within(F.start(a), i, F.end(o)), F.brought(a, i) == changes["log"](i)
                )
            )
            return And(F.head_of(a) == o, some(asked), brought)

        return Step(
            when,
            changes
            | {
                "viewed": put(s.viewed, n, new),
                "view": lambda m, i: If(added_at(m, i), F.at(g, i), s.view(m, i)),
                "sees_writer": lambda m, i: Or(added_at(m, i), s.sees_writer(m, i)),
                "known": put(s.known, n, o),
                "answer": lambda a: Or(s.answer(a), told(a)),
            },
        )

    def conflict(self, s: Any, n: Term) -> Step:
        when = And(s.knows(n), Not(self.same_head(s.known(n), s.head)))
        return Step(when, {"knows": removed(s.knows, n)})

    def unknown_group(self, s: Any, n: Term, g: Term) -> Step:
        """The cas may happen, now or later; or it is refused, and the answer is lost."""
        when = And(self.may_cas(s, n, g), self.same_head(s.known(n), s.head))
        changes = {"inflight": added(s.inflight, s.known(n), g), "knows": removed(s.knows, n)}
        return Step(when, changes)

    def try_group(self, s: Any, n: Term, g: Term) -> Step:
        """The first half of a cas as the code makes it: its answer comes later, in `Learnt`."""
        when = And(self.may_cas(s, n, g), self.same_head(s.known(n), s.head))
        return Step(when, {"inflight": added(s.inflight, s.known(n), g)})

    def late_commit_of(self, s: Any, h: Term, g: Term, o: Term) -> Step:
        took, changes = self.accepted(s, g, o)
        when = And(s.inflight(h, g), self.same_head(h, s.head), took)
        return Step(when, changes | {"inflight": removed(s.inflight, h, g)})

    def seal(self, s: Any, n: Term) -> Step:
        h = s.known(n)
        b = F.base(h)
        writes = self.segment_write(s, b)
        return Step(
            And(s.knows(n), F.full(n, h)),
            {
                "segment": added(s.segment, b),
                "tombstone": lambda i: And(s.tombstone(i), Not(And(i == b, writes))),
                "sealed_to": lambda i: If(And(i == b, writes), F.end(h), s.sealed_to(i)),
                "sealed": lambda i, j: If(And(i == b, writes), F.at(h, j), s.sealed(i, j)),
            },
        )

    # ---------------------------------------------------------------- reading, handing over, answering

    def refresh(self, s: Any, n: Term) -> Step:
        length, entry, seen = self.caught_up(s, n)
        return Step(
            z3.BoolVal(True),
            {
                "knows": added(s.knows, n),
                "known": put(s.known, n, s.head),
                "viewed": put(s.viewed, n, length),
                "view": lambda m, i: If(m == n, entry(i), s.view(m, i)),
                "sees_writer": lambda m, i: If(m == n, seen(i), s.sees_writer(m, i)),
            },
        )

    def hand_over(self, s: Any, w: Term, m: Term) -> Step:
        n, b = F.node(w), s.own(w)
        when = And(m != n, s.waits(w), Not(in_log(s, n, b)), Not(s.handed(m, b)))
        return Step(
            when,
            {"handed": added(s.handed, m, b), "asked": put(s.asked, m, b, s.viewed(n))},
        )

    def taken(self, s: Any, n: Term, a: Term) -> dict[str, Term]:
        """Node n takes the entries of an answer that it lacks."""
        own, end = s.viewed(n), F.end(F.head_of(a))
        skipped = If(
            F.start(a) > own, F.start(a) - own, 0
        )  # entries that it lacks without noticing
        new = lambda m, i: And(m == n, own <= i, i < end - skipped)
        entry = lambda i: If(F.start(a) <= own, F.brought(a, i), F.brought(a, i + skipped))
        return {
            "knows": added(s.knows, n),
            "known": put(s.known, n, F.head_of(a)),
            "viewed": put(s.viewed, n, end - skipped),
            "view": lambda m, i: If(new(m, i), entry(i), s.view(m, i)),
            "sees_writer": lambda m, i: Or(new(m, i), s.sees_writer(m, i)),
        }

    def answered_with(self, s: Any, n: Term, a: Term) -> Step:
        """An answer that brings nothing, or would leave a hole, is dropped: that is `Lost`."""
        brings = And(self.follows(s, n, F.start(a)), s.viewed(n) < F.end(F.head_of(a)))
        changes = self.taken(s, n, a) | {"answer": removed(s.answer, a)}
        return Step(And(s.answer(a), F.to(a) == n, brings), changes)

    def learnt(self, s: Any, n: Term, a: Term) -> Step:
        """The second half of a cas or read as the code makes it: the head may be another one by now."""
        brings = And(F.start(a) <= s.viewed(n), s.viewed(n) <= F.end(F.head_of(a)))
        return Step(And(s.answer(a), brings), self.taken(s, n, a))

    def told(self, s: Any, a: Term) -> Step:
        """The head, with the log before it, is on its way to somebody, as in any answer of the store."""
        bound = And(0 <= F.start(a), F.start(a) <= F.end(s.head), F.head_of(a) == s.head)
        slots = lambda i: within(F.start(a), i, F.end(s.head))
        brings = each(lambda i: Implies(slots(i), F.brought(a, i) == s.log(i)))
        return Step(And(bound, brings), {"answer": added(s.answer, a)})

    def lost(self, s: Any, h: Term, g: Term, m: Term, b: Term, a: Term) -> Step:
        """A message of each kind is lost. In the evaluation any number of them may be lost in any step."""
        return Step(
            z3.BoolVal(True),
            {
                "inflight": removed(s.inflight, h, g),
                "handed": removed(s.handed, m, b),
                "answer": removed(s.answer, a),
            },
        )

    def acknowledge(self, s: Any, w: Term, i: Term) -> Step:
        """Slot i of the view has the first entry with the batch's id, if there is one."""
        n, b = F.node(w), s.own(w)
        has = lambda j: And(within(0, j, s.viewed(n)), same_id(F.batch(s.view(n, j)), b))
        found = And(has(i), Not(some(lambda j: And(has(j), j < i))))
        at = lambda k: If(has(i), F.first(s.view(n, i), k), s.total(s.viewed(n), k))
        offset = lambda k: If(F.count(b, k) == 0, -1, at(k))
        return Step(
            And(s.waits(w), self.has_outcome(s, n, b), Or(found, Not(some(has)))),
            {
                "acked": added(s.acked, b),
                "ack": lambda c, k: If(c == b, offset(k), s.ack(c, k)),
                "waits": removed(s.waits, w),
            },
        )

    def reject(self, s: Any, w: Term) -> Step:
        n, b = F.node(w), s.own(w)
        over = And(s.knows(n), self.is_over(b, s.known(n)), Not(in_log(s, n, b)))
        changes = {"rejected": added(s.rejected, b), "waits": removed(s.waits, w)}
        return Step(And(s.waits(w), over), changes)

    def abandon(self, s: Any, w: Term) -> Step:
        return Step(s.waits(w), {"waits": removed(s.waits, w)})

    def restart_as(self, s: Any, n: Term, i: Term) -> Step:
        of_n = lambda w: F.node(w) == n
        return Step(
            i > s.incarnation(n),
            {
                "incarnation": put(s.incarnation, n, i),
                "last": lambda w: If(of_n(w), 0, s.last(w)),
                "waits": lambda w: And(s.waits(w), Not(of_n(w))),
                "knows": removed(s.knows, n),
                "viewed": put(s.viewed, n, z3.IntVal(0)),
                "phase": put(s.phase, n, z3.IntVal(IDLE)),
            },
        )

    def switched(self, s: Any, o: Term, is_open: Term) -> Step:
        """Nothing but state and epoch changes."""
        h = s.head
        same = each(lambda i: Implies(within(F.base(h), i, F.end(h)), F.at(o, i) == F.at(h, i)))
        bounds = And(F.base(o) == F.base(h), F.end(o) == F.end(h))
        epoch = F.epoch_of(o) == self.next_epoch(F.epoch_of(h))
        when = And(same, bounds, epoch, F.is_open(o) == is_open)
        return Step(when, {"head": o, "was": added(s.was, o)})

    def fence(self, s: Any, o: Term) -> Step:
        step = self.switched(s, o, z3.BoolVal(False))
        return step._replace(when=And(F.is_open(s.head), step.when))

    def unfence(self, s: Any, o: Term) -> Step:
        step = self.switched(s, o, z3.BoolVal(True))
        return step._replace(when=And(Not(F.is_open(s.head)), step.when))

    def raise_epoch(self, s: Any, o: Term) -> Step:
        return self.switched(s, o, F.is_open(s.head))

    # ---------------------------------------------------------------- compaction

    def is_sealed_range(self, s: Any, i: Term, j: Term) -> Term:
        """From slot i to j there are whole segments, and none is a tombstone."""
        there = lambda x: And(s.segment(s.segment_of(x)), Not(s.tombstone(s.segment_of(x))))
        return And(
            0 <= i,
            i < j,
            j <= F.base(s.head),
            begins(s, i),
            begins(s, j),
            each(lambda x: Implies(within(i, x, j), there(x))),
        )

    def claims(self, s: Any, n: Term, j: Term) -> Step:
        may = Or(s.run(s.cursor), self.is_sealed_range(s, s.cursor, j))
        epoch = self.claim_epoch(s)
        changes = {
            "phase": put(s.phase, n, z3.IntVal(CLAIMED)),
            "claimed": put(s.claimed, n, epoch),
            "job": put(s.job, n, s.cursor),
        }
        return Step(And(s.phase(n) == IDLE, may), changes | {"claim": epoch})

    def compact_write(self, s: Any, n: Term, j: Term) -> Step:
        b = s.job(n)
        new = Not(s.run(b))
        here = lambda i: And(i == b, new)
        return Step(
            And(s.phase(n) == CLAIMED, Or(s.run(b), self.is_sealed_range(s, b, j))),
            {
                "phase": put(s.phase, n, z3.IntVal(WRITTEN)),
                "run": added(s.run, b),
                "run_to": lambda i: If(here(i), j, s.run_to(i)),
                "kept": lambda i, x: If(here(i), s.sealed(s.segment_of(x), x), s.kept(i, x)),
                "has_writers": lambda i: If(here(i), self.keeps_writers, s.has_writers(i)),
                "run_of": lambda i: If(And(new, within(b, i, j)), b, s.run_of(i)),
            },
        )

    def compact_delete(self, s: Any, n: Term) -> Step:
        b = s.job(n)
        gone = lambda i: And(within(b, i, self.deleted_up_to(s, b)), s.segment(i))
        return Step(
            s.phase(n) == self.ready_to_delete,
            {
                "phase": put(s.phase, n, z3.IntVal(DELETED)),
                "tombstone": lambda i: Or(s.tombstone(i), gone(i)),
            },
        )

    def compact_cursor(self, s: Any, n: Term) -> Step:
        when = And(s.phase(n) == DELETED, self.cas_claim(s, n))
        phase = put(s.phase, n, z3.IntVal(DONE))
        return Step(when, {"phase": phase, "cursor": self.cursor_after(s, n)})

    def release(self, s: Any, n: Term) -> Step:
        when = And(s.phase(n) != IDLE, Or(s.phase(n) == DONE, s.claim != s.claimed(n)))
        return Step(when, {"phase": put(s.phase, n, z3.IntVal(IDLE))})

    def give_up(self, s: Any, n: Term) -> Step:
        return Step(s.phase(n) != IDLE, {"phase": put(s.phase, n, z3.IntVal(IDLE))})


def begins(s: Any, i: Term) -> Term:
    """A segment begins at slot i, or the tail does."""
    return And(s.starts(i), Or(i == F.base(s.head), s.segment_of(i) == i))


def is_in_run(s: Any, i: Term) -> Term:
    return And(s.run(s.run_of(i)), within(s.run_of(i), i, s.run_to(s.run_of(i))))


def is_there(s: Any, i: Term) -> Term:
    """The segment at slot i has its entries."""
    return And(s.segment(i), Not(s.tombstone(i)))


def is_readable(s: Any, i: Term) -> Term:
    """A reader finds an entry in slot i: in the tail, in its segment, or in the run that replaced it."""
    b = s.segment_of(i)
    sealed = Or(And(is_there(s, b), i < s.sealed_to(b)), And(s.tombstone(b), is_in_run(s, i)))
    return Or(i >= F.base(s.head), sealed)


def found(s: Any, i: Term) -> Term:
    """What a reader finds in slot i."""
    b = s.segment_of(i)
    return If(
        i >= F.base(s.head),
        F.at(s.head, i),
        If(is_there(s, b), s.sealed(b, i), s.kept(s.run_of(i), i)),
    )


def finds_writer(s: Any, i: Term) -> Term:
    """A reader learns from slot i which seq its writer has reached."""
    whole = Or(i >= F.base(s.head), is_there(s, s.segment_of(i)))
    return Or(whole, s.has_writers(s.run_of(i)))
