"""A long log, written as compaction leaves it: merged files, runs, and a short end that is in no file yet.

Appending millions of messages takes longer than most measurements of what reads them. So the log is made from
its end: which files there are follows from the rules of upkeep (`table.levels`), and which pages the index has
from those of the core (`core.headlog.index`). The rows of merged files are made by numpy, key by key; runs and
segments by the functions of compaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import orjson

from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    Listed,
    Part,
    decode_part,
    distribute,
    new_page,
    parts_for,
    size_of_run,
)
from leaderless.core.headlog.records import HEAD, Head, merge, segment_name
from leaderless.core.messages import Heading
from leaderless.core.shape import Shape as Sizes
from leaderless.library.place import initialise
from leaderless.store.calls import in_thread
from leaderless.store.files import Files, files_of
from leaderless.store.port import Store
from leaderless.store.registers import canonical
from leaderless.table.levels import Levels, next_merge
from leaderless.table.manifest import Manifest, Merged, replace_manifest
from leaderless.table.parquet import Writer
from leaderless.table.runs import encode_run, origins_of, run_path
from performance.generated_rows import AT, WRITER, Shape

SEGMENTS_PER_RUN = 5  # of a batch of almost 1 MiB each: what a run of files takes
TAIL = 8  # segments in no file


class Upkept(NamedTuple):
    """What upkeep makes of runs: the files that stay, and the files of each merge on the way."""

    files: list[Merged]
    merges: list[list[Merged]]

    @property
    def biggest(self) -> list[Merged]:
        """The files of the largest merge; an empty list: there is none."""
        return max(self.merges, key=bytes_of, default=[])


def upkept(runs: Sequence[Merged], levels: Levels) -> Upkept:
    """What upkeep makes of runs that come one after the other (`leaderless.table.upkeep`)."""
    manifest, merges = Manifest(), []
    for first in range(0, len(runs), levels.fan):
        some = next_merge(Manifest(), runs[first : first + levels.fan], levels)
        while some:
            manifest = manifest.with_merged(some, merged_of(some), AT)
            merges.append(some)
            some = next_merge(manifest, [], levels)
    return Upkept([*manifest.files], merges)


def upkept_of(shape: Shape) -> Upkept:
    """What upkeep makes of the runs of a log that are below pages; each has the size of the first one."""
    listed = [run_of(at) for at in range(0, compacted(shape), SEGMENTS_PER_RUN)]
    count = Sizes().page_children
    paged = (len(listed) - 1) // count * count  # a page is made before the next run is listed
    if paged <= 0:
        return Upkept([], [])
    rows, size = SEGMENTS_PER_RUN * shape.batch, len(run_file(shape, listed[0]))
    runs = [
        Merged(run_path(*span[:2]), 0, *span, rows, size, None)
        for span in ((run.first, run.last, run.base, run.end) for run in listed[:paged])
    ]
    return upkept(runs, Levels())


def compacted(shape: Shape) -> int:
    """The first segment that is in no run."""
    return max(0, shape.batches - TAIL) // SEGMENTS_PER_RUN * SEGMENTS_PER_RUN


def run_of(first: int, size: int = 0) -> Listed:
    """The run whose first segment is `first`, as the index lists it."""
    end = first + SEGMENTS_PER_RUN
    return Listed(0, first, end - 1, first, end, 1, size)


def run_file(shape: Shape, run: Listed) -> bytes:
    """The file of a run."""
    segments = [shape.segment(number) for number in range(run.first, run.last + 1)]
    origins = [origin for each in segments for origin in origins_of(each, AT)]
    return encode_run(run.first, run.last, merge(segments), origins)


def merged_of(some: Sequence[Merged]) -> Merged:
    """The file that consecutive ones become, if it is as large as they are together."""
    first, last = some[0], some[-1]
    path = f"merged/{first.first}-{last.last}-generated.parquet"
    rows = sum(each.rows for each in some)
    spans = first.first, last.last, first.base, last.end
    return Merged(path, first.level + 1, *spans, rows, bytes_of(some), None)


def bytes_of(files: Sequence[Merged]) -> int:
    """The bytes of files together."""
    return sum(file.bytes for file in files)


def write_merged(files: Files, shape: Shape, file: Merged) -> Merged:
    """Write a merged file; returns it as it is."""
    first, last, base, end = file[2:6]
    described = {"first": first, "last": last, "base": base, "end": end}
    with TemporaryDirectory() as folder:
        target = Path(folder, "merged.parquet")
        with Writer(target, described) as writer:
            for table in shape.tables(base, end):
                writer.write(table)
        size = target.stat().st_size
        files.put(file.path, target)
    rows, keys = writer.content
    return file._replace(rows=rows, bytes=size, keys=keys)


@dataclass(frozen=True)
class _Generator:
    """Writes the index of a log into a store."""

    store: Store
    shape: Shape
    sizes: Sizes

    async def index(self) -> Index:
        """The index, with its pages written: as `core.headlog.compaction` makes one run after the other."""
        listed: list[Listed] = []
        size = size_of_run(self.shape.outline(0, SEGMENTS_PER_RUN))  # of any run, about
        for first in range(0, compacted(self.shape), SEGMENTS_PER_RUN):
            await self._page(listed)
            listed.append(run_of(first, size))
        return Index(0, compacted(self.shape), tuple(listed))

    async def _page(self, listed: list[Listed]) -> None:
        """Put a page in place of the last ones of a level that is full."""
        count = self.sizes.page_children
        while len(listed) >= count and len({each.level for each in listed[-count:]}) == 1:
            listed[-count:] = [await self._written(listed[-count:])]

    async def _written(self, children: list[Listed]) -> Listed:
        """Write the page of some children."""
        first, last, sizes = children[0], children[-1], self.sizes
        parts = parts_for(sum(child.size for child in children), sizes.page_bytes)
        drafts = {part: new_page(children) for part in range(parts)}
        for place, child in enumerate(children):
            for source in await self._parts(child):
                distribute(source, place, drafts, parts)
        size = sum(draft.size for draft in drafts.values())
        spans = first.first, last.last, first.base, last.end
        page = Listed(first.level + 1, *spans, parts, size, 1)
        for part, draft in drafts.items():
            await self.store.create(page.register(part), canonical(draft.value))
        return page

    async def _parts(self, child: Listed) -> list[Part]:
        if not child.level:
            return [self.shape.outline(child.base, child.end)]
        found = [await self.store.read(name) for name in child.registers]
        return [decode_part(orjson.loads(each.value)) for each in found if each]


async def generate(store: Store, shape: Shape) -> None:
    """Write the log into a store that has none."""
    sizes = (await initialise(store, "parquet")).shape
    files = files_of(store)
    assert files is not None
    generator = _Generator(store, shape, sizes)
    index = await generator.index()
    written = [
        await in_thread(partial(write_merged, files, shape, file))
        for file in upkept_of(shape).files
    ]
    if written:
        assert await replace_manifest(store, Manifest(files=tuple(written)), None)
    for first in range(written[-1].end if written else 0, index.end, SEGMENTS_PER_RUN):
        run = run_of(first)
        content = await in_thread(partial(run_file, shape, run))
        await in_thread(partial(files.put, run_path(run.first, run.last), content))
    await store.create(COMPACTED, canonical(index.value))
    for number in range(index.end, shape.batches):
        await store.create(segment_name(number), canonical(shape.segment(number).value))
    end = shape.batches
    heading = Heading(version=1, by=WRITER, sealed=end, base=end, shape=sizes)
    await store.create(HEAD, canonical(Head(heading, []).value))
