"""A run of the core as a Parquet file, and back.

The value of a run (`leaderless.core.headlog.records.Run`) does not say which batch appended a message. The
segments that it was made of do, so their *origins* are kept, or read once more, when the run is written.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from leaderless.core.coordination import Json
from leaderless.core.headlog.records import Run, Segment
from leaderless.errors import Broken
from leaderless.store.files import WHOLE_BYTES_MAX, Files, MemoryFiles, size_if_there
from leaderless.store.port import Refused
from leaderless.table.pages import GROUP_BYTES_MAX
from leaderless.table.parquet import Reader, again, write_file
from leaderless.table.pieces import BatchColumns, Piece, table_of_pieces
from leaderless.table.schema import COLUMNS, messages_of

FOLDER, SUFFIX = "run", ".parquet"


class Origin(NamedTuple):
    """A batch: its slot and name, of each key the first offset and the count, and when its segment was
    written."""

    slot: int
    writer: str
    seq: int
    keys: dict[str, tuple[int, int]]
    at: float | None


def origins_of(segment: Segment, at: float | None) -> list[Origin]:
    """The batches of a segment that was written `at`, in seconds since 1970."""
    return [
        Origin(
            slot,
            writer,
            seq,
            {key: (first, len(msgs)) for key, (first, msgs) in appends.items()},
            at,
        )
        for slot, (writer, seq, appends, _) in enumerate(segment.entries, segment.base)
    ]


def run_path(first: int, last: int) -> str:
    """The file of the run of segments `first` to `last`."""
    return f"{FOLDER}/{first}-{last}{SUFFIX}"


def encode_run(first: int, last: int, run: Run, origins: Iterable[Origin]) -> bytes:
    """The file of a run of segments `first` to `last`, whose batches are `origins`, in the order of slots."""
    described = {
        "first": first,
        "last": last,
        "base": run.base,
        "end": run.end,
        "commits": run.commits,
        "writers": run.writers,
    }
    return write_file(_table(run, [*origins]), described)


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


def _table(run: Run, origins: Sequence[Origin]) -> pa.Table:
    """The rows of a run in the order of key and offset."""
    parts: dict[
        str, list[tuple[int, int]]
    ] = {}  # of a key: its batches, and how many messages they have
    for place, origin in enumerate(origins):
        for key, (_, count) in origin.keys.items():
            parts.setdefault(key, []).append((count, place))
    batches = [BatchColumns(each.writer, each.seq, each.slot, each.at) for each in origins]
    return table_of_pieces(batches, [*_pieces(run, parts)])


def _pieces(run: Run, parts: dict[str, list[tuple[int, int]]]) -> Iterator[Piece]:
    for key in sorted(run.keys):
        first, messages = run.keys[key]
        at = 0
        for count, batch in parts[key]:
            yield Piece(key, first + at, messages[at : at + count], batch)
            at += count


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
    """Rows of one key as a block, `[first offset, messages]`; None without rows. Raises `Broken`."""
    if not table.num_rows:
        return None
    offsets = table["offset"].to_pylist()
    if offsets != [*range(offsets[0], offsets[0] + len(offsets))]:
        raise Broken(
            f"key {table['key'][0]} has gaps between offsets {offsets[0]} and {offsets[-1]}"
        )
    return [offsets[0], messages_of(table)]
