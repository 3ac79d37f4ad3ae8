"""What the second checker visits: all steps of HeadLog, and its wrong decisions.

It is HeadLog.tla's `Next` and HeadLogBroken.tla, written again.
`variant` makes a model in which decisions have others in their place, under the names of the manifest.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any

from specs.second.head_log import HeadLog
from specs.second.head_log_laws import Laws
from specs.second.head_log_state import (
    FENCED,
    Batch,
    Head,
    State,
    Worker,
    renamed,
    view_of,
)
from specs.second.head_log_views import Entry, Id, Key, Map, Node, View, flatten, fold, in_log

ONE_NODE = "a"  # OneNode


class Checked(HeadLog):
    """HeadLog with its laws, for the second checker."""

    specification = "Spec"

    def laws(self) -> Mapping[str, Any]:
        """Invariants by name."""
        return Laws(self).of_states()

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        """Those of HeadLog."""
        for name, states in self._next(s):
            yield from ((name, after) for after in states)

    def initial(self) -> list[State]:
        """An empty log."""
        return [State()]

    def _next(self, s: State) -> Iterator[tuple[str, Iterable[State]]]:
        """The next-state relation of HeadLog: every step, and the states after it; none: not possible."""
        nodes = self.names
        for n in nodes:
            w = self.writer_of(s, n)
            for content in self.contents(range(self.keys)):
                for epoch in range(s.head.epoch + 1):
                    yield "Send", self.send_in(s, w, content, epoch)
            own = next((each for each in s.batch if each[0] == n), w)
            if self.may_cas(s, n):
                for group in self.groups(s, n):
                    yield "Commit", self.commit_group(s, n, group)
                    if self.max_in_flight > 0:
                        yield "Unknown", self.unknown_group(s, n, group)
            yield "Conflict", self.conflict(s, n)
            yield "Seal", self.seal(s, n)
            yield "Refresh", self.refresh(s, n)
            for m in nodes:
                yield "HandOver", self.hand_over(s, own, m)
            for a in s.answers:
                if a.to == n:
                    yield "Answered", self.answered_with(s, n, a)
            yield "Acked", self.acknowledge(s, own)
            yield "Reject", self.reject(s, own)
            if sum(s.incarnation.values()) < self.max_incarnation:
                yield "Restart", self.restart_as(s, n, s.incarnation.get(n, 0) + 1)
            if self.may_abandon:
                yield "Abandon", self.abandon(s, own)
            yield "Claim", self.claim(s, n)
            yield "CompactWrite", self.compact_write(s, n)
            yield "CompactDelete", self.compact_delete(s, n)
            yield "CompactCursor", self.compact_cursor(s, n)
            yield "Release", self.release(s, n)
            if self.may_give_up:
                yield "GiveUp", self.give_up(s, n)
        for request in s.inflight:
            yield "LateCommit", self.late_commit_of(s, request)
        yield "Fence", self.fence(s)
        yield "Unfence", self.unfence(s)
        if self.specification == "RaisesSpec":
            yield "RaiseEpoch", self.raise_epoch(s)

    def representative(self, state: State) -> State:
        """The least of the states that differ only in the names of nodes."""
        if not self.symmetric:
            return state
        names = self.names
        orders = [tuple(zip(names, order, strict=True)) for order in permutations(names)]
        found: list[State] = [renamed(state, order) for order in orders]
        return min(found, key=hash)


def variant(replace: Mapping[str, str], specification: str) -> type[Checked]:
    """The model with the decisions that the manifest names.

    Raises:
        KeyError: a decision is not written here.
    """
    parts: dict[str, Any] = {"specification": specification}
    for old, new in replace.items():
        parts |= _INSTEAD[old, new]
    return type("Variant", (Checked,), parts)


def _same_length(_: Checked, a: Head, b: Head) -> bool:
    return a.end == b.end


def _first_offset_in_tail(m: Checked, v: View, key: Key) -> int:
    return 0 if v.length > m.tail_limit else v.end(key)


def _hand_over_trusted(m: Checked, s: State, n: Node, id_: Id) -> bool:
    return id_.node == n and in_log(view_of(s, n), id_)


def _tail_only(m: Checked, s: State, v: View) -> View:
    return m.from_tail(s, v)


def _exact_look_up(_: Checked, view: View, key: Key, start: int) -> list[int]:
    return flatten(b for b in view.blocks.get(key, ()) if b.first >= start)


def _run_without_writers(_: Checked, segment: Iterable[Entry]) -> View:
    return fold(segment)._replace(latest=Map())


def _cursor_once_more(_: Checked, s: State, w: Worker) -> int:
    return s.task.cursor + s.runs[w.base].length


def _cursor_from_claim(_: Checked, s: State, w: Worker) -> int:
    return w.base + s.runs[w.base].length


def _over_when_fenced(_: Checked, b: Batch, h: Head) -> bool:
    return h.state == FENCED


_INSTEAD: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("LimitOf", "SmallAndLarge"): {"limit_of": lambda m, n: 1 if n == ONE_NODE else m.tail_limit},
    ("ShapeOf", "NoShape"): {"shape_of": lambda _, n, h: h.limit},
    ("IsFull", "FullForItself"): {"is_full": lambda m, n, h: len(h.tail) >= m.limit_of(n)},
    ("IsFull", "NeverFull"): {"is_full": lambda *_: False},
    ("Freed", "FreedByNumber"): {"freed": lambda _, s, n, h: len(h.tail)},
    ("FirstOffset", "FirstOffsetInTail"): {"first_offset": _first_offset_in_tail},
    ("IsCommitted", "DedupSkipped"): {"is_committed": lambda *_: False},
    ("IsCommitted", "HandOverTrusted"): {"is_committed": _hand_over_trusted},
    ("HasOutcome", "AnsweredEarly"): {"has_outcome": lambda *_: True},
    ("SameHead", "SameLength"): {"same_head": _same_length},
    ("ObservedOpen", "StateIgnored"): {"observed_open": lambda *_: True},
    ("NextEpoch", "EpochKept"): {"next_epoch": lambda _, epoch: epoch},
    ("IsOver", "OverWhenFenced"): {"is_over": _over_when_fenced},
    ("WriterOf", "SameWriter"): {"writer_of": lambda _, s, n: (n, 0)},
    ("InEpoch", "EpochUnchecked"): {"in_epoch": lambda *_: True},
    ("IsSealed", "SealSkipped"): {"is_sealed": lambda *_: True},
    ("SegmentWrite", "BlindWrite"): {"segment_write": lambda _, old, tail: tail},
    ("CatchUp", "TailOnly"): {"catch_up": _tail_only},
    ("Follows", "GapIgnored"): {"follows": lambda *_: True},
    ("PollAnswer", "ExactLookUp"): {"poll_answer": _exact_look_up},
    ("RunOf", "RunWithoutWriters"): {"run_of": _run_without_writers},
    ("ReadyToDelete", "DeleteFirst"): {"ready_to_delete": "claimed"},
    ("DeletedUpTo", "Unwritten"): {"deleted_up_to": lambda _, s, b: b + 1},
    ("CasClaim", "ClaimIgnored"): {"cas_claim": lambda *_: True},
    ("CursorAfter", "CursorOnceMore"): {"cursor_after": _cursor_once_more},
    ("CursorAfter", "CursorFromClaim"): {"cursor_after": _cursor_from_claim},
    ("ClaimEpoch", "SameClaimEpoch"): {"claim_epoch": lambda _, s: max(1, s.task.epoch)},
}
