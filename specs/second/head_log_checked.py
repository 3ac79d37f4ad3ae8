"""What the second checker visits: all steps of HeadLog, what it promises, and its wrong decisions.

It is HeadLog.tla's `Next`, HeadLogProperties.tla, Log.tla and HeadLogBroken.tla, written again. A law of states
is a function of a state; a law of steps is one of the states before and after.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from specs.second.head_log import HeadLog
from specs.second.head_log_state import FENCED, OPEN, TOMBSTONE, Ack, State, renamed, view_of
from specs.second.head_log_views import EMPTY_VIEW, Content, Entry, Key, Map, flatten, fold, in_log

ONE_NODE = "a"  # OneNode


def one_each(keys: Sequence[int]) -> frozenset[Content]:
    """A message of each key."""
    return frozenset({Content(Map(dict.fromkeys(keys, 1)), Map())})


def mixed(keys: Sequence[int]) -> frozenset[Content]:
    """Two messages of some keys, and a committed offset of each."""
    found = set()
    for chosen in product((False, True), repeat=len(keys)):
        two: dict[Key, int] = {key: 2 for key, is_in in zip(keys, chosen, strict=True) if is_in}
        if two:
            found.add(Content(Map(two), Map(two)))
    return frozenset(found)


CONTENTS = {"OneEach": one_each, "Mixed": mixed}


class Checked(HeadLog):
    """HeadLog with its laws, for the second checker."""

    specification = "Spec"

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

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """Invariants."""
        return {
            "TypeOK": self.type_ok,
            "OffsetsDense": lambda s: all(slot_fits(s.log, i) for i in range(len(s.log))),
            "AckedExactlyOnce": lambda s: all(answers(s.log, a) for a in s.acked),
            "RejectedNeverAppended": lambda s: all(e.id not in s.rejected for e in s.log),
            "ViewIsPrefix": view_is_prefix,
            "PollContiguous": self.poll_contiguous,
            "CommittedReadable": lambda s: self.catch_up(s, EMPTY_VIEW) == fold(s.log),
            "CursorNeverPassesCompacted": self.cursor_never_passes_compacted,
            "OneLiveClaim": one_live_claim,
        }

    def step_laws(self) -> Mapping[str, Callable[[State, State], bool]]:
        """Properties of one step."""
        return {
            "NoAppendWhileFenced": no_append_while_fenced,
            "SegmentsImmutable": self.segments_immutable,
            "CursorNeverMovesBack": lambda s, t: t.task.cursor >= s.task.cursor,
            "HeadNeverReturns": head_never_returns,
            "RefinesLog": refines_log,
        }

    def type_ok(self, s: State) -> bool:
        m, h = self, s.head
        return (
            h.state in (OPEN, FENCED)
            and 0 <= h.epoch <= m.max_epoch + 1
            and len(h.tail) < m.tail_limit + m.nodes
            and h.end == len(s.log)
            and all(view.length <= len(s.log) for view in s.view.values())
        )

    def poll_contiguous(self, s: State) -> bool:
        return all(
            self.poll_answer(view, key, start) == list(range(start, self.first_offset(view, key)))
            for view in s.view.values()
            for key in range(self.keys)
            for start in range(self.first_offset(view, key) + 1)
        )

    def segments_immutable(self, s: State, t: State) -> bool:
        """Segments and runs never change; a segment ends as a tombstone, and stays one."""
        segments = all(
            s.segments.get(b) in (None, t.segments[b])
            or (t.segments[b] == TOMBSTONE and self.run_at(s, b) is not None)
            for b in t.segments
        )
        return segments and all(s.runs.get(b) in (None, run) for b, run in t.runs.items())

    def cursor_never_passes_compacted(self, s: State) -> bool:
        return all(
            s.segments.get(b) in (None, TOMBSTONE) and self._is_in_run(s, b)
            for b in range(s.task.cursor)
        )

    def _is_in_run(self, s: State, b: int) -> bool:
        r = self.run_at(s, b)
        return r is not None and s.runs[r] == self.run_of(s.log[r : r + s.runs[r].length])


def slot_fits(log: Sequence[Entry], i: int) -> bool:
    """A slot takes exactly the offsets after those of all earlier slots, under an id of its own."""
    e = log[i]
    totals = {key: sum(each.counts.get(key, 0) for each in log[:i]) for key in e.first}
    return dict(e.first) == totals and all(each.id != e.id for each in log[:i])


def answers(log: Sequence[Entry], a: Ack) -> bool:
    """An answer names one entry of the log, the only one that has this payload."""
    same = [e for e in log if e.payload == a.payload]
    return len(same) == 1 and same[0].id == a.id and same[0].first == a.first


def view_is_prefix(s: State) -> bool:
    return all(view == fold(s.log[: view.length]) for view in s.view.values())


def one_live_claim(s: State) -> bool:
    return sum(w.epoch == s.task.epoch for w in s.worker.values()) <= 1


def no_append_while_fenced(s: State, t: State) -> bool:
    """Nothing is appended while fenced, or by an old epoch after a new one."""
    new = t.log[len(s.log) :]
    return t.log == s.log or (s.head.state == OPEN and all(e.epoch == s.head.epoch for e in new))


def head_never_returns(s: State, t: State) -> bool:
    """The head only grows."""
    a, b = s.head, t.head
    return a == b or b.epoch > a.epoch or (b.epoch == a.epoch and b.end > a.end)


def refines_log(s: State, t: State) -> bool:
    """HeadLog is a plain log: each step is one of Log.tla, or changes nothing there."""
    before, after = (each.head.state == FENCED for each in (s, t))
    changed = (s.log != t.log, s.acked != t.acked, s.rejected != t.rejected, before != after)
    match changed:
        case False, False, False, _:
            return True
        case True, False, False, False:
            grown = t.log[: len(s.log)] == s.log and len(t.log) > len(s.log)
            new = range(len(s.log), len(t.log))
            fits = all(slot_fits(t.log, i) and t.log[i].id not in s.rejected for i in new)
            return not before and grown and fits
        case False, True, False, False:
            return len(t.acked - s.acked) == 1 and all(answers(s.log, a) for a in t.acked - s.acked)
        case False, False, True, False:
            return not {e.id for e in s.log} & (t.rejected - s.rejected)
    return False


def variant(replace: Mapping[str, str], specification: str) -> type[Checked]:
    """The model with the decisions that the manifest names.

    Raises:
        KeyError: a decision is not written here.
    """
    parts: dict[str, Any] = {"specification": specification}
    for old, new in replace.items():
        parts |= _INSTEAD[old, new]
    return type("Variant", (Checked,), parts)


_INSTEAD: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("LimitOf", "SmallAndLarge"): {"limit_of": lambda m, n: 1 if n == ONE_NODE else m.tail_limit},
    ("ShapeOf", "NoShape"): {"shape_of": lambda _, n, h: h.limit},
    ("IsFull", "FullForItself"): {"is_full": lambda m, n, h: len(h.tail) >= m.limit_of(n)},
    ("IsFull", "NeverFull"): {"is_full": lambda *_: False},
    ("Freed", "FreedByNumber"): {"freed": lambda _, s, n, h: len(h.tail)},
    ("FirstOffset", "FirstOffsetInTail"): {
        "first_offset": lambda m, v, key: 0 if v.length > m.tail_limit else v.end(key)
    },
    ("IsCommitted", "DedupSkipped"): {"is_committed": lambda *_: False},
    ("IsCommitted", "HandOverTrusted"): {
        "is_committed": lambda _, s, n, id_: id_.node == n and in_log(view_of(s, n), id_)
    },
    ("HasOutcome", "AnsweredEarly"): {"has_outcome": lambda *_: True},
    ("SameHead", "SameLength"): {"same_head": lambda _, a, b: a.end == b.end},
    ("ObservedOpen", "StateIgnored"): {"observed_open": lambda *_: True},
    ("NextEpoch", "EpochKept"): {"next_epoch": lambda _, epoch: epoch},
    ("IsOver", "OverWhenFenced"): {"is_over": lambda _, b, h: h.state == FENCED},
    ("WriterOf", "SameWriter"): {"writer_of": lambda _, s, n: (n, 0)},
    ("InEpoch", "EpochUnchecked"): {"in_epoch": lambda *_: True},
    ("IsSealed", "SealSkipped"): {"is_sealed": lambda *_: True},
    ("SegmentWrite", "BlindWrite"): {"segment_write": lambda _, old, tail: tail},
    ("CatchUp", "TailOnly"): {"catch_up": lambda m, s, v: m.from_tail(s, v)},
    ("Follows", "GapIgnored"): {"follows": lambda *_: True},
    ("PollAnswer", "ExactLookUp"): {
        "poll_answer": lambda _, view, key, start: flatten(
            b for b in view.blocks.get(key, ()) if b.first >= start
        )
    },
    ("RunOf", "RunWithoutWriters"): {
        "run_of": lambda _, segment: fold(segment)._replace(latest=Map())
    },
    ("ReadyToDelete", "DeleteFirst"): {"ready_to_delete": "claimed"},
    ("DeletedUpTo", "Unwritten"): {"deleted_up_to": lambda _, s, b: b + 1},
    ("CasClaim", "ClaimIgnored"): {"cas_claim": lambda *_: True},
    ("CursorAfter", "CursorOnceMore"): {
        "cursor_after": lambda _, s, w: s.task.cursor + s.runs[w.base].length
    },
    ("CursorAfter", "CursorFromClaim"): {
        "cursor_after": lambda _, s, w: w.base + s.runs[w.base].length
    },
    ("ClaimEpoch", "SameClaimEpoch"): {"claim_epoch": lambda _, s: max(1, s.task.epoch)},
}
