"""The laws of the registers that processes share beside the log: leases, cursors, members, plans, commits.

Each function is told what a register held (None: it was missing) and what it holds now.
"""

from leaderless.core.claims import Claim
from leaderless.core.coordination import Json
from leaderless.core.headlog.commits import Committed, committed_of
from leaderless.groups.cursors import cursor_of
from leaderless.groups.members import Roster, Tenure, roster_of
from leaderless.table.manifest import Manifest, manifest_of
from leaderless.upkeep.laws.head import HeadLaw
from leaderless.upkeep.laws.rules import raising, require, require_claimed, require_left_out
from leaderless.upkeep.staged import condemned_in


def lease_changed(old: Claim | None, after: Claim) -> None:
    """A lease: whoever takes it has an epoch of its own; it is changed by its owner alone."""
    before = old or Claim()
    text = f"{before} became {after}"
    if after.owner is None:
        same = after.epoch == before.epoch
        require(same, "OneLiveClaim", f"a stale worker released it: {text}")
    require(after.epoch >= before.epoch, "OneLiveClaim", f"an epoch came back: {text}")
    if after.owner is not None and after.epoch == before.epoch:
        same = after.owner == before.owner
        require(same, "OneLiveClaim", f"no epoch of its own: {text}")
        require(after.beat > before.beat, "OneLiveClaim", f"a beat came back: {text}")


def cursor_changed(old: Json, new: Json, register: str, tenure: Tenure | None) -> None:
    """A group's cursor in a key; `tenure`: what `register` says of the key."""
    before, after = cursor_of(old) if old else None, cursor_of(new)
    require_claimed(after.epoch, register, tenure, raising)
    if before is None:
        return
    text = f"{old} became {new}"
    require(after.epoch >= before.epoch, "OneLiveClaim", f"an epoch came back: {text}")
    require(after.next >= before.next, "CommitsKept", text)
    rises = 0 <= after.failures - before.failures <= 1 or after.next > before.next
    require(rises, "FailuresCounted", text)


def members_changed(old: Json, new: Json) -> None:
    """The members of a group, and its keys: whoever takes one has an epoch of its own."""
    before, after = roster_of(old) if old else Roster(), roster_of(new)
    text = f"version {after.version} after {before.version}"
    require(after.version == before.version + 1, "ValueNeverReturns", text)
    for key, was in before.keys.items():
        text = f"key {key!r} was {was}, is {after.keys.get(key)}"
        require(key in after.keys and after.keys[key].first == was.first, "InterestKept", text)
        tenure = after.keys[key]
        goes_on = tenure.epoch == was.epoch and tenure.owner in (was.owner, None)
        is_free = was.owner not in after.members
        taken = tenure.epoch == was.epoch + 1 and tenure.owner in after.members and is_free
        require(goes_on or taken, "OneLiveClaim", text)


def committed_changed(old: Json, new: Json, head: HeadLaw) -> None:
    """Committed offsets of nodes, in a log that `head` has."""
    before, after = committed_of(old) if old else Committed(), committed_of(new)
    require_left_out(after.slot, head.end, raising)
    text = f"slot {after.slot} after {before.slot}"
    require(after.slot >= before.slot, "CommitsKept", text)
    for key, offset in before.offsets.items():
        kept = max(after.offsets.get(key, -1), head.committed_below(key, after.slot))
        text = f"{key!r} at {offset} is left out, and not in the log below slot {after.slot}"
        require(kept >= offset, "CommitsKept", text)


def plan_changed(old: Json, new: Json, *, is_done: bool) -> None:
    """What the epoch of a sink is: decided once; condemned parts stay so until it is over."""
    if old is None or is_done:
        return
    condemned = condemned_in(old)
    if condemned is None:
        require(new == old, "PlanKept", f"{old} became {new}, and its epoch is not over")
        return
    later = condemned_in(new) if new else frozenset[str]()
    if later is None:
        parts = new["parts"] if isinstance(new, dict) else None
        again = condemned.intersection(parts if isinstance(parts, list) else [])
        require(not again, "PlanKept", f"the plan has condemned parts: {sorted(again)}")
    else:
        text = f"parts are condemned no more: {sorted(condemned - later)}"
        require(condemned <= later, "PlanKept", text)


def manifest_changed(old: Json, new: Json, register: str, claim: Claim | None) -> None:
    """The list of merged files; `claim`: what `register` holds, which has the claim of it."""
    before, after = manifest_of(old) if old else Manifest(), manifest_of(new)
    text = f"version {after.version} after {before.version}"
    require(after.version == before.version + 1, "ValueNeverReturns", text)
    text = f"epoch {after.epoch} after {before.epoch}"
    require(after.epoch >= before.epoch, "OneLiveClaim", text)
    require_claimed(after.epoch, register, claim, raising)
    ends = (after.sealed, after.start.slot, after.start.segment)
    began = (before.sealed, before.start.slot, before.start.segment)
    forward = all(one >= other for one, other in zip(ends, began, strict=True))
    require(forward, "CommittedReadable", f"files and start {ends} after {began}")
