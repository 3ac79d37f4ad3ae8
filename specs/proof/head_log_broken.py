"""The wrong decisions of specs/HeadLog/HeadLogBroken.tla, each in the place of the right one."""

from collections.abc import Mapping
from typing import Any

from z3 import And, If, Not, Or

from specs.proof.head_log import CLAIMED, NO, YES, F, in_log, within


def from_tail(s: Any, n: Any) -> Any:
    """FromTail alone: what is sealed, and the view lacks, is passed over."""
    own, base = s.viewed(n), F.base(s.head)
    hole = If(own < base, base - own, 0)
    new = lambda i: within(own, i, F.end(s.head) - hole)
    entry = lambda i: If(new(i), F.at(s.head, i + hole), s.view(n, i))
    return F.end(s.head) - hole, entry, lambda i: Or(new(i), s.sees_writer(n, i))


# By what the manifest names: the operator, and what stands in for it; then what helpers know no more.
INSTEAD: Mapping[tuple[str, str], Any] = {
    ("Freed", "FreedByNumber"): lambda s, h: F.end(h),
    ("FirstOffset", "FirstOffsetInTail"): lambda i, offset: If(i > F.tail_limit, 0, offset),
    ("IsCommitted", "DedupSkipped"): lambda s, n, b: NO,
    ("IsCommitted", "HandOverTrusted"): lambda s, n, b: And(
        F.node(F.writer(b)) == n, in_log(s, n, b)
    ),
    ("HasOutcome", "AnsweredEarly"): lambda s, n, b: YES,
    ("SameHead", "SameLength"): lambda a, b: F.end(a) == F.end(b),
    ("ObservedOpen", "StateIgnored"): lambda h: YES,
    ("NextEpoch", "EpochKept"): lambda epoch: epoch,
    ("IsOver", "OverWhenFenced"): lambda b, h: Not(F.is_open(h)),
    ("WriterOf", "SameWriter"): lambda w, incarnation: F.life(w) == 0,
    ("InEpoch", "EpochUnchecked"): lambda b, epoch: YES,
    ("IsSealed", "SealSkipped"): lambda s, h: YES,
    ("SegmentWrite", "BlindWrite"): lambda s, i: YES,
    ("CatchUp", "TailOnly"): from_tail,
    ("Follows", "GapIgnored"): lambda s, n, start: YES,
    ("PollAnswer", "ExactLookUp"): lambda first, count, start: first >= start,
    ("RunOf", "RunWithoutWriters"): NO,
    ("ReadyToDelete", "DeleteFirst"): CLAIMED,
    ("DeletedUpTo", "Unwritten"): lambda s, i: i + 1,
    ("CasClaim", "ClaimIgnored"): lambda s, n: YES,
    ("CursorAfter", "CursorOnceMore"): lambda s, n: s.cursor + s.run_to(s.job(n)) - s.job(n),
    ("CursorAfter", "CursorFromClaim"): lambda s, n: s.run_to(s.job(n)),
    ("ClaimEpoch", "SameClaimEpoch"): lambda s: If(s.claim > 1, s.claim, 1),
    # Which tail is full is open here: each node may have a limit of its own, so these are right.
    ("LimitOf", "SmallAndLarge"): None,
    ("ShapeOf", "NoShape"): None,
    ("IsFull", "FullForItself"): None,
}
BESIDE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("IsCommitted", "DedupSkipped"): {"fresh": lambda log, upto, b: YES},
    ("IsCommitted", "HandOverTrusted"): {"fresh": lambda log, upto, b: YES},
    ("IsOver", "OverWhenFenced"): {"stays_over": lambda b, h: YES},
}
# What no proof here can see, and why.
UNSEEN = {
    (
        "IsFull",
        "NeverFull",
    ): "the bound of a tail counts the nodes: TLC checks it for two and three",
}
