"""Checks a log as it stands in a store: every invariant that its objects can show, by the names of the models.

    FormatKnown                 the object `format` is one that this program knows
    ShapeNeverChanges           the head and `format` say one shape
    RegistersReadable           every register is what this program writes
    CommittedReadable           every slot below the end of the log is in a run, a segment, or the head, and
                                every deleted segment in a run that the index names
    OffsetsDense                the messages of a key have consecutive offsets from 0, in the order of slots
    AckedExactlyOnce            no batch is in the log twice, and a writer's batches are in their order
    SegmentsImmutable           a segment that is still there says the same as its run, or as the head
    CursorNeverPassesCompacted  segments below the cursor of the index are deleted, and in runs
    CommitsKept                 what registers of committed offsets leave out is in the log
    IndexMatchesRuns            the index and its pages say of each run what is in it, in order, without a gap
    CompactionGoesOn            no two workers in a row leave the segments that wait where they are
    OneLiveClaim                index, list of files and cursors were changed in epochs that were claimed
    DataReadable                every value that stands in an object of its own is there, as long as it was

It reads the segments first, then the head and the newer segments, then the index and its runs: the order of
`leaderless.core.headlog.chain`, whose hint is here which segments there are. So a log in use can be checked;
what was appended meanwhile is passed over. It sees a state. `leaderless.upkeep.laws` says what may follow
what, and has the rules that hold in any state.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from leaderless.core.claims import claim_of
from leaderless.core.coordination import Json
from leaderless.core.headlog.chain import GONE, TORN
from leaderless.core.headlog.commits import committed_of
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    IndexEntry,
    Part,
    decode_part,
    index_of,
)
from leaderless.core.headlog.records import (
    EMPTY,
    HEAD,
    Head,
    Run,
    Segment,
    head_of,
    segment_name,
    segment_of,
)
from leaderless.errors import Broken, LogError, OtherFormat
from leaderless.groups.cursors import cursor_of
from leaderless.groups.members import Roster, roster_of
from leaderless.hosting.data import Data
from leaderless.hosting.place import require_log
from leaderless.store.calls import (
    Held,
    answered,
    each_of,
    in_thread,
    objects_in,
    own_keys,
    own_objects,
    parsed,
    patiently,
)
from leaderless.store.compression import plain
from leaderless.store.files import files_of
from leaderless.store.names import FILE_FOLDERS, FORMAT, TOPICS, is_own, name_of
from leaderless.store.port import Store
from leaderless.store.values import Reference, value_of
from leaderless.upkeep.laws import rules
from leaderless.upkeep.staged import FOLDER, PLAN, decision_of
from leaderless.upkeep.vacuum import blocks_in, messages_in
from leaderless.wire.codec import doubled_in

T = TypeVar("T")


class Finding(NamedTuple):
    """What is wrong: the invariant, the object that shows it, and how."""

    invariant: str
    object: str
    text: str


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
    """Consecutive slots in one object, `[key, first offset, messages]` of each block, in order, and batches.

    Messages are counted, and each batch is a writer and its number. `times`: the lowest first; files tell none,
    and no `changes` (`laws.rules`).
    """

    name: str
    base: int
    end: int
    blocks: list[tuple[str, int, int]]
    batches: list[tuple[str, int]]
    times: Sequence[int | None]
    changes: Sequence[rules.Changes] = ()


async def check(store: Store) -> Report:
    """Check the whole log of `store`, which takes about one request for each object."""
    return await _Check(store).run()


class _Check:
    """One check, and what it has found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: list[Finding] = []
        self._objects = 0
        self._referred: dict[str, Reference] = {}
        self._segments: dict[int, Segment | None] = {}  # None: deleted
        self._spans: list[_Span] = []
        self._of_files = False
        self._start: tuple[int, int, str | None] = 0, 0, None  # first segment and slot, see `Start`
        self._starts: dict[str, int] = {}  # the first offsets of keys, where they are not 0

    async def run(self) -> Report:
        commits = await own_keys(self._store, "committed")
        read = partial(self._read, decode=committed_of)
        commits_held = [each async for each in each_of(commits, read)]
        names = await own_keys(self._store, "segment")
        await self._read_segments(names)
        head = await self._read(HEAD, head_of) or EMPTY
        if names and not head.version and HEAD not in {each.object for each in self._found}:
            self._find("HeadNeverReturns", HEAD, GONE)
        for name, committed in commits_held:
            if committed:
                rules.require_left_out(committed.slot, head.end, self._of(name))
        await self._check_format(head)
        newer = {*map(segment_name, range(head.sealed))}.difference(names)
        await self._read_segments([*newer])
        index = await self._read_index()
        if index.sealed > head.sealed and await self._read(HEAD, head_of) == head:
            self._find(
                "HeadNeverReturns",
                HEAD,
                f"it has let go of {head.sealed} segments, and {COMPACTED} has runs of {index.sealed}: {TORN}",
            )
        self._check_segments(head, newer, index.sealed)
        await self._check_runs(index, head.sealed - index.sealed >= head.shape.segments_per_run)
        messages = self._check_slots(head.end)
        await self._check_groups()
        orphans, staged = await self._check_data(), await self._check_staged()
        foreign = await self._foreign()
        return Report(
            self._found,
            head.end,
            messages,
            self._objects,
            orphans,
            staged,
            len(foreign),
            min(foreign, default=None),
        )

    def _find(self, invariant: str, name: str, text: str) -> None:
        self._found.append(Finding(invariant, name, text))

    def _unreadable(self, name: str, error: LogError) -> None:
        is_other = isinstance(error, OtherFormat)
        self._find("FormatKnown" if is_other else "RegistersReadable", name, str(error))

    def _of(self, name: str) -> rules.Broken:
        """What a rule tells of an object."""
        return lambda invariant, text: self._find(invariant, name, text)

    async def _read(self, name: str, decode: Callable[[Json], T | None]) -> T | None:
        """The decoded value of an object; None when it is missing, or makes no sense, which is noted.

        An answer that makes no sense is asked for again, as in any program. Raises `Definite`, such as
        `Unreachable`.
        """

        async def once() -> Held[T | None] | None:
            found = await self._store.read(name)
            return found and parsed(name, found, partial(self._decoded, name, found.value, decode))

        try:
            found = await patiently(once, reads=True)
        except (Broken, OtherFormat) as error:
            self._objects += 1
            self._unreadable(name, error)
            return None
        self._objects += found is not None
        return found and found.value

    def _decoded(self, name: str, text: bytes, decode: Callable[[Json], T], value: Json) -> T:
        decoded = decode(value)
        if doubled := doubled_in(plain(text), value):
            self._find("RegistersReadable", name, f"an object in it has {doubled!r} twice")
        return decoded

    # ------------------------------------------------------------ head and segments

    async def _check_format(self, head: Head) -> None:
        try:
            shape = await require_log(self._store)
        except LogError as error:
            self._find("FormatKnown", FORMAT, str(error))
            return
        self._of_files = shape.sliced
        rules.require_shape(head.shape if head.version else None, shape, self._of(HEAD))

    async def _read_segments(self, names: Sequence[str]) -> None:
        read = partial(self._read, decode=lambda value: [segment_of(value)])
        async for name, found in each_of(names, read):
            if found:
                [self._segments[_number_of(name)]] = found

    async def _read_index(self) -> Index:
        """The index; segments that it has passed are read again, because they were read before it."""
        index = await self._read(COMPACTED, index_of) or Index()
        passed = [n for n, each in self._segments.items() if each and n < index.cursor]
        await self._read_segments([*map(segment_name, passed)])
        rules.require_index(index, [n for n in passed if self._segments[n]], self._of(COMPACTED))
        return index

    def _check_segments(self, head: Head, newer: set[str], sealed: int) -> None:
        """Check segments by the head, and by how many are in runs; `newer`: were looked for by the head."""
        for name in sorted(newer, key=_number_of):
            if _number_of(name) not in self._segments:
                broken = rules.IMMUTABLE if _number_of(name) < sealed else "CommittedReadable"
                self._find(broken, name, "the head has let go of it, and it is not there")
        self._take(HEAD, head)
        for number, segment in self._segments.items():
            name = segment_name(number)
            if segment is None:
                rules.require_deletable(number, sealed, self._of(name))
            elif head.version and number >= head.sealed:
                known = head.sealed, head.base, head.tail
                rules.require_sealing(number, *segment, known, self._of(name))
            else:
                self._take(name, segment)

    def _standing(self, first: int, last: int) -> list[Segment]:
        """The segments of a run that are not deleted."""
        found = map(self._segments.get, range(first, last + 1))
        return [segment for segment in found if segment]

    def _take(self, name: str, part: Head | Segment | Run) -> None:
        """Take what is in a part of the log."""
        for message in messages_in(part):
            try:
                found = value_of(message)
            except Broken as broken:
                self._find("RegistersReadable", name, str(broken))
            else:
                self._referred |= {found.key: found} if isinstance(found, Reference) else {}
        self._spans.append(_span_of(name, part))

    # ------------------------------------------------------------ index, pages and runs

    async def _check_runs(self, index: Index, waits: bool) -> None:
        """Check the index and all below it, and then the claim, whose epoch rises first.

        `waits`: whether segments for another run do.
        """
        await answered(rules.walk(index.listed, set(), self._of), self._parts)
        claim = await self._read(CLAIM, claim_of)
        rules.require_claimed(index.epoch, CLAIM, claim, self._of(COMPACTED))
        if trouble := claim and claim.trouble(waits):
            self._find("CompactionGoesOn", CLAIM, trouble)
        if self._of_files:
            await self._check_files()

    async def _parts(self, listed: IndexEntry) -> list[Part | None]:
        """What a run or a page holds, up to the first part that is missing; a file has no parts."""
        if self._of_files and not listed.level:
            return []
        parts: list[Part | None] = []
        while None not in parts and len(parts) < listed.parts:
            name = listed.register(len(parts))
            part: Part | None = await self._read(name, decode_part)
            parts.append(part)
            if isinstance(part, Run) and not listed.level:
                standing = self._standing(listed.first, listed.last)
                rules.require_run(part, standing, listed.last + 1 - listed.first, self._of(name))
                self._take(name, part)
        return parts

    async def _check_files(self) -> None:
        from leaderless.table import check as files  # the package pyarrow may be missing
        from leaderless.table.manifest import TABLE, read_manifest
        from leaderless.table.upkeep import CLAIM

        try:
            self._start, self._starts = await files.log_start(self._store)
            async for ref, found in files.contents(
                self._store, lambda ref: bool(self._standing(ref.first, ref.last))
            ):
                self._objects += 1
                if isinstance(found, LogError):
                    self._unreadable(ref.path, found)
                    continue
                held = {key: (first, messages) for key, first, messages in found.blocks}
                for segment in self._standing(ref.first, ref.last):
                    rules.require_held(segment, held, self._of(ref.path))
                blocks = [(key, first, len(messages)) for key, first, messages in found.blocks]
                self._spans.append(_Span(ref.path, ref.base, ref.end, blocks, found.batches, []))
                self._referred |= {each.key: each for each in found.references}
        except LogError as error:
            self._unreadable(TABLE, error)
            return
        manifest, _ = await read_manifest(self._store)
        claim = await self._read(CLAIM, claim_of)
        rules.require_claimed(manifest.epoch, CLAIM, claim, self._of(TABLE))

    # ------------------------------------------------------------ the whole log

    def _check_slots(self, end: int) -> int:
        """Go through the log in the order of its slots; returns how many messages it has."""
        slot, order = self._start[1], rules.Order(dict(self._starts))
        trimmed = {*self._starts}
        for span in sorted(self._spans, key=lambda span: (span.base, -span.end)):
            if span.end <= slot or span.base >= end:
                continue  # a copy of what is known, or later than the head that was read
            for key, first, _ in span.blocks:  # files may have what was trimmed
                if key in trimmed:
                    trimmed.remove(key)
                    order.ends[key] = min(first, self._starts[key])
            if span.base > slot:
                self._lost(slot, span.base, span.name)
            elif span.base < slot:
                self._find(
                    "CommittedReadable", span.name, f"begins at slot {span.base}, inside another"
                )
            order.take_blocks(span.blocks, self._of(span.name))
            order.take_batches(span.batches, self._of(span.name))
            order.take_times(span.times, self._of(span.name))
            order.take_tokens(span.changes, self._of(span.name))
            slot = span.end
        if slot < end:
            self._lost(slot, end, HEAD)
        return sum(each - self._starts.get(key, 0) for key, each in order.ends.items())

    def _lost(self, first: int, end: int, name: str) -> None:
        self._find(
            "CommittedReadable", name, f"slots {first} to {end - 1} before it are in no object"
        )

    # ------------------------------------------------------------ what is beside the log

    async def _check_groups(self) -> None:
        """Check all groups. Cursors are read before the owners of their keys, whose epochs rise first."""
        cursors: dict[str, tuple[str, str, int]] = {}  # by name: group, key and epoch
        rosters: dict[str, Roster] = {}
        for name in await own_keys(self._store, "group"):
            match name.split("/"):
                case [_, group, "cursor", key]:
                    if cursor := await self._read(name, cursor_of):
                        cursors[name] = group, name_of(key), cursor.epoch
                case [_, group, "members"]:
                    rosters[group] = await self._read(name, roster_of) or Roster()
        for name, (group, key, epoch) in cursors.items():
            tenure = rosters.get(group, Roster()).keys.get(key)
            rules.require_claimed(epoch, f"group/{group}/members", tenure, self._of(name))

    async def _check_staged(self) -> int:
        """Check all epochs of sinks; returns how many objects wait for a commit, or for a vacuum."""
        staged = 0
        for name in await own_keys(self._store, FOLDER):
            staged += 1
            if name.endswith(f"/{PLAN}"):
                await self._read(name, decision_of)
            else:
                self._objects += 1
        return staged

    async def _check_data(self) -> int:
        """Compare references with objects; returns how many objects have none."""
        there = {each.key: each.size async for each in own_objects(self._store, "data")}
        self._objects += len(there)
        for key, reference in sorted(self._referred.items()):
            if key not in there:
                self._find("DataReadable", key, "a record refers to it, and it is not there")
            elif there[key] not in (None, reference.size):  # perhaps it is compressed
                try:
                    await Data(self._store, 0, 0).values([reference.message])
                except Broken:
                    self._find(
                        "DataReadable",
                        key,
                        f"it has {there[key]} bytes, and its record says {reference.size}",
                    )
        return len(there.keys() - self._referred.keys())

    async def _foreign(self) -> set[str]:
        """What stands at the place of the log and is not its own; topics are logs of their own."""
        there = {each.key async for each in objects_in(self._store)}
        if files := files_of(self._store):
            folders = map(files.list_files, FILE_FOLDERS)
            there |= await in_thread(lambda: {each.key for each in chain.from_iterable(folders)})
        return {key for key in there if not (is_own(key) or key.startswith(f"{TOPICS}/"))}


def _number_of(segment: str) -> int:
    return int(segment.removeprefix("segment/"))


def _span_of(name: str, part: Head | Segment | Run) -> _Span:
    changes: list[rules.Changes]
    match part:
        case Run(base, end):
            batches = [(writer, seq) for writer, (seq, _) in part.writers.items()]
            times: list[int | None]
            known = [time for times in part.times.values() for _, time in times]
            # A run of commits alone tells no time.
            times = [min(known), max(known)] if known else [None] * bool(part.keys)
            changes = [(part.keys, {}), ((), part.commits)]
        case Head(base=base, tail=entries) | Segment(base, entries):
            end = base + len(entries)
            batches = [(entry.writer, entry.seq) for entry in entries]
            times = [entry.time for entry in entries]
            changes = [(entry.appends, entry.commits) for entry in entries]
    blocks = [(key, at, len(held)) for key, (at, held) in blocks_in(part)]
    return _Span(name, base, end, blocks, batches, times, changes)
