"""A run of the core as a Parquet file, and back.

The value of a run (`leaderless.core.headlog.records.Run`) does not say which batch appended a message. The
segments that it was made of do, so they are kept, or read once more, when the run is written.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from leaderless.core.coordination import Json
from leaderless.core.headlog.records import Run, Segment
from leaderless.errors import Broken
from leaderless.store.calls import in_thread
from leaderless.store.chain import read_index, runs_below
from leaderless.store.files import WHOLE_BYTES_MAX, Files, MemoryFiles, size_if_there
from leaderless.store.port import Refused, Store
from leaderless.table.manifest import Merged
from leaderless.table.pages import GROUP_BYTES_MAX
from leaderless.table.parquet import Reader, again, write_file
from leaderless.table.pieces import BatchColumns, Piece, batch_columns, table_of_pieces
from leaderless.table.schema import COLUMNS, messages_of, times_in

FOLDER, SUFFIX = "run", ".parquet"


def pieces_of(
    run: Run, segment: Segment, at: float | None, batches: list[BatchColumns]
) -> Iterator[Piece]:
    """The pieces of a run that a segment of it says; its batches come behind `batches`.

    `at`: when the segment was written, in seconds since 1970. The messages are those of the run, so
    memory holds no second copy of them.
    """
    for slot, entry in enumerate(segment.entries, segment.base):
        for key, (first, messages) in entry.appends.items():
            start, held = run.keys[key]
            place = first - start
            yield Piece(key, first, held[place : place + len(messages)], len(batches))
        batches.append(batch_columns(entry, slot, at))


def run_path(first: int, last: int) -> str:
    """The file of the run of segments `first` to `last`."""
    return f"{FOLDER}/{first}-{last}{SUFFIX}"


async def paged_runs(store: Store, files: Files, first: int) -> AsyncIterator[Merged]:
    """The runs of segments from `first` on that pages stand above, as files of level 0. Raises `LogError`.

    They may be merged, or leave: a start reads the files of newer runs alone.
    """
    pages = [each for each in (await read_index(store)).listed if each.level]
    async for run in runs_below(store, pages, first):
        path = run_path(run.first, run.last)
        size = await in_thread(partial(files.size, path))
        yield Merged(path, 0, run.first, run.last, run.base, run.end, 0, size, None)


def encode_run(
    first: int, last: int, run: Run, batches: Sequence[BatchColumns], pieces: Iterable[Piece]
) -> bytes:
    """The file of a run of segments `first` to `last`, of all that `pieces_of` says of these."""
    described = {
        "first": first,
        "last": last,
        "base": run.base,
        "end": run.end,
        "commits": run.commits,
        "writers": run.writers,
    }
    ordered = sorted(pieces, key=lambda piece: (piece.key, piece.first))
    return write_file(table_of_pieces(batches, ordered), described)


def create_run(files: Files, path: str, content: bytes) -> None:
    """Make the file of a run, or find the same run there: when this returns, an index may name it.

    Two programs may write one run in different bytes. Its rows count, without their times, and what the
    metadata say. Raises `Refused` when another run is there, `OutcomeUnknown`, `Broken`.
    """
    # A larger one would replace what is there.
    if len(content) <= WHOLE_BYTES_MAX or size_if_there(files, path) is None:
        files.put(path, content)
    size = files.size(path)
    is_near = size <= len(content) + GROUP_BYTES_MAX  # a larger one is not read
    found = again(partial(files.read_range, path, 0, size)) if is_near else b""
    if not is_near or (found != content and _meaning(found) != _meaning(content)):
        raise Refused(
            f"{path} is there and holds another run: nothing was changed; see `leaderless fsck`"
        )


def _meaning(content: bytes) -> tuple[dict[str, Json], pa.Table]:
    """What two files of one run have in common."""
    memory = MemoryFiles()
    memory.put("run", content)
    reader = Reader(memory, "run")
    return reader.run, reader.read(
        columns=[name for name in COLUMNS.names if name != "appended_at"]
    )


def directory_of(reader: Reader) -> dict[str, Json]:
    """A run without its messages: a page of the index whose only child is the run itself.

    So the core learns what the run has (`leaderless.core.headlog.index.Page`), and asks for slices of it.
    """
    first, last, base, end = reader.spans
    ends = (
        reader.read(columns=["key", "offset"])
        .group_by("key")
        .aggregate([("offset", "min"), ("offset", "max")])
    )
    columns = (ends[name].to_pylist() for name in ("key", "offset_min", "offset_max"))
    return {
        "base": base,
        "end": end,
        "children": [[0, first, last, base, end, 1, 0]],
        "keys": {key: [low, 0, high + 1] for key, low, high in zip(*columns, strict=True)},
        "commits": reader.run.get("commits"),
        "writers": reader.run.get("writers"),
    }


def block_in(table: pa.Table) -> list[Json] | None:
    """Rows of one key, `[first offset, messages, times]`; None without rows. Raises `Broken`."""
    if not table.num_rows:
        return None
    offsets = table["offset"].to_pylist()
    if offsets != [*range(offsets[0], offsets[0] + len(offsets))]:
        raise Broken(
            f"key {table['key'][0]} has gaps between offsets {offsets[0]} and {offsets[-1]}"
        )
    return [offsets[0], messages_of(table), times_in(table)]
