"""Tables of a log's rows, made of *pieces*: the messages of one key in one batch.

Python handles pieces, and Arrow the rows. Records are lists, dicts and tuples without cycles, so reference
counts free them. Python's collector looks at them again and again all the same. It took a third of the CPU
time of a commit, and two thirds of a snapshot's (`rare_collections`).
"""

import ctypes
import gc
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from threading import Lock
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.coordination import Json
from leaderless.core.headlog.records import Run
from leaderless.core.messages import Entry
from leaderless.store.names import COPIES
from leaderless.table.schema import COLUMNS, content_arrays, micros_of

RARELY = 100_000, 20, 50  # as `gc.set_threshold` takes them; Python's own are 700, 10, 10

# The C library keeps what was freed, in an arena for each thread; not all of them can give it back.
_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
_lock = Lock()
# Of each block that has not ended: what was set before the first.
_within: list[tuple[int, int, int]] = []


class BatchColumns(NamedTuple):
    """What all rows of a batch have in common; `at`: when they were appended, in seconds since 1970."""

    writer: str | None
    seq: int | None
    slot: int | None
    at: float | None


def batch_columns(entry: Entry, slot: int, at: float | None) -> BatchColumns:
    """Those of an entry; `at`: when its segment was written, which says nothing of what a copy put there."""
    at = None if entry.writer.startswith(COPIES) else at
    return BatchColumns(
        entry.writer, entry.seq, slot, at if entry.time is None else entry.time / 1000
    )


class Piece(NamedTuple):
    """Messages of a key from offset `first` on; `batch`: the place of their batch among the batches."""

    key: str
    first: int
    messages: Sequence[Json]
    batch: int


class Stretch(NamedTuple):
    """Entries of the slots from `base` on, and when their segment was written."""

    base: int
    entries: list[Entry]
    appended_at: float | None


def table_of_pieces(batches: Sequence[BatchColumns], pieces: Sequence[Piece]) -> pa.Table:
    """The rows of pieces, in their order."""
    names, firsts, blocks, places = zip(*pieces, strict=True) if pieces else [()] * 4
    counts = [len(block) for block in blocks]
    piece_of_row = _parents(counts)
    begins = accumulate(counts, initial=0)
    shifts = [first - begin for first, begin in zip(firsts, begins, strict=False)]
    batch_of_row = pa.array(places, pa.int64()).take(piece_of_row)
    rows = pa.array(range(len(piece_of_row)), pa.int64())
    *content, headers = content_arrays([*chain.from_iterable(blocks)])
    at, *others = (column.take(batch_of_row) for column in _columns_of(batches))
    return pa.Table.from_arrays(
        [
            pa.array(names, pa.string()).take(piece_of_row),
            pc.add(rows, pa.array(shifts, pa.int64()).take(piece_of_row)),
            *content,
            at,
            headers,
            *others,
        ],
        schema=COLUMNS,
    )


def table_of_run(run: Run) -> pa.Table:
    """The rows of a run of JSON, which does not say their batches."""
    batches: list[BatchColumns] = []
    pieces: list[Piece] = []
    for key in sorted(run.keys):
        first, messages, times = run.block(key)
        starts = [(first, None), *times] if not times or times[0][0] > first else times
        ends = [*(offset for offset, _ in starts[1:]), first + len(messages)]
        for (start, time), end in zip(starts, ends, strict=True):
            pieces.append(Piece(key, start, messages[start - first : end - first], len(batches)))
            at = None if time is None else time / 1000
            batches.append(BatchColumns(None, None, None, at))
    return table_of_pieces(batches, pieces)


def table_of_stretches(
    stretches: Iterable[Stretch], keys: Collection[str] | None = None
) -> pa.Table:
    """The rows of entries, of all keys or of some, in the order of the log."""
    batches: list[BatchColumns] = []
    pieces: list[Piece] = []
    for base, entries, at in stretches:
        for slot, entry in enumerate(entries, base):
            pieces += _pieces_of(entry, len(batches), keys)
            batches.append(batch_columns(entry, slot, at))
    return table_of_pieces(batches, pieces)


def _pieces_of(entry: Entry, batch: int, keys: Collection[str] | None) -> Iterator[Piece]:
    for key, (first, messages) in entry.appends.items():
        if keys is None or key in keys:
            yield Piece(key, first, messages, batch)


def _parents(counts: Sequence[int]) -> pa.Array:
    """For each row its piece: 0 as often as the first count says, then 1, and so on."""
    ends = pa.array([0, *accumulate(counts)], pa.int32())
    return pc.list_parent_indices(pa.ListArray.from_arrays(ends, pa.nulls(sum(counts))))


def _columns_of(batches: Sequence[BatchColumns]) -> list[pa.Array]:
    """The columns `appended_at`, `writer`, `seq` and `slot`, a row for each batch."""
    return [
        pa.array([micros_of(each.at) for each in batches], COLUMNS.field("appended_at").type),
        pa.array([each.writer for each in batches], pa.string()),
        pa.array([each.seq for each in batches], pa.int64()),
        pa.array([each.slot for each in batches], pa.int64()),
    ]


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within the block collections are rare; after it, and after others that overlap, they are as they were."""
    with _lock:
        _within.append(_within[0] if _within else gc.get_threshold())
        gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        with _lock:
            before = _within.pop()
            if not _within:
                gc.set_threshold(*before)


def release_memory() -> None:
    """Give what was freed back to the system, Arrow's by this thread too: a process goes on with less."""
    pa.default_memory_pool().release_unused()
    _trim(0)
