"""Holds the real code to the model: every step of a run is a step of HeadLog, or the run fails there.

The model is `specs.head_log`, whose steps are those that TLC takes. `Refinement` is told of every
change of a register, at the moment at which the store makes it, and of every step that a node's core names
(`leaderless.core.headlog.trace`). It keeps the state of the model beside the real one. For each step it looks
whether the model may take it here, and with the same numbers. If not it raises `Violation`: `RefinesHeadLog`.

The model's cas takes effect and is answered in one step. Here these are two, as in reality:

    Try       the node's cas goes into `inflight`, if the model's node might make it
    the head  one of `inflight` takes effect (`late_commit_of`), or the log is fenced or opened
    Commit    the node learns of the head that its cas made; Refresh and Answered: of another head

So an answer may be late, doubled or lost, and a cas of a node that is dead may still take effect. A node learns
only heads that the register held, and none that is older than what it knows. docs/evidence/refinement.md says
which variables of the model are followed, and what the model does not have.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from itertools import chain
from typing import Any, cast

from leaderless.core.headlog import records
from leaderless.core.headlog.conditions import CLOSED
from leaderless.core.headlog.index import COMPACTED
from leaderless.core.messages import Entry as Logged
from leaderless.peers.lines import writer_of
from leaderless.upkeep.laws.head import entries_in
from simulation.nodes import StrategyMaker
from simulation.noting import Noted, Noting, Step
from simulation.refined_compaction import RefinedCompaction, id_of
from specs.head_log.state import (
    NAMED,
    TOMBSTONE,
    Batch,
    HandOver,
    Head,
    State,
    is_ordered,
    view_of,
)
from specs.head_log.steps import HeadLog
from specs.head_log.views import (
    EMPTY_VIEW,
    Content,
    Entry,
    Map,
    Node,
    View,
    apply_all,
    fold,
    in_log,
)

KEPT_VIEWS = 256  # the newest slots of which the view is at hand; an older one is folded again
KEPT_HAND_OVERS = 32
KEPT_HEADS = 256
UNBOUNDED = 1 << 60


class Followed(HeadLog):
    """HeadLog without bounds. What is full, and what becomes one run, is read from the registers.

    `full`: whether a tail is; `listed`: the slot behind the last run of the index.
    """

    def __init__(self, full: Callable[[Head], bool], listed: Callable[[], int]) -> None:
        super().__init__(
            nodes=(),
            keys=(),
            tail_limit=UNBOUNDED,
            run_segments=1,
            contents=frozenset(),
            max_seq=UNBOUNDED,
            max_incarnation=UNBOUNDED,
            max_epoch=UNBOUNDED,
            max_in_flight=UNBOUNDED,
            max_hand_overs=UNBOUNDED,
            max_claims=UNBOUNDED,
            may_abandon=True,
            may_give_up=True,
            closed=CLOSED,
        )
        object.__setattr__(self, "_full", full)
        object.__setattr__(self, "_listed", listed)

    def shape_of(self, n: Node, h: Head) -> int | None:
        """The shape of a real log has sizes in bytes, too: it is no number of entries."""
        del n  # all nodes agree
        return h.limit

    def is_full(self, n: Node, h: Head) -> bool:
        """As the head says that the log holds; a tail whose segment is written was full."""
        del n
        return bool(self._full(h))  # type: ignore[attr-defined]

    def may_compact(self, s: State, b: int) -> bool:
        """A worker looks whether there is enough when it has its claim."""
        del s, b
        return True

    def sealed_from(self, s: State, b: int) -> tuple[Entry, ...] | None:
        """The entries of what the index lists from `b` on, if their segments are there."""
        end: int = self._listed()  # type: ignore[attr-defined]
        found: tuple[Entry, ...] = ()
        while b < end and s.segments.get(b) not in (None, TOMBSTONE):
            found += s.segments[b]
            b += len(s.segments[b])
        return found if b == end else None


class Refinement(RefinedCompaction):
    """The state of the model beside a run. `model` may be one that is wrong, to show that this can fail."""

    def __init__(self, model: type[Followed] = Followed) -> None:
        super().__init__()
        self.noted: list[Step] = []
        self.trimmed: Mapping[
            str, int
        ] = {}  # of each key the first offset that a retention has left
        self._model: Followed = model(self._is_full, self._listed)
        self._nodes: dict[str, int] = {}  # each with the end of the log when it started
        self._full: set[tuple[int, int, int]] = set()
        self._heads: dict[tuple[int, int], Head] = {(0, 0): Head()}  # by end and epoch
        self._made: dict[int, Head] = {}  # by end: the head that a commit made
        self._switched: set[int] = set()  # the epochs that have begun
        self._views: dict[int, View] = {}  # by length

    def copy(self) -> "Refinement":
        """Another one in this state: values are shared, since none of them changes."""
        made = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | set | list):
                setattr(made, name, value.copy())
        made._model = type(self._model)(made._is_full, made._listed)
        return made

    # ------------------------------------------------------------ what it is told

    def followed(self, make: str | StrategyMaker) -> StrategyMaker:
        """A maker of the same strategy, whose steps are noted here; each node that it makes starts."""
        return Noting(make, self.noted, self.started)

    def traced(self, node: str) -> Noted:
        """What takes the steps of a node."""
        return Noted(self.noted, node)

    def started(self, node: str) -> None:
        """A node starts; its former life is over. Raises `Violation`."""
        self.settle()
        if node in self._nodes:
            life = self.state.incarnation.get(node, 0) + 1
            self._take("Restart", node, self._model.restart_as(self.state, node, life))
        self._jobs.pop(node, None)
        self._nodes[node] = self.state.head.end

    def settle(self) -> None:
        """Follow the steps that were noted. Raises `Violation`.

        Steps are noted inside a node, which may not fail there; so they are followed when it is done.
        """
        for node, name, fields in self.noted:
            self._stepped(node, name, fields)
        self.noted.clear()

    def _stepped(self, node: str, name: str, fields: Mapping[str, Any]) -> None:
        match name:
            case "Send":
                self._sent(node, fields)
            case "Named":
                self._named(node, fields)
            case "Try":
                self._tried(node, fields["ids"])
            case "Commit" | "Refresh" | "Answered":
                self._learnt(node, name, fields)
            case "HandOver":
                to = writer_of(fields["to"])
                self._handed_over(node, to, self._own(node, name, fields["id"]))
            case "Acked":
                self._acked(node, fields)
            case "Reject":
                self._rejected(node, self._own(node, name, fields["id"]))
            case "Abandon":
                batch = self._own(node, name, fields["id"])
                self._take(name, node, self._model.abandon(self.state, batch.id.writer))
            case "Poll":
                self._polled(node, fields)
            case "Seal":
                there = fields["base"] in self.state.segments
                self._require(there, name, node, f"no segment of slot {fields['base']}")
            case (
                "Claim" | "CompactWrite" | "CompactDelete" | "CompactCursor" | "Release" | "GiveUp"
            ):
                self._compacts(node, name, fields)
            case "Fence" | "Unfence":
                begun = fields["epoch"] in self._switched
                self._require(begun, name, node, f"epoch {fields['epoch']} never began")
            case _:
                raise ValueError(f"{name} is no step of HeadLog")

    def changed(self, register: str, new: Any) -> None:
        """A register holds another value now. Raises `Violation`."""
        self.settle()
        kind, _, _ = register.partition("/")
        if register == records.HEAD:
            self._head_changed(new)
        elif kind == "segment":
            self._segment_changed(register, new)
        elif kind == "run" and new is not None:
            self._run_written(register, new)
        elif kind == COMPACTED:
            self._index_changed(new)

    # ------------------------------------------------------------ the store

    def _head_changed(self, value: Any) -> None:
        self._require(bool(value), "Head", "?", "the head was deleted")
        # Entries are decoded when they are new; of the others only their number counts here.
        values = entries_in(value)
        new = records.Head(records.heading_of(value), cast(list[Logged], values))
        old = self.state.head
        added = [records.entry_of(each) for each in values[old.end - new.base :]]
        if added and self._nodes:
            self._committed(new, added)
        elif added:  # nobody was followed yet: what is there is believed
            self._believed(new, added)
        else:
            self._same((new.base, new.end), (old.base, old.end), "Head", "?", "its slots are")
            self.state = self._without_entries(new)
        self._note(new)

    def _without_entries(self, new: records.Head) -> State:
        """The log is made; or a new epoch begins: by a fence, a vacuum."""
        s, model, state = self.state, self._model, new.heading.state
        there = (s.head.state, s.head.epoch)
        if (state, new.epoch) == there and new.version == 1:
            return s
        after = chain(model.fence(s), model.unfence(s), model.raise_epoch(s))
        fitting = (t for t in after if (t.head.state, t.head.epoch) == (state, new.epoch))
        self._switched.add(new.epoch)
        return self._have(next(fitting, None), "Head", "?", f"{state, new.epoch} after {there}")

    def _committed(self, new: records.Head, added: Iterable[Logged]) -> None:
        """One of the cas that nodes have made takes effect."""
        ids = tuple(id_of(entry.writer, entry.seq) for entry in added)
        s = self.state
        tried = [r for r in s.inflight if tuple(e.id for e in r.entries) == ids]
        fitting = [r for r in tried if self._model.same_head(r.before, s.head)]
        who = new.heading.by
        self._require(bool(fitting), "Commit", who, f"no node has tried {ids} from this head")
        request = fitting[0]
        for entry, expected in zip(added, request.entries, strict=True):
            blocks = {key: (first, len(msgs)) for key, (first, msgs) in entry.appends.items()}
            wanted = {key: (expected.first[key], n) for key, n in expected.counts.items()}
            self._same(blocks, wanted, "Commit", who, f"{expected.id} has")
            self._same(entry.commits, dict(expected.commits), "Commit", who, f"{expected.id} has")
        there = (s.head.state, s.head.epoch)
        self._same((new.heading.state, new.epoch), there, "Commit", who, "state and epoch are")
        self._same(new.base, request.after.base, "Commit", who, "the tail begins at")
        views = self._view(s.head.end, s.view.get(who))
        self._take("Commit", who, self._model.late_commit_of(s, request))
        # A head never comes back (Law 2, which is judged): no other cas that is under way can take effect.
        self.state = self.state._replace(inflight=frozenset())
        self._keep(apply_all(views, request.entries))

    def _believed(self, new: records.Head, added: Iterable[Logged]) -> None:
        s = self.state
        entries = tuple(_entry(entry, new.epoch) for entry in added)
        log = s.log + entries
        self._keep(apply_all(self._view(s.head.end, None), entries))
        head = Head(new.heading.state, new.epoch, None, new.base, log[new.base :])
        self.state = s._replace(head=head, log=log)

    def _note(self, new: records.Head) -> None:
        h = self.state.head
        self._heads[h.end, h.epoch] = h
        self._made.setdefault(h.end, h)
        self._tails[h.base] = h.tail
        if len(self._made) > KEPT_HEADS:
            self._forget()
        if new.full:
            self._full.add((h.base, h.end, h.epoch))

    def _forget(self) -> None:
        """Forget the heads that no node can learn any more: all know newer ones, or started later."""
        known = self.state.known
        least = min(known[n].end if n in known else began for n, began in self._nodes.items())
        self._heads = {key: h for key, h in self._heads.items() if key[0] >= least}
        self._made = {end: h for end, h in self._made.items() if end >= least}
        base = self.state.head.base
        self._tails = {at: tail for at, tail in self._tails.items() if at >= base}
        self._full = {each for each in self._full if each[1] >= least}

    def _is_full(self, h: Head) -> bool:
        return (h.base, h.end, h.epoch) in self._full

    # ------------------------------------------------------------ a node

    def _sent(self, node: str, fields: Mapping[str, Any]) -> None:
        id_ = id_of(*fields["id"])
        s, writer = self.state, id_.writer
        self._same(id_.seq, s.seq.get(writer, 0) + 1, "Send", node, f"the number of {id_} is")
        after = self._model.send_in(s, writer, _content(fields), fields["epoch"])
        self._take("Send", node, after)

    def _named(self, node: str, fields: Mapping[str, Any]) -> None:
        """To the model a caller hands over what it has named; it may do so again, and in a later epoch."""
        id_, s = id_of(*fields["id"]), self.state
        self._require(id_.node == NAMED, "Named", node, f"{id_} has no writer that callers name")
        begun = fields["epoch"] <= s.head.epoch
        self._require(
            begun, "Named", node, f"{id_} is of epoch {fields['epoch']}, which never began"
        )
        payload = id_.node, id_.incarnation, id_.seq
        batch = Batch(id_, payload, fields["epoch"], _content(fields))
        others = frozenset(m for m in s.handovers if (m.to, m.batch.id) != (node, id_))
        message = HandOver(node, view_of(s, node).length, batch)
        self.state = s._replace(handovers=others | {message})

    def _tried(self, node: str, ids: Iterable[tuple[str, int]]) -> None:
        s, waiting = self.state, {b.id: b for b in self._model.waiting(self.state, node)}
        h = self._have(s.known.get(node), "Try", node, "it has not read the head")
        self._require(self._model.observed_open(h), "Try", node, "the log is fenced")
        self._require(self._model.has_room(s, node, h), "Try", node, "the tail has no segment yet")
        named = [id_of(*each) for each in ids]
        lacking = [each for each in named if each not in waiting]
        text = f"{lacking} was never given to it, or is in the log already"
        self._require(not lacking and bool(named), "Try", node, text)
        group = tuple(waiting[each] for each in named)
        old = [b.id for b in group if not self._model.in_epoch(b, h.epoch)]
        self._require(not old, "Try", node, f"{old} is of another epoch than {h.epoch}")
        self._require(is_ordered(group), "Try", node, "a writer's batches are not in order")
        text = f"a condition keeps one of {named} out"
        self._require(self._model.are_admitted(view_of(s, node), group), "Try", node, text)
        self.state = s._replace(inflight=s.inflight | {self._model.request(s, node, group)})

    def _learnt(self, node: str, name: str, fields: Mapping[str, Any]) -> None:
        """The node's view is the log up to a head that the register held, and none before what it knows."""
        s = self.state
        end = fields["length"]
        if name == "Commit":
            ids = [id_of(*each) for each in fields["ids"]]
            self._same(ids, [e.id for e in s.log[end - len(ids) : end]], name, node, "they are")
            found = self._made.get(end)
        else:
            found = self._heads.get((end, fields["epoch"]))
        h = self._have(found, name, node, f"the head never had {dict(fields)}")
        known = s.known.get(node)
        newer = known is None or (h.epoch, h.end) >= (known.epoch, known.end)
        self._require(newer, name, node, f"it knew slot {known.end if known else 0}, learns {end}")
        view = self._view(h.end, s.view.get(node))
        # What a node knows to be in the log is no batch that it may commit.
        handed = s.handovers
        if len(handed) > KEPT_HAND_OVERS:
            views = s.view.put(node, view)
            handed = frozenset(
                m for m in handed if not in_log(views.get(m.to, EMPTY_VIEW), m.batch.id)
            )
        self.state = s._replace(
            known=s.known.put(node, h), view=s.view.put(node, view), handovers=handed
        )

    def _own(self, node: str, name: str, named: tuple[str, int]) -> Batch:
        id_ = id_of(*named)
        text = f"{id_} is not its batch in flight"
        batch = self._have(self.state.batch.get(id_.writer), name, node, text)
        self._require(batch.id == id_ and id_.node == node, name, node, text)
        return batch

    def _handed_over(self, node: str, peer: str, batch: Batch) -> None:
        s = self.state
        self._require(peer != node, "HandOver", node, "to itself")
        there = in_log(view_of(s, node), batch.id)
        self._require(not there, "HandOver", node, f"{batch.id} is in the log already")
        after = [*self._model.hand_over(s, batch.id.writer, peer)]  # none: the same message again
        self.state = after[0] if after else s

    def _acked(self, node: str, fields: Mapping[str, Any]) -> None:
        batch, s = self._own(node, "Acked", fields["id"]), self.state
        there = self._model.has_outcome(view_of(s, node), batch.id)
        self._require(there, "Acked", node, f"{batch.id} is not in its view of the log")
        first = dict(self._model.ack_of(view_of(s, node), batch).first)
        self._same(fields["offsets"], first, "Acked", node, f"{batch.id} is at")
        self.state = s._replace(batch=s.batch.without(batch.id.writer))

    def _rejected(self, node: str, batch: Batch) -> None:
        s, h = self.state, self.state.known.get(node)
        is_over = h is not None and self._model.is_over(batch, h)
        over = is_over or self._model.is_kept_out(view_of(s, node), batch)
        self._require(over, "Reject", node, f"neither epoch nor condition keeps {batch.id} out")
        there = in_log(view_of(s, node), batch.id)
        self._require(not there, "Reject", node, f"{batch.id} is in the log")
        self.state = s._replace(
            rejected=s.rejected | {batch.id}, batch=s.batch.without(batch.id.writer)
        )

    def _polled(self, node: str, fields: Mapping[str, Any]) -> None:
        start, offsets = max(0, fields["from"]), fields["offsets"]
        if offsets:  # a retention may have deleted what was before
            start = max(start, min(offsets[0], self.trimmed.get(fields["key"], 0)))
        end = view_of(self.state, node).end(fields["key"])
        run = offsets == [*range(start, start + len(offsets))] and start + len(offsets) <= max(
            start, end
        )
        self._require(run, "Poll", node, f"{fields} is no run of its view, which ends at {end}")

    # ------------------------------------------------------------ the rest

    def _view(self, length: int, before: View | None) -> View:
        """The view of the first `length` slots; `before`: an older one that somebody has."""
        if (found := self._views.get(length)) is None:
            base = before if before and before.length <= length else fold(())
            found = apply_all(base, self.state.log[base.length : length])
        return found

    def _keep(self, view: View) -> None:
        self._views[view.length] = view
        for length in [each for each in self._views if each < view.length - KEPT_VIEWS]:
            del self._views[length]


def _content(fields: Mapping[str, Any]) -> Content:
    return Content(*(Map(fields[name]) for name in ("appends", "commits", "expected")))


def _entry(entry: Logged, epoch: int) -> Entry:
    appends, id_ = entry.appends, id_of(entry.writer, entry.seq)
    first = {key: first for key, (first, _) in appends.items()}
    counts = {key: len(msgs) for key, (_, msgs) in appends.items()}
    return Entry(id_, id_, epoch, Map(first), Map(counts), Map(entry.commits))
