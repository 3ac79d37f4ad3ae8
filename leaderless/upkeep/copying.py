"""Copies a log into another place, record by record, while others append to it.

What is copied: the records of the log as it is when the copy begins, with their offsets, times, headers and
large values, which get objects of their own there; the names of batches, so that one that was appended under a
name is in the copy, too; committed offsets of groups and of nodes, at most the last record that was copied;
tokens of keys that are copied up to their end, so that a key that is closed stays so.
What is not: slots and the names of other writers, members of groups, rows that sinks have staged, a fence.

The copy is an appender: it puts entries behind the head by a compare-and-set from exactly the head that it
knows, seals, and has runs made. So it works between stores and shapes. Its entries have the writer
`named/copy/HEX`, HEX being a digest of what is copied, and the number of their slot. So a copy that was cut off
goes on where it was: the ends of keys say how far it came, and a log that others have appended to is refused.
The last entry has the number `SEQ_MAX`: the copy is whole.

A log of files that has lost its oldest records becomes one that has lost them (`leaderless.upkeep.trimmed`).
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from functools import partial
from hashlib import blake2b
from math import inf
from time import monotonic
from typing import NamedTuple

from leaderless.core.coordination import Json
from leaderless.core.headlog.commits import raised
from leaderless.core.headlog.conditions import token_of
from leaderless.core.headlog.records import (
    HEAD,
    Head,
    Run,
    Segment,
    head_of,
    segment_name,
    segment_of,
)
from leaderless.core.headlog.view import TOKEN
from leaderless.core.messages import Cas, Entry, Get, Heading, Offsets, Ok
from leaderless.errors import Broken, Definite, Fenced, Unfit
from leaderless.groups.cursors import Cursors
from leaderless.hosting.data import Data, Large
from leaderless.hosting.named import FOLDER, SEQ_MAX
from leaderless.store.calls import (
    READ_AT_ONCE,
    broken_by,
    each_of,
    patiently,
    read_once,
    read_value,
)
from leaderless.store.names import COPIES, name_of
from leaderless.store.port import OutcomeUnknown, Store
from leaderless.store.registers import Registers, canonical, require_written
from leaderless.store.values import parted, reference_in
from leaderless.upkeep.contents import Contents, contents_of
from leaderless.upkeep.fsck import check
from leaderless.upkeep.trimmed import begin_trimmed

# Is told now and then how many records were copied, and of how many.
Told = Callable[[int, int], object]
PROGRESS_S = 2.0  # between two of these
ANEW = "copy it to an empty place"


class Copied(NamedTuple):
    """A copy that is whole: `records` of `keys` keys, up to batch `batches` of FROM; `checked` says how."""

    records: int
    keys: int
    batches: int
    checked: str


class Selection(NamedTuple):
    """What is copied: of `keys` (None: all) the records below `until`, and those committed before `at_ms`."""

    keys: frozenset[str] | None = None
    until: Mapping[str, int] = {}
    at_ms: int | None = None

    def of(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys` that are copied."""
        return [key for key in keys if self.keys is None or key in self.keys]

    def range_of(self, run: Run, key: str, start: int) -> tuple[int, int]:
        """The first offset in a run that is copied, and the one after the last; `start`: of the key."""
        first, messages = run.keys[key]
        end = min(first + len(messages), self.until.get(key, inf), *self.late_in(run, key)[:1])
        return max(first, start), int(end)

    def late_in(self, run: Run, key: str) -> list[int]:
        """Offsets in a run from which on messages are too late."""
        return [
            at
            for at, time in run.times.get(key, [])
            if self.at_ms is not None and time >= self.at_ms
        ]


class Item(NamedTuple):
    """A message of a key; `large`: its value, if that stands apart."""

    time: int | None
    key: str
    offset: int
    message: Json
    large: Large | None = None


class _Reading:
    """Reads what is selected of a log, in the order of its times, and counts it.

    `starts`: first offsets of keys. `names`: the newest batch of each writer, where all of its run is selected.
    """

    def __init__(self, contents: Contents, selection: Selection, starts: Mapping[str, int]) -> None:
        self._contents = contents
        self._selection = selection
        self._starts = starts
        self._counted: dict[str, tuple[int, blake2b]] = {}
        self.names: Offsets = {}

    @property
    def counted(self) -> dict[str, tuple[int, str]]:
        """Of each key: how many records, and a digest of their offsets, times, headers and values."""
        return {key: (count, digest.hexdigest()) for key, (count, digest) in self._counted.items()}

    async def parts(self) -> AsyncIterator[list[Item]]:
        """Its items, some at a time. Raises `LogError`."""
        latest: int | None = None
        async for run in self._contents.runs():
            items: list[Item] = []
            whole, keys = True, self._selection.of(run.keys)
            for key in keys:
                low, end = self._selection.range_of(run, key, self._starts.get(key, 0))
                items += _items(run, key, low, end, latest)
                whole &= end == run.keys[key][0] + len(run.keys[key][1])
            if whole:
                self.names |= {writer: seq for writer, (seq, _) in run.writers.items()}
            items.sort(key=lambda item: (item.time or 0, item.key, item.offset))
            for at in range(0, len(items), READ_AT_ONCE):
                some = items[at : at + READ_AT_ONCE]
                apart = [item for item in some if reference_in(item.message)]
                values = {each[1:3]: large async for each, large in each_of(apart, self._large)}
                if values:
                    some = [each._replace(large=values.get(each[1:3])) for each in some]
                self._count(some)
                latest = some[-1].time
                yield some
            if any(self._selection.late_in(run, key) for key in keys):
                return  # so is all that follows, if it tells a time or not

    def _count(self, items: Iterable[Item]) -> None:
        for time, key, offset, message, large in items:
            count, digest = self._counted.get(key) or (0, blake2b(digest_size=16))
            what = [large.kind, large.headers, _digest(large.text)] if large else message
            digest.update(canonical([offset, time, what]))
            self._counted[key] = count + 1, digest

    async def _large(self, item: Item) -> Large:
        reference = reference_in(item.message)
        assert reference is not None, "it stands apart"
        text = await Data(self._contents.store, 0, 0).text_of(reference)
        return Large(text, reference.kind, parted(item.message)[0])


def _digest(text: bytes) -> str:
    return blake2b(text, digest_size=16).hexdigest()


def _items(run: Run, key: str, low: int, end: int, latest: int | None) -> Iterator[Item]:
    """The messages of a key in a run from offset `low` to `end` - 1. Their times are not below `latest`."""
    first, messages = run.keys[key]
    times, time = dict(run.times.get(key, [])), latest
    for offset, message in enumerate(messages, first):
        if offset in times:
            time = max(times[offset], latest or 0)
        if low <= offset < end:
            yield Item(time, key, offset, message)


class _Target:
    """The log that a copy makes, from `contents` on, through `registers`.

    `data` writes values apart; a change has `step_bytes`.
    """

    def __init__(
        self, contents: Contents, writer: str, registers: Registers, data: Data, step_bytes: int
    ) -> None:
        self._store = contents.store
        self._registers = registers
        self._writer = writer
        self._data = data
        self._step_bytes = step_bytes
        self._waiting: list[Entry] = []
        self._size = self._apart = 0  # about their bytes, and those of their values apart
        empty = Head(Heading(shape=contents.shape), [])
        self.head: Head = contents.head if contents.head.version else empty
        self.ends: Offsets = dict(contents.outline.ends)
        self._time: int | None = contents.head.tail[-1].time if contents.head.tail else None

    def require_from(self, key: str, offset: int) -> int:
        """Raise `Unfit` where FROM begins behind the end of a key here; returns that end."""
        end = self.ends.get(key, 0)
        if offset > end:
            raise Unfit(
                f"FROM has lost offsets {end} to {offset - 1} of key {key!r} since the copy began: {ANEW}"
            )
        return end

    async def add(self, items: Iterable[Item]) -> None:
        """Put items behind the log, but for those that it has. Raises `Unfit` for a gap."""
        for item in items:
            end = self.require_from(item.key, item.offset)
            if item.offset == end:
                message = item.message
                if item.large:
                    message = (await self._data.messages([item.large]))[0].json
                    self._apart += len(item.large.text)
                self.ends[item.key] = end + 1
                if not self._waiting or self._time != item.time:
                    self._time = item.time
                    self._wait(self._writer, self._slot)
                _, messages = self._waiting[-1].appends.setdefault(item.key, (item.offset, []))
                messages.append(message)
                await self._grown(len(item.key) + len(canonical(message)))

    def _wait(self, writer: str, seq: int, commits: Mapping[str, int] = {}) -> None:
        self._waiting.append(Entry(writer, seq, {}, {**commits}, self._time))

    async def _grown(self, size: int) -> None:
        self._size += size
        if self._size + self._apart >= self._step_bytes:
            await self.commit()

    @property
    def _slot(self) -> int:
        return self.head.end + len(self._waiting)

    async def name(self, batches: Mapping[str, int]) -> None:
        """Let the log know batches of other writers, which have no records here."""
        for writer, seq in batches.items():
            self._wait(writer, seq)
            await self._grown(len(writer))
        await self.commit()

    async def finish(self, commits: Offsets) -> None:
        """Say that the copy is whole, with offsets that nodes have committed."""
        self._wait(self._writer, SEQ_MAX, commits)
        self._size += len(canonical(commits))  # a full head goes into a segment
        await self.commit()

    async def commit(self) -> None:
        """Put what waits behind the head, as one change. Raises `LogError`."""
        if not self._waiting:
            return
        if self._waiting[-1].writer != self._writer:  # by its slot a copy is known again
            self._wait(self._writer, self._slot)
        old = self.head
        if old.fenced:
            raise Fenced(f"{self._store.url} is fenced: open it with `leaderless unfence`")
        kept = await self._seal(old) if old.full else 0
        new = old.with_entries(self._waiting, self._size, self._writer, kept)
        await patiently(partial(self._replace, old, new))
        self.head, self._waiting, self._size, self._apart = new, [], 0, 0

    async def _replace(self, old: Head, new: Head) -> None:
        """Replace the head. Nobody else writes `new`: so who finds it knows that an answer was lost."""
        cas = Cas(HEAD, old.value, new.value, create=not old.version)
        if isinstance(await self._registers.perform(cas), Ok):
            return
        held = await read_once(self._store, HEAD, head_of)
        if held and held.value == new:
            return
        if held.value != old if held else old.version:
            raise Definite(
                f"another process has changed the log at {self._store.url} meanwhile: if it appended nothing, "
                "the same copy goes on when it is repeated"
            )
        await self._registers.perform(Get(HEAD))  # it has another version
        raise OutcomeUnknown("another process was faster")  # look again

    async def _seal(self, head: Head) -> int:
        """Write the segment of a full tail; returns how many entries it holds."""
        name, value = segment_name(head.sealed), Segment(head.base, head.tail).value
        await patiently(partial(self._registers.perform, Cas(name, None, value, create=True)))
        # It may have been there.
        held = await read_value(self._store, name, segment_of)
        entries = held.value.entries if held and held.value else []
        if not entries or entries != head.tail[: len(entries)]:
            raise broken_by(f"SegmentsImmutable: {name} does not hold the tail of the head")
        return len(entries)


async def copy(
    source: Store,
    target: Store,
    selection: Selection,
    registers: Registers,
    data: Data,
    *,
    step_bytes: int,
    compact: Callable[[], Awaitable[object]],
    told: Told,
) -> Copied:
    """Copy the log in `source` to the one in `target`, new, or an unfinished copy of it; see the module.

    `registers` are those of `target`, and `data` writes its values apart; a change of its head has about
    `step_bytes`. `compact` puts its segments into runs. Raises `Unfit` for a selection that cannot be, or
    another log in `target`, `OtherFormat` for one of an earlier format; `Broken` when the copy is not what was
    read.
    """
    contents = await contents_of(source)
    ends = _selected(contents, selection)
    starts = {key: min(at, ends[key]) for key, at in contents.starts.items() if key in ends}
    named = [source.url, sorted(selection.keys or ()), *selection[1:]]
    writer = f"{COPIES}{_digest(canonical(named))}"
    there = await contents_of(target)
    require_written(target, there.shape)
    if not there.head.version and any(starts.values()):
        await begin_trimmed(target, there.shape, {key: at for key, at in starts.items() if at})
        there = await contents_of(target)
    _require_own(there, writer)
    made = _Target(there, writer, registers, data, step_bytes)
    for key, start in starts.items():
        made.require_from(key, start)
    reading = _Reading(contents, selection, starts)
    told_at = monotonic()
    total, done, sealed = sum(ends.values()) - sum(starts.values()), 0, made.head.sealed
    async for items in reading.parts():
        await made.add(items)
        done += len(items)
        if monotonic() >= told_at + PROGRESS_S:
            told_at = monotonic()
            told(done, total)
        if made.head.sealed - sealed >= there.shape.segments_per_run:
            await compact()
            sealed = made.head.sealed
    await made.commit()
    names = reading.names
    if not selection.until and selection.at_ms is None:  # a batch without records is in no file
        names = raised(names, contents.outline.writers)
    known = there.outline.writers
    new = {name: seq for name, seq in _bounded(names, made.ends) if seq > known.get(name, -1)}
    await made.name({name: new[name] for name in sorted(new) if name.startswith(f"{FOLDER}/")})
    await _copy_groups(source, target, made.ends)
    await compact()
    checked = await _checked(target, reading.counted, starts)
    commits = raised(await Cursors(source).of_nodes(), contents.outline.commits)
    tokens = {name: commits.pop(name) for name in [*commits] if name.startswith(TOKEN)}
    kept = selection.of(name.removeprefix(TOKEN) for name in tokens)
    whole = [key for key in kept if made.ends.get(key) == contents.outline.ends.get(key)]
    await made.finish(
        _reached(commits, made.ends) | {each: tokens[each] for each in map(token_of, whole)}
    )
    return Copied(done, len(reading.counted), contents.end, checked)


def _selected(contents: Contents, selection: Selection) -> Offsets:
    """The keys that are selected, each with the end that it gets at most. Raises `Unfit`."""
    ends, starts = contents.outline.ends, contents.starts
    if selection.at_ms is not None and [each.time for each in contents.head.tail[-1:]] == [None]:
        raise Unfit("FROM has no times before `leaderless upgrade`, so no time can be selected")
    for key in {*(selection.keys or ()), *selection.until}:
        if key not in ends:
            raise Unfit(f"FROM has no key {key!r}")
        low, until = starts.get(key, 0), selection.until.get(key, ends[key])
        if not low <= until <= ends[key] or not selection.of([key]):
            raise Unfit(
                f"until of key {key!r} must be from {low} to {ends[key]}, and the key selected, got {until}"
            )
    return {key: min(ends[key], selection.until.get(key, ends[key])) for key in selection.of(ends)}


def _require_own(there: Contents, writer: str) -> None:
    """Raise `Unfit` unless a log is empty, or an unfinished copy by this writer."""
    newest = there.outline.writers.get(writer, there.manifest.start.slot - 1)
    if newest == SEQ_MAX:
        raise Unfit(
            f"{there.store.url} is a whole copy of this FROM already, and stays so: for a newer one {ANEW}"
        )
    if newest != there.end - 1:
        raise Unfit(
            f"the log at {there.store.url} has records that no copy of this FROM, with these options, has put "
            f"there: {ANEW}"
        )


async def _copy_groups(source: Store, target: Store, ends: Offsets) -> None:
    for group, (cursors, _) in (await Cursors(source).groups()).items():
        held = {key: each.committed for key, each in cursors.items()}
        known = {key: offset for key, offset in held.items() if offset is not None}
        await Cursors(target).commit(group, _reached(known, ends))


def _bounded(names: Offsets, ends: Offsets) -> Iterator[tuple[str, int]]:
    """Batches of writers. Those of groups have offsets of a key as numbers: they end where the key does."""
    for name, seq in names.items():
        match name.split("/"):
            case [_, "group", _, "dead" | "redriven", key]:
                yield name, min(seq, ends.get(name_of(key), 0) - 1)
            case _:
                yield name, seq


def _reached(commits: Offsets, ends: Offsets) -> Offsets:
    """Committed offsets, at most those of the last records."""
    return {key: min(at, ends[key] - 1) for key, at in commits.items() if ends.get(key)}


async def _checked(target: Store, expected: dict[str, tuple[int, str]], starts: Offsets) -> str:
    """Check a copy by `fsck`, and read it again; returns what was found. Raises `Broken`."""
    report = await check(target)
    for finding in report.findings:
        raise Broken(f"the copy is broken: {finding.invariant}, {finding.object}: {finding.text}")
    reading = _Reading(await contents_of(target), Selection(), starts)
    async for _ in reading.parts():
        pass
    found = reading.counted
    for key in expected.keys() | found.keys():
        if expected.get(key) != found.get(key):
            counts = [counted.get(key, (0,))[0] for counted in (expected, found)]
            raise Broken(
                f"the copy is not FROM: key {key!r} has {counts[1]} records of {counts[0]}, or others"
            )
    return "fsck found nothing, and each key has the records of FROM: as many, with the same digest"
