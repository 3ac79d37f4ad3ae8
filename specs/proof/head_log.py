"""HeadLog (specs/HeadLog/HeadLog.tla) for any number of nodes, writers, keys, batches, segments and claims.

Names are those of HeadLog.tla. An entry is a value; a head, too, with all that it holds: `at(h, i)` is the
entry of its tail in slot i. What the model does not bound is a fact of which nothing is known: `full` says
which node takes which head for full, so each may have limits of its own.
"""

from typing import Any

import z3
from z3 import And, If, Not, Or

from specs.proof.language import Language, Symbols, Term

LOGIC = Language(
    **{"n": "Node", "m": "Node", "w": "Writer", "k": "Key", "b": "Batch", "c": "Batch"},
    **{"e": "Entry", "h": "Head", "g": "Head", "o": "Head", "a": "Answer"},
    **{"i": int, "j": int, "x": int, "p": bool},
)
each, some = LOGIC.each, LOGIC.some
YES, NO = z3.BoolVal(True), z3.BoolVal(False)
IDLE, CLAIMED, WRITTEN, DELETED, DONE = map(z3.IntVal, range(5))

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


def covers(log: Any, upto: Term, b: Term) -> Any:
    """Of a slot: before `upto`, with a batch of the same writer, and of the same seq or a higher one."""
    return lambda i: And(
        within(0, i, upto),
        F.writer(F.batch(log(i))) == F.writer(b),
        F.seq(F.batch(log(i))) >= F.seq(b),
    )


def in_log(s: Any, n: Term, b: Term) -> Term:
    """The highest seq of a writer in the view answers for all of them."""
    has = covers(lambda i: s.view(n, i), s.viewed(n), b)
    return some(lambda i: And(has(i), s.sees_writer(n, i)))


def is_over(b: Term, h: Term) -> Term:
    same = F.epoch_of(h) == F.made_in(b)
    return Or(F.epoch_of(h) > F.made_in(b), And(same, Not(F.is_open(h))))


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
    behind = If(is_there(s, b), s.sealed(b, i), s.kept(s.run_of(i), i))
    return If(i >= F.base(s.head), F.at(s.head, i), behind)


def finds_writer(s: Any, i: Term) -> Term:
    """A reader learns from slot i which seq its writer has reached."""
    whole = Or(i >= F.base(s.head), is_there(s, s.segment_of(i)))
    return Or(whole, s.has_writers(s.run_of(i)))


def caught_up(s: Any, n: Term) -> tuple[Term, Any, Any]:
    """The length of a view after a read, its entries, and where it has the writers.

    That a walk over the segments brings just `found` is proved in `WalkEnds` and `WalkReads`.
    """
    own = s.viewed(n)
    return (
        F.end(s.head),
        lambda i: If(i < own, s.view(n, i), found(s, i)),
        lambda i: If(i < own, s.sees_writer(n, i), finds_writer(s, i)),
    )


# Each under the name that it has in HeadLog.tla or Views.tla.
DECISIONS = {
    # Whether a node in this life appends as w: a restarted node is a new writer.
    "WriterOf": lambda w, incarnation: F.life(w) == incarnation,
    "SameHead": lambda a, b: a == b,
    "NextEpoch": lambda epoch: epoch + 1,
    "IsSealed": lambda s, h: s.segment(F.base(h)),
    # The slot up to which a full head lets go of entries: the end of its segment.
    "Freed": lambda s, h: s.sealed_to(F.base(h)),
    # Whether a write of the segment at slot i changes it: create, never overwrite.
    "SegmentWrite": lambda s, i: Not(s.segment(i)),
    "ObservedOpen": F.is_open,
    "InEpoch": lambda b, epoch: F.made_in(b) == epoch,
    "Follows": lambda s, n, start: start <= s.viewed(n),
    "IsCommitted": in_log,
    "HasOutcome": in_log,
    "IsOver": is_over,
    # The offset that an append gets in this slot, with a view in which `offset` follows.
    "FirstOffset": lambda slot, offset: offset,
    # Whether a poll from `start` finds this block.
    "PollAnswer": lambda first, count, start: first + count > start,
    "CatchUp": caught_up,
    "RunOf": YES,  # a run keeps the writers
    "ReadyToDelete": WRITTEN,
    "DeletedUpTo": lambda s, i: s.run_to(i),
    "CasClaim": lambda s, n: s.claim == s.claimed(n),
    "CursorAfter": lambda s, n: s.run_to(s.cursor),
    "ClaimEpoch": lambda s: s.claim + 1,
    # What helpers know by two of them: of a batch in a request; of one that was refused, when the head is h.
    "fresh": lambda log, upto, b: each(lambda j: Not(covers(log, upto, b)(j))),
    "stays_over": is_over,
}
