"""The log on one register (specs/HeadLog/HeadLog.tla and Views.tla), written again.

An action is a function of a state and of what it chooses; it yields the states after it, none where it is not
possible. Names, order and guards are those of HeadLog.tla, so that the two can be laid side by side. Decisions
are methods of their own: who is to be wrong, or goes by something else, has another one in the same place.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from specs.head_log.state import (
    FENCED,
    OPEN,
    TOMBSTONE,
    Ack,
    Answer,
    Batch,
    HandOver,
    Head,
    Request,
    State,
    Worker,
    answer_of,
    is_ordered,
    kept,
    view_of,
)
from specs.head_log.views import (
    Content,
    Entry,
    Id,
    Key,
    Map,
    Node,
    View,
    Writer,
    apply,
    apply_all,
    fold,
    in_log,
    merge,
)


@dataclass(frozen=True)
class HeadLog:
    """The constants of HeadLog.tla."""

    nodes: tuple[Node, ...]
    keys: tuple[Key, ...]
    tail_limit: int
    run_segments: int
    contents: frozenset[Content]
    max_seq: float
    max_incarnation: int
    max_epoch: float
    max_in_flight: float
    max_hand_overs: float
    max_claims: int
    may_abandon: bool
    may_give_up: bool
    closed: int

    # ---------------------------------------------------------------- decisions

    def writer_of(self, s: State, n: Node) -> Writer:
        """A restarted node is a new writer."""
        return n, s.incarnation.get(n, 0)

    def same_head(self, a: Head, b: Head) -> bool:
        """What the store compares: the whole value."""
        return a == b

    def next_epoch(self, epoch: int) -> int:
        return epoch + 1

    def limit_of(self, n: Node) -> int:
        """What a node would choose."""
        return self.tail_limit

    def shape_of(self, n: Node, h: Head) -> int | None:
        """Whoever appends first writes it into the head."""
        return self.limit_of(n) if h.limit is None else h.limit

    def is_full(self, n: Node, h: Head) -> bool:
        """From the first append on a function of the head: all nodes agree."""
        limit = self.shape_of(n, h)
        return limit is not None and len(h.tail) >= limit

    def is_sealed(self, s: State, h: Head) -> bool:
        """Its own idempotent write was acknowledged, or found it there."""
        return h.base in s.segments

    def freed(self, s: State, n: Node, h: Head) -> int:
        """Contents decide: it wrote this segment, or it read it."""
        return len(s.segments[h.base])

    def segment_write(self, old: Any, tail: tuple[Entry, ...]) -> Any:
        """Create, never overwrite."""
        return tail if old is None else old

    def observed_open(self, h: Head) -> bool:
        return h.state == OPEN

    def in_epoch(self, b: Batch, epoch: int) -> bool:
        """A batch is committed in its own epoch or never."""
        return b.epoch == epoch

    def follows(self, v: View, start: int) -> bool:
        """Entries from slot `start` leave no hole in the view."""
        return start <= v.length

    def is_committed(self, s: State, n: Node, id_: Id) -> bool:
        """A committer checks this before it adds a batch."""
        return in_log(view_of(s, n), id_)

    def has_outcome(self, v: View, id_: Id) -> bool:
        """A node checks this before it answers its client."""
        return in_log(v, id_)

    def is_over(self, b: Batch, h: Head) -> bool:
        """A batch that is not in the log when its epoch is over never will be, in any copy.

        Nothing is appended in a fenced epoch, so a batch that was made in one is over from the beginning.
        """
        return h.epoch > b.epoch or (h.epoch == b.epoch and h.state == FENCED)

    def first_offset(self, v: View, key: Key) -> int:
        """The first offset that an append of a key gets by a node with this view."""
        return v.end(key)

    def end_is_expected(self, v: View, b: Batch) -> bool:
        return all(self.first_offset(v, key) == end for key, end in b.content.expected.items())

    def token_is_highest(self, v: View, b: Batch) -> bool:
        return all(v.token(key) <= token for key, token in b.content.tokens.items())

    def keys_are_open(self, v: View, b: Batch) -> bool:
        return all(v.token(key) != self.closed for key in b.content.counts)

    def is_kept_out(self, v: View, b: Batch) -> bool:
        """By a condition, and for good: ends and tokens only rise."""
        return (
            any(self.first_offset(v, key) > end for key, end in b.content.expected.items())
            or any(v.token(key) > token for key, token in b.content.tokens.items())
            or any(v.token(key) == self.closed for key in b.content.counts)
        )

    def run_of(self, segment: tuple[Entry, ...]) -> View:
        """A compacted segment keeps the blocks of each key and the writers' highest seq, not the entries."""
        return fold(segment)

    ready_to_delete = "written"

    def deleted_up_to(self, s: State, b: int) -> int:
        return b + s.runs[b].length

    def cas_claim(self, s: State, w: Worker) -> bool:
        """The cursor moves by cas from one's own claim."""
        return s.task.epoch == w.epoch

    def cursor_after(self, s: State, w: Worker) -> int:
        return s.task.cursor + s.runs[s.task.cursor].length

    def claim_epoch(self, s: State) -> int:
        return s.task.epoch + 1

    # ---------------------------------------------------------------- appending

    def send_in(self, s: State, w: Writer, content: Content, epoch: int) -> Iterator[State]:
        """A batch is made; its epoch is that of some head the node has read, not always the newest."""
        seq = s.seq.get(w, 0)
        if w not in s.batch and epoch <= s.head.epoch and seq < self.max_seq:
            id_ = Id(*w, seq + 1)
            batch = Batch(id_, (w[0], s.incarnation.get(w[0], 0), seq + 1), epoch, content)
            yield s._replace(seq=s.seq.put(w, seq + 1), batch=s.batch.put(w, batch))

    def waiting(self, s: State, n: Node) -> frozenset[Batch]:
        """What a node may put into its next cas: its own batches and those handed over to it."""
        own = {b for w, b in s.batch.items() if w[0] == n}
        handed = {m.batch for m in s.handovers if m.to == n}
        return frozenset(b for b in own | handed if not self.is_committed(s, n, b.id))

    def groups(self, s: State, n: Node) -> Iterator[tuple[Batch, ...]]:
        """Every group commit, in any order."""
        ready = [b for b in self.waiting(s, n) if self.in_epoch(b, s.known[n].epoch)]
        for size in range(1, len(ready) + 1):
            for group in permutations(ready, size):
                if is_ordered(group) and self.are_admitted(view_of(s, n), group):
                    yield group

    def placed(
        self, v: View, epoch: int, group: Iterable[Batch]
    ) -> Iterator[tuple[View, Batch, Entry]]:
        """Each batch of a group, with the view of everything before it, and its entry there."""
        for b in group:
            counts, commits, expected = b.content
            first = Map({key: self.first_offset(v, key) for key in counts})
            e = Entry(b.id, b.payload, epoch, first, counts, commits, expected)
            yield v, b, e
            v = apply(v, e)

    def are_admitted(self, v: View, group: Iterable[Batch]) -> bool:
        """Each batch of a group keeps its condition, behind those before it."""
        return all(
            self.end_is_expected(before, b)
            and self.token_is_highest(before, b)
            and self.keys_are_open(before, b)
            for before, b, _ in self.placed(v, 0, group)
        )

    def entries(self, v: View, epoch: int, group: Iterable[Batch]) -> tuple[Entry, ...]:
        """The entries of a group, each with the offsets after everything before it."""
        return tuple(e for _, _, e in self.placed(v, epoch, group))

    def head_after(self, s: State, n: Node, h: Head, entries: tuple[Entry, ...]) -> Head:
        """Entries join the tail. Of a full one the head lets go of what the segment holds."""
        freed = self.freed(s, n, h) if self.is_full(n, h) else 0
        tail = h.tail[freed:] + entries
        return h._replace(limit=self.shape_of(n, h), base=h.base + freed, tail=tail)

    def has_room(self, s: State, n: Node, h: Head) -> bool:
        return not self.is_full(n, h) or self.is_sealed(s, h)

    def may_cas(self, s: State, n: Node) -> bool:
        """Whether the node may append now."""
        h = s.known.get(n)
        return h is not None and self.observed_open(h) and self.has_room(s, n, h)

    def accepted(self, s: State, request: Request) -> Head:
        """What the store writes: the broken variants compare less than the whole head."""
        return request.after._replace(state=s.head.state, epoch=s.head.epoch)

    def request(self, s: State, n: Node, group: Iterable[Batch]) -> Request:
        h = s.known[n]
        entries = self.entries(view_of(s, n), h.epoch, group)
        return Request(h, self.head_after(s, n, h, entries), entries)

    def commit_group(self, s: State, n: Node, group: tuple[Batch, ...]) -> Iterator[State]:
        """Cas ok, and the answer arrives."""
        if not (self.may_cas(s, n) and self.same_head(s.known[n], s.head)):
            return
        request = self.request(s, n, group)
        head, log = self.accepted(s, request), s.log + request.entries
        answers = {answer_of(s, n, b, head, log) for b in group if b.payload[0] != n}  # type: ignore[index]
        yield s._replace(
            head=head,
            log=log,
            view=s.view.put(n, apply_all(view_of(s, n), request.entries)),
            known=s.known.put(n, head),
            answers=s.answers | answers,
        )

    def conflict(self, s: State, n: Node) -> Iterator[State]:
        """Cas refused: another one moved the head. Read it again."""
        h = s.known.get(n)
        if h is None or self.same_head(h, s.head):
            return
        if self.observed_open(h) and self.waiting(s, n):
            yield s._replace(known=s.known.without(n))

    def unknown_group(self, s: State, n: Node, group: tuple[Batch, ...]) -> Iterator[State]:
        """No answer in time: the cas may have happened, may still happen, or never will."""
        if not self.may_cas(s, n):
            return
        known = s.known.without(n)
        if not self.same_head(s.known[n], s.head):
            yield s._replace(known=known)
            return
        request = self.request(s, n, group)
        for others in kept(s.inflight, self.max_in_flight):
            yield s._replace(inflight=others | {request}, known=known)

    def late_commit_of(self, s: State, request: Request) -> Iterator[State]:
        if self.same_head(request.before, s.head):
            head = self.accepted(s, request)
            yield s._replace(
                head=head, log=s.log + request.entries, inflight=s.inflight - {request}
            )

    def seal(self, s: State, n: Node) -> Iterator[State]:
        """Write the full tail as a segment. Any node that needs room does it; one that is there stays."""
        h = s.known.get(n)
        if h is not None and self.is_full(n, h):
            segment = self.segment_write(s.segments.get(h.base), h.tail)
            yield s._replace(segments=s.segments.put(h.base, segment))

    # ---------------------------------------------------------------- reading

    def run_at(self, s: State, b: int) -> int | None:
        """The first slot of the run that replaced the segment at `b`."""
        return next((r for r, run in s.runs.items() if r <= b < r + run.length), None)

    def end_of_sealed(self, s: State, b: int) -> int:
        segment, r = s.segments.get(b), self.run_at(s, b)
        if segment is not None and segment != TOMBSTONE:
            return b + len(segment)
        if segment is None or r is None:
            return b + self.tail_limit
        return r + s.runs[r].length

    def from_segment(self, s: State, v: View, b: int) -> View:
        """The entries of the segment at `b` that the view lacks, from it or from the run that replaced it."""
        segment, r = s.segments.get(b), self.run_at(s, b)
        if segment is None or (segment == TOMBSTONE and r is None):
            return v
        if segment == TOMBSTONE and r is not None:
            return merge(v, s.runs[r], self.end_of_sealed(s, b))
        return apply_all(v, segment[v.length - b :])

    def from_tail(self, s: State, v: View) -> View:
        return apply_all(v, s.head.tail[max(0, v.length - s.head.base) :])

    def catch_up(self, s: State, v: View) -> View:
        """One read of the head, then of the segments behind it: these never change."""
        b = 0
        while b < s.head.base:
            end = self.end_of_sealed(s, b)
            v = self.from_segment(s, v, b) if end > v.length else v
            b = end
        return self.from_tail(s, v)

    def refresh(self, s: State, n: Node) -> Iterator[State]:
        view = self.catch_up(s, view_of(s, n))
        views = s.view.put(n, view) if view.length else s.view
        yield s._replace(known=s.known.put(n, s.head), view=views)

    # ---------------------------------------------------------------- handing over, answering clients

    def hand_over(self, s: State, w: Writer, m: Node) -> Iterator[State]:
        n, b = w[0], s.batch.get(w)
        if m == n or b is None or self.max_hand_overs == 0 or in_log(view_of(s, n), b.id):
            return
        if not any((h.to, h.batch) == (m, b) for h in s.handovers):
            for others in kept(s.handovers, self.max_hand_overs):
                yield s._replace(handovers=others | {HandOver(m, view_of(s, n).length, b)})

    def answered_with(self, s: State, n: Node, a: Answer) -> Iterator[State]:
        """The helper's reply brings the entries that the asker lacks: its view grows without a read."""
        after, v = s._replace(answers=s.answers - {a}), view_of(s, n)
        behind = v.length - a.start
        if self.follows(v, a.start) and behind < len(a.entries):
            view = apply_all(v, a.entries[max(0, behind) :])
            after = after._replace(view=s.view.put(n, view), known=s.known.put(n, a.head))
        yield after

    def first_of(self, v: View, id_: Id, key: Key) -> int:
        own = [b.first for b in v.blocks.get(key, ()) if b.id == id_]
        return own[0] if own else self.first_offset(v, key)

    def ack_of(self, v: View, b: Batch) -> Ack:
        first = {key: self.first_of(v, b.id, key) for key in b.content.counts}
        return Ack(b.id, b.payload, Map(first))

    def acknowledge(self, s: State, w: Writer) -> Iterator[State]:
        n, b = w[0], s.batch.get(w)
        if b is not None and self.has_outcome(view_of(s, n), b.id):
            answers = frozenset(a for a in s.answers if a.to != n)  # it no longer waits for them
            acked = s.acked | {self.ack_of(view_of(s, n), b)}
            yield s._replace(acked=acked, batch=s.batch.without(w), answers=answers)

    def reject(self, s: State, w: Writer) -> Iterator[State]:
        n, b = w[0], s.batch.get(w)
        h = s.known.get(n)
        if b is None or in_log(view_of(s, n), b.id):
            return
        if (h is not None and self.is_over(b, h)) or self.is_kept_out(view_of(s, n), b):
            yield s._replace(rejected=s.rejected | {b.id}, batch=s.batch.without(w))

    def abandon(self, s: State, w: Writer) -> Iterator[State]:
        """The clients of a batch are gone: its node leaves it alone, wherever it is on its way."""
        if w in s.batch:
            yield s._replace(batch=s.batch.without(w))

    def restart_as(self, s: State, n: Node, incarnation: int) -> Iterator[State]:
        """All memory is gone. Requests and hand-overs of the former life stay in the network."""
        if incarnation > s.incarnation.get(n, 0):
            yield s._replace(
                incarnation=s.incarnation.put(n, incarnation),
                seq=Map({w: seq for w, seq in s.seq.items() if w[0] != n}),
                batch=Map({w: b for w, b in s.batch.items() if w[0] != n}),
                known=s.known.without(n),
                view=s.view.without(n),
                worker=s.worker.without(n),
            )

    # ---------------------------------------------------------------- fencing

    def fence(self, s: State) -> Iterator[State]:
        if s.head.epoch < self.max_epoch and s.head.state == OPEN:
            yield self._switched(s, FENCED)

    def unfence(self, s: State) -> Iterator[State]:
        if s.head.state == FENCED:
            yield self._switched(s, OPEN)

    def raise_epoch(self, s: State) -> Iterator[State]:
        """Nothing but the epoch changes, as before a vacuum: what was under way in the old one is over."""
        if s.head.epoch < self.max_epoch:
            yield self._switched(s, s.head.state)

    def _switched(self, s: State, state: str) -> State:
        return s._replace(head=s.head._replace(state=state, epoch=self.next_epoch(s.head.epoch)))

    # ---------------------------------------------------------------- compaction

    def sealed_from(self, s: State, b: int) -> tuple[Entry, ...] | None:
        """The entries of the next `run_segments` segments from `b` on; None: there are not so many."""
        found: tuple[Entry, ...] = ()
        for _ in range(self.run_segments):
            segment = s.segments.get(b)
            if b >= s.head.base or segment is None or segment == TOMBSTONE:
                return None
            found, b = found + segment, b + len(segment)
        return found

    def may_compact(self, s: State, b: int) -> bool:
        return b in s.runs or self.sealed_from(s, b) is not None

    def claim(self, s: State, n: Node) -> Iterator[State]:
        """Any node may claim at any time: a beat that stands still may belong to a slow worker."""
        cursor = s.task.cursor
        if n not in s.worker and self.may_compact(s, cursor) and s.task.epoch < self.max_claims:
            epoch = self.claim_epoch(s)
            task = s.task._replace(owner=n, epoch=epoch)
            yield s._replace(task=task, worker=s.worker.put(n, Worker("claimed", epoch, cursor)))

    def compact_write(self, s: State, n: Node) -> Iterator[State]:
        w = s.worker.get(n)
        if w and w.phase == "claimed":
            runs, segment = s.runs, self.sealed_from(s, w.base)
            if w.base not in runs and segment is not None:
                runs = runs.put(w.base, self.run_of(segment))
            yield s._replace(runs=runs, worker=s.worker.put(n, w._replace(phase="written")))

    def compact_delete(self, s: State, n: Node) -> Iterator[State]:
        """The store has no delete: a tombstone."""
        w = s.worker.get(n)
        if w and w.phase == self.ready_to_delete:
            end = self.deleted_up_to(s, w.base)
            gone = {b: TOMBSTONE for b in s.segments if w.base <= b < end}
            worker = s.worker.put(n, w._replace(phase="deleted"))
            yield s._replace(segments=Map(s.segments | gone), worker=worker)

    def compact_cursor(self, s: State, n: Node) -> Iterator[State]:
        w = s.worker.get(n)
        if w and w.phase == "deleted" and self.cas_claim(s, w):
            task = s.task._replace(cursor=self.cursor_after(s, w))
            yield s._replace(task=task, worker=s.worker.put(n, w._replace(phase="done")))

    def release(self, s: State, n: Node) -> Iterator[State]:
        """The end of a job: done, or fenced off by a newer claim."""
        w = s.worker.get(n)
        if w and (w.phase == "done" or s.task.epoch != w.epoch):
            task = s.task._replace(owner=None) if s.task.epoch == w.epoch else s.task
            yield s._replace(task=task, worker=s.worker.without(n))

    def give_up(self, s: State, n: Node) -> Iterator[State]:
        """A worker hears nothing from the store and stops. Its claim stands until another one is made."""
        if n in s.worker:
            yield s._replace(worker=s.worker.without(n))
