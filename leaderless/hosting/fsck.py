"""Checks a log as it stands in a store: every invariant that its objects can show, by the names of the models.

    FormatKnown                 the object `format` is one that this program knows
    ShapeNeverChanges           the head and `format` say one shape
    RegistersReadable           every register is what this program writes
    CommittedReadable           every slot below the end of the log is in a run, a segment, or the head
    OffsetsDense                the messages of a key have consecutive offsets from 0, in the order of slots
    AckedExactlyOnce            no batch is in the log twice, and a writer's batches are in their order
    SegmentsImmutable           a segment that is still there says the same as the run that holds it
    CursorNeverPassesCompacted  every deleted segment is in a run that the index names
    IndexMatchesRuns            the index and its pages say of each run what is in it, in order, without a gap
    OneLiveClaim                index, list of files and cursors were changed in epochs that were claimed
    DataReadable                every value that stands in an object of its own is there, as long as it was

It reads the head first, then segments, then the index and its runs: a batch moves in this direction, and is in
the new place before it leaves the old one. So a log in use can be checked; what was appended meanwhile is
passed over. It sees a state. `leaderless.hosting.laws` says what may follow what, and has the rules that hold
in any state.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from leaderless.core.claims import claim_of
from leaderless.core.coordination import Json
from leaderless.core.headlog.records import HEAD, Head, Run, Segment, head_of, run_of, segment_of
from leaderless.core.messages import Entry
from leaderless.core.shape import Runs, Shape
from leaderless.errors import LogError
from leaderless.hosting.findings import Finding, Findings
from leaderless.hosting.fsck_clients import check_groups, check_staged
from leaderless.hosting.fsck_index import IndexCheck
from leaderless.hosting.laws.rules import Order, require_claimed
from leaderless.hosting.place import require_log
from leaderless.hosting.vacuum import READ_AT_ONCE, references_in
from leaderless.store.calls import in_thread, objects_in, own_objects, side_by_side
from leaderless.store.files import files_of
from leaderless.store.names import FILE_FOLDERS, FORMAT, TOPICS, is_own
from leaderless.store.port import Store
from leaderless.store.values import Reference


class Report(NamedTuple):
    """What was checked and found; `orphans`: objects of large values without a record (see `vacuum`).

    `staged`: objects of sinks that wait for a commit, or for a vacuum. `foreign`: objects and files at this
    place that the log did not write, which are not judged; `foreign_example`: one of them.
    """

    findings: list[Finding]
    batches: int
    messages: int
    objects: int
    orphans: int
    staged: int = 0
    foreign: int = 0
    foreign_example: str | None = None


class _Span(NamedTuple):
    """Consecutive slots in one object, and `[key, first offset, messages]` of each block, in order.

    Of a file that no segment is compared with, messages are a range: only their number is known.
    """

    name: str
    base: int
    end: int
    blocks: Sequence[tuple[str, int, Sequence[Json]]]
    batches: list[tuple[str, int]]


async def check(store: Store) -> Report:
    """Check the whole log of `store`, which takes about one request for each object."""
    return await _Check(store).run()


class _Check:
    """One check, and what it has found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._findings = Findings(store)
        self._find = self._findings.add
        self._referred: dict[str, Reference] = {}
        self._deleted: list[str] = []  # segments
        self._head_shape: Shape | None = None
        self._start: tuple[int, int, str | None] = 0, 0, None  # first segment and slot, see `Start`
        self._starts: dict[str, int] = {}  # the first offsets of keys, where they are not 0

    async def run(self) -> Report:
        runs_are: Runs = "json"
        head = await self._findings.read(HEAD, partial(self._span, HEAD))
        try:
            shape = await require_log(self._store)
            runs_are = shape.runs
            self._check_shape(shape)
        except LogError as error:
            self._find("FormatKnown", FORMAT, str(error))
        segments = [span async for _, span in self._findings.read_all("segment", self._span)]
        index = IndexCheck(self._findings, sliced=runs_are == "parquet")
        await index.run()
        runs = await self._runs(index, runs_are, [span for span in segments if span])
        log = [span for span in (*runs, *segments, head) if span]
        messages = self._check_slots(log, head.end if head else 0)
        self._check_copies(runs, [span for span in segments if span])
        self._check_deleted(index.index.sealed)
        await check_groups(self._findings)
        orphans, staged = await self._check_data(), await check_staged(self._findings)
        end, found = head.end if head else 0, self._findings
        foreign = await self._foreign()
        return Report(
            found.found,
            end,
            messages,
            found.objects,
            orphans,
            staged,
            len(foreign),
            min(foreign, default=None),
        )

    # ------------------------------------------------------------ reading

    async def _runs(
        self, index: IndexCheck, runs_are: Runs, segments: Sequence[_Span]
    ) -> list[_Span]:
        """What is in the runs that the index names."""
        if runs_are == "parquet":
            return await self._files(segments)
        found = []
        for start in range(0, len(index.runs), READ_AT_ONCE):
            names = [each.register() for each in index.runs[start : start + READ_AT_ONCE]]
            reads = [
                partial(self._findings.read, name, partial(self._span, name)) for name in names
            ]
            found += await side_by_side(reads)
        return [span for span in found if span]

    async def _files(self, segments: Sequence[_Span]) -> list[_Span]:
        from leaderless.table import check as files  # the package pyarrow may be missing
        from leaderless.table.manifest import TABLE, read_manifest
        from leaderless.table.upkeep import CLAIM

        runs: list[_Span] = []
        try:
            self._start, self._starts = await files.log_start(self._store)
            async for ref, found in files.contents(
                self._store, lambda ref: any(_within(span, ref) for span in segments)
            ):
                self._findings.objects += 1
                if isinstance(found, LogError):
                    self._find("RegistersReadable", ref.path, str(found))
                else:
                    runs.append(_Span(ref.path, ref.base, ref.end, found.blocks, found.batches))
                    self._refer(found.references)
        except LogError as error:
            self._find("RegistersReadable", TABLE, str(error))
            return runs
        manifest, _ = await read_manifest(self._store)
        claim = await self._findings.read(CLAIM, claim_of)
        require_claimed(manifest.epoch, CLAIM, claim, self._findings.of(TABLE))
        return runs

    def _refer(self, references: Iterable[Reference]) -> None:
        self._referred |= {each.key: each for each in references}

    def _span(self, name: str, value: Json) -> _Span | None:
        """The slots in a head, a segment or a run; None for a tombstone. Raises `Misfit`."""
        part = _decoder_of(name)(value)
        if part is None:
            self._deleted.append(name)
            return None
        if isinstance(part, Head):
            self._head_shape = part.shape
        self._refer(references_in(part))
        return _span_of(name, part)

    # ------------------------------------------------------------ checking

    def _check_shape(self, shape: Shape) -> None:
        """The head says the shape of `format`, which was written before it."""
        head = self._head_shape
        if head not in (None, shape):
            text = f"it says {head}, and {FORMAT!r} says {shape}"
            self._find("ShapeNeverChanges", HEAD, text)

    def _check_slots(self, log: list[_Span], end: int) -> int:
        """Go through the log in the order of its slots; returns how many messages it has."""
        slot, order = self._start[1], Order(dict(self._starts))
        for span in sorted(log, key=lambda span: (span.base, -span.end)):
            if span.end <= slot or span.base >= end:
                continue  # a copy of what is known, or later than the head that was read
            if span.base > slot:
                self._lost(slot, span.base, span.name)
            elif span.base < slot:
                self._find(
                    "CommittedReadable", span.name, f"begins at slot {span.base}, inside another"
                )
            broken = self._findings.of(span.name)
            blocks = ((key, first, len(messages)) for key, first, messages in span.blocks)
            order.take_blocks(blocks, broken)
            order.take_batches(span.batches, broken)
            slot = span.end
        if slot < end:
            self._lost(slot, end, HEAD)
        return sum(order.ends.values()) - sum(self._starts.values())

    def _lost(self, first: int, end: int, name: str) -> None:
        text = f"slots {first} to {end - 1} before it are in no object"
        self._find("CommittedReadable", name, text)

    def _check_deleted(self, sealed: int) -> None:
        for name in self._deleted:
            if int(name.removeprefix("segment/")) >= sealed:
                text = f"it is deleted, and only segments below {sealed} are in runs"
                self._find("CursorNeverPassesCompacted", name, text)

    def _check_copies(self, runs: list[_Span], segments: list[_Span]) -> None:
        for segment in segments:
            for run in runs:
                if _within(segment, run):
                    self._check_copy(run, segment)

    def _check_copy(self, run: _Span, segment: _Span) -> None:
        kept = {key: (first, messages) for key, first, messages in run.blocks}
        for key, first, messages in segment.blocks:
            start, all_messages = kept.get(key, (first, []))
            if [*all_messages[first - start : first - start + len(messages)]] != messages:
                text = f"key {key!r} from offset {first} is not as in {segment.name}"
                self._find("SegmentsImmutable", run.name, text)

    async def _check_data(self) -> int:
        """Compare references with objects; returns how many objects have none."""
        there = {each.key: each.size async for each in own_objects(self._store, "data")}
        self._findings.objects += len(there)
        for key, reference in sorted(self._referred.items()):
            if key not in there:
                self._find("DataReadable", key, "a record refers to it, and it is not there")
            elif there[key] not in (None, reference.size):
                text = f"it has {there[key]} bytes, and its record says {reference.size}"
                self._find("DataReadable", key, text)
        return len(there.keys() - self._referred.keys())

    async def _foreign(self) -> set[str]:
        """What stands at the place of the log and is not its own; topics are logs of their own."""
        there = {each.key async for each in objects_in(self._store)}
        if files := files_of(self._store):
            folders = map(files.list_files, FILE_FOLDERS)
            there |= await in_thread(lambda: {each.key for each in chain.from_iterable(folders)})
        return {key for key in there if not (is_own(key) or key.startswith(f"{TOPICS}/"))}


class _Slots(Protocol):
    @property
    def base(self) -> int: ...
    @property
    def end(self) -> int: ...


def _within(segment: _Slots, run: _Slots) -> bool:
    """Whether a run has the slots of a segment."""
    return run.base <= segment.base and segment.end <= run.end


def _decoder_of(name: str) -> Callable[[Json], Head | Segment | Run | None]:
    if name == HEAD:
        return head_of
    return run_of if name.startswith("run/") else segment_of


def _span_of(name: str, part: Head | Segment | Run) -> _Span:
    match part:
        case Run(base, end):
            blocks = [(key, first, messages) for key, (first, messages) in part.keys.items()]
            batches = [(writer, seq) for writer, (seq, _) in part.writers.items()]
            return _Span(name, base, end, blocks, batches)
        case Head(base=base, tail=entries) | Segment(base, entries):
            batches = [(entry.writer, entry.seq) for entry in entries]
            return _Span(name, base, base + len(entries), [*_blocks(entries)], batches)


def _blocks(entries: list[Entry]) -> Iterator[tuple[str, int, list[Json]]]:
    for entry in entries:
        for key, (first, messages) in entry.appends.items():
            yield key, first, messages
