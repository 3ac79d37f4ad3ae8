"""A run of the core as a Parquet file, and back.

The value of a run (`leaderless.core.headlog.records.Run`) does not say which batch appended a message. The
segments that it was made of do, so their *origins* are kept, or read once more, when the run is written.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.headlog.records import Run
from leaderless.table.parquet import Reader, write_file
from leaderless.table.schema import COLUMNS, content_arrays, messages_of, micros_of

SUFFIX = ".parquet"


class Origin(NamedTuple):
    """A batch: its slot and name, of each key the first offset and the count, and when its segment was
    written."""

    slot: int
    writer: str
    seq: int
    keys: dict[str, tuple[int, int]]
    at: float | None


def origins_of(segment: Any, at: float | None) -> list[Origin]:
    """The batches of a segment, as its register holds it, that was written `at`, in seconds since 1970.

    Raises `TypeError`, `KeyError` or `ValueError` for what is no segment, such as a deleted one.
    """
    return [
        Origin(
            slot,
            writer,
            seq,
            {key: (first, len(msgs)) for key, (first, msgs) in appends.items()},
            at,
        )
        for slot, (writer, seq, appends, _) in enumerate(segment["entries"], segment["base"])
    ]


def run_path(first: int, last: int) -> str:
    """The file of the run of segments `first` to `last`."""
    return f"run/{first}-{last}{SUFFIX}"


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


def _table(run: Run, origins: Sequence[Origin]) -> pa.Table:
    """The rows of a run in the order of key and offset.

    They are made of *pieces*, the messages of one key in one batch: Python handles pieces, Arrow the rows.
    """
    parts: dict[
        str, list[tuple[int, int]]
    ] = {}  # of a key: its batches, and how many messages they have
    for place, origin in enumerate(origins):
        for key, (_, count) in origin.keys.items():
            parts.setdefault(key, []).append((count, place))
    keys = sorted(run.keys)
    messages = [*chain.from_iterable(run.keys[key][1] for key in keys)]
    pieces = [(key, *part) for key in keys for part in parts[key]]
    names, counts, batches = zip(*pieces, strict=True) if pieces else [()] * 3
    piece_of_row = _parents(counts)
    row_of_key = [0, *accumulate(len(run.keys[key][1]) for key in keys)]
    shifts = {key: run.keys[key][0] - row for key, row in zip(keys, row_of_key, strict=False)}
    shift = pa.array([shifts[name] for name in names], pa.int64()).take(piece_of_row)
    batch_of_row = pa.array(batches, pa.int64()).take(piece_of_row)
    return pa.Table.from_arrays(
        [
            pa.array(names, pa.string()).take(piece_of_row),
            pc.add(pa.array(range(len(messages)), pa.int64()), shift),
            *content_arrays(messages),
            *(column.take(batch_of_row) for column in _columns_of(origins)),
        ],
        schema=COLUMNS,
    )


def _parents(counts: Sequence[int]) -> pa.Array:
    """For each row its piece: 0 as often as the first count says, then 1, and so on."""
    ends = pa.array([0, *accumulate(counts)], pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.nulls(sum(counts)))
    return pc.list_parent_indices(lists)


def _columns_of(origins: Sequence[Origin]) -> list[pa.Array]:
    """The columns `writer`, `seq`, `slot` and `appended_at`, a row for each batch."""
    return [
        pa.array([each.writer for each in origins], pa.string()),
        pa.array([each.seq for each in origins], pa.int64()),
        pa.array([each.slot for each in origins], pa.int64()),
        pa.array([micros_of(each.at) for each in origins], COLUMNS.field("appended_at").type),
    ]


def directory_of(reader: Reader) -> dict[str, Any]:
    """A run without its messages: a page of the index whose only child is the run itself.

    So the core learns what the run has (`leaderless.core.headlog.index.Page`), and asks for slices of it.
    """
    described = reader.run
    first, last, base, end = (described[name] for name in ("first", "last", "base", "end"))
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
        "commits": described["commits"],
        "writers": described["writers"],
    }


def block_of(table: pa.Table) -> list[Any] | None:
    """Rows of one key as a block, `[first offset, messages]`; None without rows."""
    return [table["offset"][0].as_py(), messages_of(table)] if table.num_rows else None
