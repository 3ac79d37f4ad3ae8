"""What HeadLog promises (specs/HeadLog/HeadLogProperties.tla and Log.tla), and the contents of its batches.

A law of states is a function of a state; a law of steps is one of the states before and after.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from specs.second.head_log import HeadLog
from specs.second.head_log_state import FENCED, OPEN, TOMBSTONE, Ack, State
from specs.second.head_log_views import (
    EMPTY_VIEW,
    Content,
    Entry,
    Key,
    Map,
    fold,
)


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


class Laws:
    """The laws of one model, by name."""

    def __init__(self, model: HeadLog) -> None:
        self._model = model

    def of_states(self) -> Mapping[str, Callable[[State], bool]]:
        """Invariants."""
        return {
            "TypeOK": self.type_ok,
            "OffsetsDense": lambda s: all(slot_fits(s.log, i) for i in range(len(s.log))),
            "AckedExactlyOnce": lambda s: all(answers(s.log, a) for a in s.acked),
            "RejectedNeverAppended": lambda s: all(e.id not in s.rejected for e in s.log),
            "ViewIsPrefix": view_is_prefix,
            "PollContiguous": self.poll_contiguous,
            "CommittedReadable": lambda s: self._model.catch_up(s, EMPTY_VIEW) == fold(s.log),
            "CursorNeverPassesCompacted": self.cursor_never_passes_compacted,
            "OneLiveClaim": one_live_claim,
        }

    def of_steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        """Properties of one step."""
        return {
            "NoAppendWhileFenced": no_append_while_fenced,
            "SegmentsImmutable": self.segments_immutable,
            "CursorNeverMovesBack": lambda s, t: t.task.cursor >= s.task.cursor,
            "HeadNeverReturns": head_never_returns,
            "RefinesLog": refines_log,
        }

    def type_ok(self, s: State) -> bool:
        m, h = self._model, s.head
        return (
            h.state in (OPEN, FENCED)
            and 0 <= h.epoch <= m.max_epoch + 1
            and len(h.tail) < m.tail_limit + m.nodes
            and h.end == len(s.log)
            and all(view.length <= len(s.log) for view in s.view.values())
        )

    def poll_contiguous(self, s: State) -> bool:
        return all(
            self._model.poll_answer(view, key, start)
            == list(range(start, self._model.first_offset(view, key)))
            for view in s.view.values()
            for key in range(self._model.keys)
            for start in range(self._model.first_offset(view, key) + 1)
        )

    def segments_immutable(self, s: State, t: State) -> bool:
        """Segments and runs never change; a segment ends as a tombstone, and stays one."""
        segments = all(
            s.segments.get(b) in (None, t.segments[b])
            or (t.segments[b] == TOMBSTONE and self._model.run_at(s, b) is not None)
            for b in t.segments
        )
        return segments and all(s.runs.get(b) in (None, run) for b, run in t.runs.items())

    def cursor_never_passes_compacted(self, s: State) -> bool:
        return all(
            s.segments.get(b) in (None, TOMBSTONE) and self._is_in_run(s, b)
            for b in range(s.task.cursor)
        )

    def _is_in_run(self, s: State, b: int) -> bool:
        r = self._model.run_at(s, b)
        return r is not None and s.runs[r] == self._model.run_of(s.log[r : r + s.runs[r].length])


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
