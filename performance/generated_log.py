"""A long log, written as compaction leaves it: runs, merged files, and a short end that is in no file yet.

Appending millions of messages takes longer than most measurements of what reads them. So the files are made
by the functions of compaction (`core.headlog.records.merge`, `table.runs.encode_run`, `table.merge`), and the
registers are written as it would write them. All runs stand in the index itself, without pages.
"""

from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from leaderless.core.headlog.index import COMPACTED, Index, Listed, size_of_run
from leaderless.core.headlog.records import HEAD, Head, Segment, merge, segment_name
from leaderless.core.messages import Entry, Heading
from leaderless.library.place import initialise
from leaderless.store.files import Files, files_of
from leaderless.store.port import Store
from leaderless.store.registers import canonical
from leaderless.table.blocking import in_thread
from leaderless.table.levels import Levels
from leaderless.table.manifest import Manifest, Merged, replace_manifest
from leaderless.table.merge import merge as merge_rows
from leaderless.table.parquet import Reader, Writer
from leaderless.table.runs import encode_run, origins_of, run_path

SEGMENTS_PER_RUN = 4  # of a batch each
TAIL = 8  # segments in no file
AT = 1.7e9


class Shape(NamedTuple):
    """So many messages of `width` bytes, the second half of them random digits, spread evenly over keys.

    A batch has `batch` of them, and is a segment.
    """

    messages: int
    keys: int
    width: int
    batch: int

    def records(self, first: int) -> list[tuple[str, str]]:
        """The keys and values of a batch."""
        random, half = Random(first), self.width // 2
        last = min(first + self.batch, self.messages)
        return [
            (f"k{at % self.keys:06}", f"{at:0{half}}{random.randrange(10**half):0{half}}")
            for at in range(first, last)
        ]

    def segment(self, number: int) -> Segment:
        """The segment of a batch."""
        appends: dict[str, tuple[int, list[str]]] = {}
        first = number * self.batch
        for at, (key, value) in enumerate(self.records(first), first):
            appends.setdefault(key, (at // self.keys, []))[1].append(value)
        return Segment(number, [Entry("performance", number, appends, {})])


async def generate(store: Store, shape: Shape) -> None:
    """Write the log into a store that has none."""
    await initialise(store, "parquet")
    files = files_of(store)
    assert files is not None
    count = -(-shape.messages // shape.batch)
    compacted = max(0, count - TAIL) // SEGMENTS_PER_RUN * SEGMENTS_PER_RUN
    runs = [
        await in_thread(partial(_run, files, shape, range(first, first + SEGMENTS_PER_RUN)))
        for first in range(0, compacted, SEGMENTS_PER_RUN)
    ]
    fan = Levels().fan
    merged = [
        await in_thread(partial(_merged, files, [file for _, file in some]))
        for some in (runs[at : at + fan] for at in range(0, len(runs) - fan + 1, fan))
    ]
    if merged:
        assert await replace_manifest(store, Manifest(files=tuple(merged)), None)
    index = Index(1, compacted, tuple(listed for listed, _ in runs))
    await store.create(COMPACTED, canonical(index.value))
    for number in range(compacted, count):
        await store.create(segment_name(number), canonical(shape.segment(number).value))
    heading = Heading(version=1, by="performance", sealed=count, base=count)
    await store.create(HEAD, canonical(Head(heading, []).value))


def _run(files: Files, shape: Shape, numbers: range) -> tuple[Listed, Merged]:
    segments = [shape.segment(number) for number in numbers]
    run, first, last = merge(segments), numbers[0], numbers[-1]
    origins = [origin for each in segments for origin in origins_of(each.value, AT)]
    content = encode_run(first, last, run, origins)
    path = run_path(first, last)
    files.put(path, content)
    listed = Listed(0, first, last, run.base, run.end, 1, size_of_run(run))
    return listed, Merged(path, 0, first, last, run.base, run.end, 0, len(content), None)


def _merged(files: Files, some: list[Merged]) -> Merged:
    first, last = some[0], some[-1]
    path = f"merged/{first.first}-{last.last}-generated.parquet"
    described = {"first": first.first, "last": last.last, "base": first.base, "end": last.end}
    with TemporaryDirectory() as folder:
        target = Path(folder, "merged.parquet")
        with Writer(target, described) as writer:
            merge_rows([Reader(files, each.path, size=each.bytes) for each in some], writer)
        size = target.stat().st_size
        files.put(path, target)
    rows, keys = writer.content
    return Merged(path, 1, first.first, last.last, first.base, last.end, rows, size, keys)
