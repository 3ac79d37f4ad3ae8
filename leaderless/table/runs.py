"""A run of the core as a Parquet file, and back.

The value of a run (`leaderless.core.headlog.records.Run`) does not say which batch appended a message. The
segments that it was made of do, so their *origins* are kept, or read once more, when the run is written.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from leaderless.core.headlog.records import Run, Segment
from leaderless.table.parquet import Reader, write_file
from leaderless.table.schema import Row, messages_of, table_of

SUFFIX = ".parquet"


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
    return f"run/{first}-{last}{SUFFIX}"


def encode_run(first: int, last: int, run: Run, origins: Iterable[Origin]) -> bytes:
    """The file of a run of segments `first` to `last`, whose batches are `origins`."""
    described = {
        "first": first,
        "last": last,
        "base": run.base,
        "end": run.end,
        "commits": run.commits,
        "writers": run.writers,
    }
    return write_file(table_of(_rows(run, origins)), described)


def _rows(run: Run, origins: Iterable[Origin]) -> Iterator[Row]:
    for slot, writer, seq, keys, at in origins:
        for key, (first, count) in keys.items():
            start, messages = run.keys[key]
            for offset in range(first, first + count):
                yield Row(key, offset, messages[offset - start], writer, seq, slot, at)


def decode_run(reader: Reader) -> dict[str, Any]:
    """The value of a run, as its register would hold it."""
    described = reader.run
    table = reader.read(columns=["key", "offset", "value", "bytes", "message"])
    keys: dict[str, tuple[int, list[Any]]] = {}
    rows = zip(
        table["key"].to_pylist(), table["offset"].to_pylist(), messages_of(table), strict=True
    )
    for key, offset, message in rows:
        keys.setdefault(key, (offset, []))[1].append(message)
    blocks = {key: [*block] for key, block in keys.items()}
    return {
        "base": described["base"],
        "end": described["end"],
        "keys": blocks,
        "commits": described["commits"],
        "writers": described["writers"],
    }


def block_of(table: pa.Table) -> list[Any] | None:
    """Rows of one key as a block, `[first offset, messages]`; None without rows."""
    return [table["offset"][0].as_py(), messages_of(table)] if table.num_rows else None
