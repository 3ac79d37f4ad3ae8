"""The wrong decisions of specs/HeadLog/HeadLogBroken.tla, each in the place of the right one."""

from collections.abc import Mapping
from typing import Any

import z3
from z3 import And, BoolVal, If, Not

from specs.proof.head_log import CLAIMED, F, in_log, within

YES = BoolVal(True)
Instead = Mapping[str, Any]


def from_tail(s: Any, n: Any) -> Any:
    """FromTail alone: what is sealed, and the view lacks, is passed over."""
    own, base = s.viewed(n), F.base(s.head)
    skipped = If(own < base, base - own, 0)
    new = lambda i: within(own, i, F.end(s.head) - skipped)
    entry = lambda i: If(new(i), F.at(s.head, i + skipped), s.view(n, i))
    seen = lambda i: z3.Or(new(i), s.sees_writer(n, i))
    return F.end(s.head) - skipped, entry, seen


# By what the manifest names: the operator, and what stands in for it.
INSTEAD: Mapping[tuple[str, str], Instead] = {
    ("Freed", "FreedByNumber"): {"freed": lambda _, s, h: F.end(h)},
    ("FirstOffset", "FirstOffsetInTail"): {
        "first_offset": lambda _, slot, offset: If(slot > F.tail_limit, 0, offset)
    },
    ("IsCommitted", "DedupSkipped"): {
        "is_committed": lambda _, s, n, b: BoolVal(False),
        "fresh": lambda _, log, upto, b: YES,
    },
    ("IsCommitted", "HandOverTrusted"): {
        "is_committed": lambda _, s, n, b: And(F.node(F.writer(b)) == n, in_log(s, n, b)),
        "fresh": lambda _, log, upto, b: YES,
    },
    ("HasOutcome", "AnsweredEarly"): {"has_outcome": lambda _, s, n, b: YES},
    ("SameHead", "SameLength"): {"same_head": lambda _, a, b: F.end(a) == F.end(b)},
    ("ObservedOpen", "StateIgnored"): {"observed_open": lambda _, h: YES},
    ("NextEpoch", "EpochKept"): {"next_epoch": lambda _, epoch: epoch},
    ("IsOver", "OverWhenFenced"): {
        "is_over": lambda _, b, h: Not(F.is_open(h)),
        "stays_over": lambda _, b, h: YES,
    },
    ("WriterOf", "SameWriter"): {"writer_of": lambda _, w, incarnation: F.life(w) == 0},
    ("InEpoch", "EpochUnchecked"): {"in_epoch": lambda _, b, epoch: YES},
    ("IsSealed", "SealSkipped"): {"is_sealed": lambda _, s, h: YES},
    ("SegmentWrite", "BlindWrite"): {"segment_write": lambda _, s, i: YES},
    ("CatchUp", "TailOnly"): {"caught_up": lambda _, s, n: from_tail(s, n)},
    ("Follows", "GapIgnored"): {"follows": lambda _, s, n, start: YES},
    ("PollAnswer", "ExactLookUp"): {"look_up": lambda _, first, count, start: first >= start},
    ("RunOf", "RunWithoutWriters"): {"keeps_writers": BoolVal(False)},
    ("ReadyToDelete", "DeleteFirst"): {"ready_to_delete": CLAIMED},
    ("DeletedUpTo", "Unwritten"): {"deleted_up_to": lambda _, s, i: i + 1},
    ("CasClaim", "ClaimIgnored"): {"cas_claim": lambda _, s, n: YES},
    ("CursorAfter", "CursorOnceMore"): {
        "cursor_after": lambda _, s, n: s.cursor + s.run_to(s.job(n)) - s.job(n)
    },
    ("CursorAfter", "CursorFromClaim"): {"cursor_after": lambda _, s, n: s.run_to(s.job(n))},
    ("ClaimEpoch", "SameClaimEpoch"): {"claim_epoch": lambda _, s: If(s.claim > 1, s.claim, 1)},
    # Which tail is full is open here: each node may have a limit of its own, so these are right.
    ("LimitOf", "SmallAndLarge"): {},
    ("ShapeOf", "NoShape"): {},
    ("IsFull", "FullForItself"): {},
}
# What no proof here can see, and why.
UNSEEN = {
    (
        "IsFull",
        "NeverFull",
    ): "the bound of a tail counts the nodes: TLC checks it for two and three",
    ("Fairness", "NoCommitFairness"): "liveness: TLC checks it at small sizes",
    ("Fairness", "CommitOnlyFairness"): "liveness: TLC checks it at small sizes",
}
