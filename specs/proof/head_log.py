"""HeadLog (specs/HeadLog/HeadLog.tla) for any number of nodes, writers, keys, batches, segments and claims.

Names are those of HeadLog.tla. An entry is a value; a head, too, with all that it holds: `at(h, i)` is the
entry of its tail in slot i. What the model does not bound is a fact of which nothing is known: `full` says
which node takes which head for full, so each may have limits of its own.
"""

import z3
from z3 import And, If, Implies, Not, Or

from specs.proof.language import NO, YES, Formulas, Language, Symbols, Term, Wrong

LOGIC = Language(
    **{"n": "Node", "m": "Node", "w": "Writer", "k": "Key", "b": "Batch", "c": "Batch"},
    **{"e": "Entry", "h": "Head", "g": "Head", "o": "Head", "a": "Answer"},
    **{"i": int, "j": int, "x": int, "p": bool},
)
each, some = LOGIC.each, LOGIC.some
IDLE, CLAIMED, WRITTEN, DELETED, DONE = map(z3.IntVal, range(5))

FACTS = LOGIC.symbols(
    # A writer is a node in one of its lives; it may be one of several. Or it is a name that callers give.
    **{"node": "w n", "life": "w i", "named": "w p"},
    **{"writer": "b w", "seq": "b i", "made_in": "b i", "born": "b i", "count": "b k i"},
    # The token that a batch brings for a key, 0: none; where the key must end before it, -1: anywhere.
    **{"token": "b k i", "expected": "b k i", "closed": "i"},
    **{"highest": "h i k i"},  # the token of a key before a slot of the head's log
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
    # Of a key, before a slot: its end, and its token.
    **{"length": "i", "log": "i e", "total": "i k i", "tokens": "i k i"},
    **{"incarnation": "n i", "last": "w i", "knows": "n p", "known": "n h"},
    **{"viewed": "n i", "view": "n i e", "sees_writer": "n i p"},
    **{"waits": "w p", "own": "w b", "phase": "n i", "claimed": "n i", "job": "n i"},
    **{"inflight": "h h p", "handed": "n b p", "asked": "n b i", "answer": "a p"},
    **{"acked": "b p", "ack": "b k i", "rejected": "b p"},
    # Ghosts: the heads that the register held, the batches that were made, the segment and the run of a slot,
    # and whether a segment begins at a slot, or the tail does.
    **{"was": "h p", "made": "b p", "segment_of": "i i", "run_of": "i i", "starts": "i p"},
)
ASIDE = frozenset({"inflight", "handed", "answer", "was", "made"})
F = Symbols(**FACTS)


def within(low: Term, i: Term, high: Term) -> Term:
    """Slot i is one of those from `low` on, before `high`."""
    return And(low <= i, i < high)


def same_id(b: Term, c: Term) -> Term:
    return And(F.writer(b) == F.writer(c), F.seq(b) == F.seq(c))


def same_payload(b: Term, c: Term) -> Term:
    """What a batch really is: which one of which life of which node."""
    return And(F.node(F.writer(b)) == F.node(F.writer(c)), F.born(b) == F.born(c), same_id(b, c))


def batch_in(g: Term, i: Term) -> Term:
    """The batch in slot i of the tail of head g."""
    return F.batch(F.at(g, i))


def covers(log: Term, upto: Term, b: Term) -> Term:
    """Of a slot: before `upto`, with a batch of the same writer, and of the same seq or a higher one."""
    return lambda i: And(
        within(0, i, upto),
        F.writer(F.batch(log(i))) == F.writer(b),
        F.seq(F.batch(log(i))) >= F.seq(b),
    )


def most(token: Term, other: Term) -> Term:
    return If(token > other, token, other)


# What is true of values, whatever happens.
AXIOMS: Formulas = {
    "counts": lambda s: each(lambda b, k: F.count(b, k) >= 0),
    "limits": lambda s: And(
        And(F.tail_limit >= 1, F.closed >= 0),
        each(lambda n, h: Implies(F.full(n, h), F.base(h) < F.end(h))),
    ),
    # An offset is the sum of the counts before it.
    "offsets": lambda s: each(
        lambda h, i, j, k: Implies(
            And(i >= 0, i <= j, j <= F.end(h)), F.offset(h, i, k) <= F.offset(h, j, k)
        ),
        at=lambda h, i, j, k: [(F.offset(h, i, k), F.offset(h, j, k))],
    ),
    "highest": lambda s: And(
        each(lambda b, k: F.token(b, k) <= F.closed),
        each(lambda h, i, k: Implies(within(0, i, F.end(h) + 1), F.highest(h, i, k) <= F.closed)),
        each(
            lambda h, i, j, k: Implies(
                And(i >= 0, i <= j, j <= F.end(h)), F.highest(h, i, k) <= F.highest(h, j, k)
            ),
            at=lambda h, i, j, k: [(F.highest(h, i, k), F.highest(h, j, k))],
        ),
    ),
}


def kept_out(s: Symbols, b: Term, end: Term, token: Term) -> Term:
    """A condition keeps b out where keys have these ends and tokens."""
    return some(
        lambda k: Or(
            And(F.expected(b, k) >= 0, F.expected(b, k) < end(k)),
            And(F.token(b, k) > 0, F.token(b, k) < token(k)),
            And(F.count(b, k) > 0, token(k) == F.closed),
        )
    )


def is_over(s: Symbols, b: Term, h: Term) -> Term:
    return Or(F.epoch_of(h) > F.made_in(b), And(F.epoch_of(h) == F.made_in(b), Not(F.is_open(h))))


# Decisions have the names of HeadLog.tla or Views.tla.
DEFINITIONS: Formulas = {
    "slot": lambda s, i: within(0, i, s.length),
    "batch_at": lambda s, i: F.batch(s.log(i)),
    "counts": lambda s, i, k: F.count(F.batch(s.log(i)), k) > 0,
    # The highest seq of a writer in the view answers for all of them.
    "in_log": lambda s, n, b: some(
        lambda i: And(covers(lambda i: s.view(n, i), s.viewed(n), b)(i), s.sees_writer(n, i))
    ),
    "is_in_run": lambda s, i: And(
        s.run(s.run_of(i)), within(s.run_of(i), i, s.run_to(s.run_of(i)))
    ),
    # The segment at slot i has its entries.
    "is_there": lambda s, i: And(s.segment(i), Not(s.tombstone(i))),
    # A reader finds an entry in slot i: in the tail, in its segment, or in the run that replaced it.
    "is_readable": lambda s, i: Or(
        i >= F.base(s.head),
        Or(
            And(s.is_there(s.segment_of(i)), i < s.sealed_to(s.segment_of(i))),
            And(s.tombstone(s.segment_of(i)), s.is_in_run(i)),
        ),
    ),
    # What a reader finds in slot i.
    "found": lambda s, i: If(
        i >= F.base(s.head),
        F.at(s.head, i),
        If(s.is_there(s.segment_of(i)), s.sealed(s.segment_of(i), i), s.kept(s.run_of(i), i)),
    ),
    # A reader learns from slot i which seq its writer has reached.
    "finds_writer": lambda s, i: Or(
        Or(i >= F.base(s.head), s.is_there(s.segment_of(i))), s.has_writers(s.run_of(i))
    ),
    # From slot i to j there are whole segments, and none is a tombstone.
    "begins": lambda s, i: And(s.starts(i), Or(i == F.base(s.head), s.segment_of(i) == i)),
    "are_sealed": lambda s, i, j: And(
        And(i >= 0, i < j, j <= F.base(s.head), s.begins(i), s.begins(j)),
        each(lambda x: Implies(within(i, x, j), s.is_there(s.segment_of(x)))),
    ),
    "same_tail": lambda s, h, g, low, high: each(
        lambda i: Implies(within(low, i, high), F.at(g, i) == F.at(h, i))
    ),
    # Slot i is one of those that head g has and head h has not.
    "is_new": lambda s, h, g, i: within(F.end(h), i, F.end(g)),
    # Head g is head h with a group of batches more, each of which is one that `may` be added,
    # behind the log up to a slot.
    "group": lambda s, h, g, slot, may: And(
        s.ObservedOpen(h),
        And(F.is_open(g) == F.is_open(h), F.epoch_of(g) == F.epoch_of(h)),
        And(F.end(h) < F.end(g), F.base(g) <= F.end(h)),
        s.same_tail(h, g, F.base(g), F.end(h)),
        each(
            lambda i: Implies(
                s.is_new(h, g, i),
                And(
                    may(batch_in(g, i)),
                    s.InEpoch(batch_in(g, i), F.epoch_of(h)),
                    F.epoch(F.at(g, i)) == F.epoch_of(h),
                ),
            )
        ),
        each(
            lambda k: And(
                F.offset(g, F.end(h), k) == s.total(slot, k),
                F.highest(g, F.end(h), k) == s.tokens(slot, k),
            )
        ),
        each(
            lambda i, k: Implies(
                within(F.end(h), i, F.end(g) + 1),
                And(F.offset(g, i, k) >= s.total(slot, k), F.highest(g, i, k) >= s.tokens(slot, k)),
            )
        ),
        each(
            lambda i, k: Implies(
                s.is_new(h, g, i),
                And(
                    Implies(
                        F.count(batch_in(g, i), k) > 0,
                        F.first(F.at(g, i), k) == s.FirstOffset(i, F.offset(g, i, k)),
                    ),
                    F.offset(g, i + 1, k) == F.offset(g, i, k) + F.count(batch_in(g, i), k),
                    F.highest(g, i + 1, k) == most(F.token(batch_in(g, i), k), F.highest(g, i, k)),
                    s.EndIsExpected(batch_in(g, i), k, F.offset(g, i, k)),
                    s.TokenIsHighest(batch_in(g, i), k, F.highest(g, i, k)),
                    s.KeysAreOpen(batch_in(g, i), k, F.highest(g, i, k)),
                ),
            )
        ),
        each(
            lambda i, j: Implies(
                And(
                    And(s.is_new(h, g, i), s.is_new(h, g, j), i < j),
                    F.writer(batch_in(g, i)) == F.writer(batch_in(g, j)),
                ),
                F.seq(batch_in(g, i)) < F.seq(batch_in(g, j)),
            )
        ),
    ),
    # Head g begins behind the segment that h let go of.
    "let_go": lambda s, h, g: And(s.IsSealed(h), F.base(g) == s.Freed(h)),
    # What node n may put into its next cas.
    "waiting": lambda s, n, b: And(
        Or(
            And(F.node(F.writer(b)) == n, s.waits(F.writer(b)), s.own(F.writer(b)) == b),
            s.handed(n, b),
        ),
        Not(s.IsCommitted(n, b)),
    ),
    # Node n may ask for head g in place of the one that it knows.
    "may_cas": lambda s, n, g: And(
        s.knows(n),
        If(F.full(n, s.known(n)), s.let_go(s.known(n), g), F.base(g) == F.base(s.known(n))),
        s.group(s.known(n), g, s.viewed(n), lambda b: s.waiting(n, b)),
        s.SameHead(s.known(n), s.head),
    ),
    # Whether a node in this life appends as w: a restarted node is a new writer.
    "WriterOf": lambda s, w, incarnation: F.life(w) == incarnation,
    "SameHead": lambda s, a, b: a == b,
    "NextEpoch": lambda s, epoch: epoch + 1,
    "IsSealed": lambda s, h: s.segment(F.base(h)),
    # The slot up to which a full head lets go of entries: the end of its segment.
    "Freed": lambda s, h: s.sealed_to(F.base(h)),
    # Whether a write of the segment at slot i changes it: create, never overwrite.
    "SegmentWrite": lambda s, i: Not(s.segment(i)),
    "ObservedOpen": lambda s, h: F.is_open(h),
    "InEpoch": lambda s, b, epoch: F.made_in(b) == epoch,
    "Follows": lambda s, n, start: start <= s.viewed(n),
    "IsCommitted": lambda s, n, b: s.in_log(n, b),
    "HasOutcome": lambda s, n, b: s.in_log(n, b),
    "IsOver": is_over,
    # The offset that an append gets in this slot, with a view in which `offset` follows.
    "FirstOffset": lambda s, slot, offset: offset,
    # Whether a poll from `start` finds this block.
    "PollAnswer": lambda s, first, count, start: first + count > start,
    # The length of a view after a read, its entries, and where it has the writers. That a walk over the
    # segments brings just `found` is proved in `WalkEnds` and `WalkReads`.
    "CatchUp": lambda s, n: (
        F.end(s.head),
        lambda i: If(i < s.viewed(n), s.view(n, i), s.found(i)),
        lambda i: If(i < s.viewed(n), s.sees_writer(n, i), s.finds_writer(i)),
    ),
    "RunOf": lambda s: YES,  # a run keeps the writers
    "EndIsExpected": lambda s, b, k, end: Or(F.expected(b, k) < 0, F.expected(b, k) == end),
    # `token`: the one that the key has.
    "TokenIsHighest": lambda s, b, k, token: Or(F.token(b, k) == 0, F.token(b, k) >= token),
    "KeysAreOpen": lambda s, b, k, token: Or(F.count(b, k) == 0, token != F.closed),
    "IsKeptOut": kept_out,
    "ReadyToDelete": lambda s: WRITTEN,
    "DeletedUpTo": lambda s, i: s.run_to(i),
    "CasClaim": lambda s, n: s.claim == s.claimed(n),
    "CursorAfter": lambda s, n: s.run_to(s.cursor),
    "ClaimEpoch": lambda s: s.claim + 1,
    # What helpers know by two of them: of a batch in a request; of one that was refused, when the head is h.
    "fresh": lambda s, upto, b: each(lambda j: Not(covers(s.log, upto, b)(j))),
    "stays_over": is_over,
    "stays_out": lambda s, b: kept_out(s, b, *s.keys_at(s.length)),
    "keys_at": lambda s, slot: (lambda k: s.total(slot, k), lambda k: s.tokens(slot, k)),
}


def from_tail(s: Symbols, n: Term) -> Term:
    """FromTail alone: what is sealed, and the view lacks, is passed over."""
    own, base = s.viewed(n), F.base(s.head)
    hole = If(own < base, base - own, 0)
    new = lambda i: within(own, i, F.end(s.head) - hole)
    entry = lambda i: If(new(i), F.at(s.head, i + hole), s.view(n, i))
    return F.end(s.head) - hole, entry, lambda i: Or(new(i), s.sees_writer(n, i))


NOT_FRESH = (("fresh", lambda s, upto, b: YES),)
WRONG = {  # of specs/HeadLog/HeadLogBroken.tla
    ("Freed", "FreedByNumber"): Wrong(lambda s, h: F.end(h)),
    ("FirstOffset", "FirstOffsetInTail"): Wrong(
        lambda s, i, offset: If(i > F.tail_limit, 0, offset)
    ),
    ("IsCommitted", "DedupSkipped"): Wrong(lambda s, n, b: NO, NOT_FRESH),
    ("IsCommitted", "HandOverTrusted"): Wrong(
        lambda s, n, b: And(F.node(F.writer(b)) == n, s.in_log(n, b)), NOT_FRESH
    ),
    ("HasOutcome", "AnsweredEarly"): Wrong(lambda s, n, b: YES),
    ("SameHead", "SameLength"): Wrong(lambda s, a, b: F.end(a) == F.end(b)),
    ("ObservedOpen", "StateIgnored"): Wrong(lambda s, h: YES),
    ("NextEpoch", "EpochKept"): Wrong(lambda s, epoch: epoch),
    ("IsOver", "OverWhenFenced"): Wrong(
        lambda s, b, h: Not(F.is_open(h)), (("stays_over", lambda s, b, h: YES),)
    ),
    ("WriterOf", "SameWriter"): Wrong(lambda s, w, incarnation: F.life(w) == 0),
    ("InEpoch", "EpochUnchecked"): Wrong(lambda s, b, epoch: YES),
    ("IsSealed", "SealSkipped"): Wrong(lambda s, h: YES),
    ("SegmentWrite", "BlindWrite"): Wrong(lambda s, i: YES),
    ("CatchUp", "TailOnly"): Wrong(from_tail),
    ("Follows", "GapIgnored"): Wrong(lambda s, n, start: YES),
    ("PollAnswer", "ExactLookUp"): Wrong(lambda s, first, count, start: first >= start),
    ("RunOf", "RunWithoutWriters"): Wrong(lambda s: NO),
    ("EndIsExpected", "AnyEnd"): Wrong(lambda s, b, k, end: YES),
    ("TokenIsHighest", "AnyToken"): Wrong(lambda s, b, k, token: YES),
    ("KeysAreOpen", "NeverClosed"): Wrong(lambda s, b, k, token: YES),
    ("IsKeptOut", "ElsewhereIsKeptOut"): Wrong(
        lambda s, b, end, token: some(
            lambda k: And(F.expected(b, k) >= 0, F.expected(b, k) != end(k))
        ),
        (("stays_out", lambda s, b: YES),),
    ),
    ("ReadyToDelete", "DeleteFirst"): Wrong(lambda s: CLAIMED),
    ("DeletedUpTo", "Unwritten"): Wrong(lambda s, i: i + 1),
    ("CasClaim", "ClaimIgnored"): Wrong(lambda s, n: YES),
    ("CursorAfter", "CursorOnceMore"): Wrong(lambda s, n: s.cursor + s.run_to(s.job(n)) - s.job(n)),
    ("CursorAfter", "CursorFromClaim"): Wrong(lambda s, n: s.run_to(s.job(n))),
    ("ClaimEpoch", "SameClaimEpoch"): Wrong(lambda s: If(s.claim > 1, s.claim, 1)),
    # Which tail is full is open here: each node may have a limit of its own, so these are right.
    ("LimitOf", "SmallAndLarge"): Wrong(),
    ("ShapeOf", "NoShape"): Wrong(),
    ("IsFull", "FullForItself"): Wrong(),
    ("IsFull", "NeverFull"): Wrong(
        unseen="the bound of a tail counts the nodes: TLC checks it for two and three"
    ),
}
