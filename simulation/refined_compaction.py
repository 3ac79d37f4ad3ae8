"""Compaction as the store shows it, held to HeadLog (`simulation.refinement`).

Whatever node has the newest claim, to the model it is the one `WORKER`, and what the store does is its step:

    compacted: a new epoch           Claim, behind GiveUp of the worker before
    compacted: further runs          CompactWrite, of all that was listed since
    the last segment of these gone   CompactDelete
    compacted: the cursor            CompactCursor and Release; who goes on in this epoch has another Claim

A worker of an older epoch can only delete what is in a run. What a node says of its own job comes later, and is
held to what the store has.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from leaderless.core.coordination import TOMBSTONE as GONE
from leaderless.core.headlog import records
from leaderless.core.headlog.index import Index, index_of
from leaderless.core.headlog.trace import cursor
from simulation.oracle import Violation
from specs.head_log.state import NAMED, TOMBSTONE, State
from specs.head_log.steps import HeadLog
from specs.head_log.views import Entry, Id

T = TypeVar("T")
WORKER = "a worker"
PHASES = {"CompactWrite": "claimed", "CompactDelete": "written", "CompactCursor": "deleted"}
NEXT = {"CompactWrite": "written", "CompactDelete": "deleted", "CompactCursor": "done"}


class RefinedCompaction:
    """The part of a `Refinement` that follows segments, runs, their index and who makes them."""

    _model: HeadLog

    def __init__(self) -> None:
        self.state = State()
        self._tails: dict[int, tuple[Entry, ...]] = {}  # the last tail of each base
        self._bases: dict[str, int] = {}  # the first slot of each segment
        self._deleted: set[int] = set()  # the first slots of those that are gone
        self._folded: dict[str, tuple[int, int]] = {}  # the slots of each run that was written
        self._index = Index()
        self._holders: dict[int, str] = {}  # who has had the claim, by epoch
        self._jobs: dict[str, str] = {}  # the phase of the job that a node has

    def _listed(self) -> int:
        return self._index.end

    # ------------------------------------------------------------ the store

    def _segment_changed(self, register: str, value: Any) -> None:
        s, segment = self.state, None if value == GONE else records.segment_of(value)
        if segment is None:
            base = self._bases[register]
            text = f"{register} is deleted, and no run has its entries"
            self._require(self._model.run_at(s, base) is not None, "CompactDelete", "?", text)
            self._deleted.add(base)
            self._go_on()
            return
        base, size = segment.base, len(segment.entries)
        self._bases[register] = base
        tail = self._tails.get(base, ())
        ids = [id_of(entry.writer, entry.seq) for entry in segment.entries]
        self._same(ids, [e.id for e in tail[:size]], "Seal", "?", f"{register} has")
        if base not in s.segments:
            self.state = s._replace(segments=s.segments.put(base, tail[:size]))

    def _run_written(self, register: str, value: Any) -> None:
        """A run is what its segments fold to, and they are there."""
        s, run = self.state, records.run_of(value)
        b = run.base
        while b < run.end and s.segments.get(b) not in (None, TOMBSTONE):
            b += len(s.segments[b])
        known = self._model.run_at(s, run.base) is not None
        self._require(known or b == run.end, "CompactWrite", "?", f"{register} has other slots")
        view = self._model.run_of(s.log[run.base : run.end])
        wanted = {key: (own[0].first, sum(b.size for b in own)) for key, own in view.blocks.items()}
        found = {key: (first, len(msgs)) for key, (first, msgs) in run.keys.items()}
        newest = {id_of(writer, seq) for writer, (seq, _) in run.writers.items()}
        latest = {Id(*writer, seq) for writer, seq in view.latest.items()}
        for mine, its in (
            (found, wanted),
            (newest, latest),
            (run.commits, dict(view.committed)),
        ):
            self._same(mine, its, "CompactWrite", "?", f"{register} has")
        self._folded[register] = run.base, run.end

    def _index_changed(self, value: Any) -> None:
        old, new = self._index, index_of(value)
        self._require(new.epoch >= old.epoch, "Claim", "?", f"epoch {new.epoch} is over")
        self._index = new
        for _ in range(old.epoch, new.epoch):  # also for a worker that never came here
            self._claimed()
        for run in new.listed:
            if not run.level and run.base >= old.end:
                slots, name = self._folded.get(run.register()), run.register()
                self._same((run.base, run.end), slots, "CompactWrite", "?", f"{name} is listed for")
        self._go_on()
        done = new.end == old.end or self._phase != "claimed"
        self._require(done, "CompactWrite", "?", f"runs up to slot {new.end} have no segments")
        if new.cursor != old.cursor:
            self._take("CompactCursor", "?", self._model.compact_cursor(self.state, WORKER))
            slot = cursor(new)["base"]
            self._same(slot, self.state.task.cursor, "CompactCursor", "?", "the cursor is at")
            self._claimed()

    @property
    def _phase(self) -> str:
        worker = self.state.worker.get(WORKER)
        return worker.phase if worker else "idle"

    def _claimed(self) -> None:
        ends = {"idle": None, "done": self._model.release}.get(self._phase, self._model.give_up)
        if ends:
            self._take("Release", "?", ends(self.state, WORKER))
        self._take("Claim", "?", self._model.claim(self.state, WORKER))

    def _go_on(self) -> None:
        """What the index lists is written, and perhaps deleted."""
        s, model = self.state, self._model
        worker = s.worker.get(WORKER)
        if worker and worker.phase == "claimed" and worker.base < self._index.end:
            self._take("CompactWrite", "?", model.compact_write(s, WORKER))
            text = f"no segments from slot {worker.base} to {self._index.end}"
            self._require(worker.base in self.state.runs, "CompactWrite", "?", text)
        if worker and self._phase == "written" and not self._left(worker.base):
            self._take("CompactDelete", "?", model.compact_delete(self.state, WORKER))

    def _left(self, base: int) -> list[int]:
        """The segments of the run at `base` that are not deleted."""
        slots = range(base, base + self.state.runs[base].length)
        return [b for b in slots if b in self.state.segments and b not in self._deleted]

    # ------------------------------------------------------------ a node

    def _compacts(self, node: str, name: str, fields: Mapping[str, Any]) -> None:
        if name == "Claim":
            epoch = fields["epoch"]
            holder = self._holders.setdefault(epoch, node)
            self._require(holder == node, name, node, f"{holder} holds epoch {epoch}")
            self._require(epoch <= self._index.epoch, name, node, f"epoch {epoch} never began")
            self._require(node not in self._jobs, name, node, "it has a job already")
            self._jobs[node] = "claimed"
            return
        phase = self._have(self._jobs.pop(node, None), name, node, "it has no job")
        if name in ("Release", "GiveUp"):
            return
        self._require(phase == PHASES[name], name, node, f"after {phase}")
        base, s = fields["base"], self.state
        run = self._have(s.runs.get(base), name, node, f"no run of slot {base}")
        if name != "CompactWrite":
            left = self._left(base)
            self._require(not left, name, node, f"segments {left} are not deleted")
        passed = name != "CompactCursor" or s.task.cursor >= base + run.length
        self._require(passed, name, node, f"the cursor is at {s.task.cursor}")
        self._jobs[node] = NEXT[name]

    # ------------------------------------------------------------ what is held to the model

    def _take(self, name: str, node: str, after: Iterable[State]) -> None:
        found = next(iter(after), None)
        self.state = self._have(found, name, node, "HeadLog has no such step here")

    def _have(self, found: T | None, name: str, node: str, text: str) -> T:
        if found is None:
            raise Violation(f"RefinesHeadLog: {name} of {node}: {text}")
        return found

    def _same(self, found: object, wanted: object, name: str, node: str, what: str) -> None:
        """What the code does is what the model does here."""
        if found != wanted:
            self._require(False, name, node, f"{what} {found}, and in the model {wanted}")

    def _require(self, holds: bool, name: str, node: str, text: str) -> None:
        self._have(holds or None, name, node, text)


def id_of(writer: str, seq: int) -> Id:
    """A writer is a lane of one life of a node, `NODE.LIFE/LANE`, or of a program, `NAME/LANE`.

    The model counts from 1. Names that callers give may begin at 0.
    """
    node = writer.partition("/")[0].partition(".")[0]
    return Id(node, writer, seq + (node == NAMED))
