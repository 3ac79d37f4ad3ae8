"""The plan of a read in which Spark itself reads the files of the log.

Spark's reader of Parquet is several times faster than any data source in Python. A plan divides one version of
the log into parts, which have each record once:

1. the records in files on a local disk, with their values: for Spark's own reader;
2. the records in files whose values stand in objects of their own: for the data source, if there are any;
3. the records that were in no file when the plan was made: the plan has them itself, if they are few;
4. what is left, slots `end` to `upto` - 1: for the data source, which finds them wherever compaction has moved
   them meanwhile.

The files never change. Compaction keeps those that it replaces, for the retention of readers. Parts 2 and 4 are
named by their slots, so compaction does not change what they have.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from leaderless.errors import Definite
from leaderless.spark.predicate import Predicate
from leaderless.store.calls import in_thread, side_by_side
from leaderless.store.files import Gone, files_of
from leaderless.store.port import Store
from leaderless.table.snapshot import FileRef, reader_of, snapshot

READ_AT_ONCE = 16
SEGMENTS_MAX = 32  # of a tail that the driver reads; one that is compacted has half of them
_GLOB = re.compile(r"([][*?{}\\])")


class Plan(NamedTuple):
    """What is read: slots `start` to `version` - 1.

    `files`: paths as Spark takes them, without the scheme; they hold the slots below `end` of the wanted keys.
    `tail`: the wanted records from slot `upto` on. `divided`: whether `files` may hold slots from `end` on,
    too. `has_large`: whether they have records whose values stand in objects of their own.
    """

    files: tuple[str, ...]
    start: int
    end: int
    upto: int
    version: int
    tail: pa.Table
    divided: bool = False
    has_large: bool = False


async def plan_of(store: Store, as_of: int | None, predicate: Predicate) -> Plan:
    """The plan for the log in a store as it is now, or as it was when it had `as_of` batches.

    Raises `LogError`, such as `OtherFormat` for a file of a newer program.
    """
    found = await snapshot(store, as_of, keys=predicate.keys, segments_max=SEGMENTS_MAX)
    start, version, tail = found.start, found.version, predicate.select(found.tail)
    sealed = found.files[-1].end if found.files else start
    upto = min(version, sealed)
    if not found.has_tail or tail["message"].null_count < tail.num_rows:
        upto, tail = version, tail.slice(0, 0)
    paths = _paths(store, found.files)
    if not paths:
        return Plan((), start, start, upto, version, tail)
    wanted = [ref for ref in found.files if predicate.may_hold(ref.keys)]
    large = await _any_large(store, wanted)
    names, end = tuple(paths[ref] for ref in wanted), min(version, sealed)
    return Plan(names, start, end, upto, version, tail, sealed > version, large)


def _paths(store: Store, refs: Iterable[FileRef]) -> dict[FileRef, str]:
    """The paths of files on a local disk; nothing when some file is elsewhere, or is no Parquet."""
    files = files_of(store)
    if files is None or any(ref.kind != "parquet" for ref in refs):
        return {}
    paths = {ref: files.location(ref.path) for ref in refs}
    if not all(path.startswith("/") for path in paths.values()):
        return {}
    return {ref: _GLOB.sub(r"\\\1", path) for ref, path in paths.items()}


async def _any_large(store: Store, refs: Sequence[FileRef]) -> bool:
    """Whether one of the files has such records. Each file's footer is read, which checks its format, too."""
    found = False
    for first in range(0, len(refs), READ_AT_ONCE):
        some = refs[first : first + READ_AT_ONCE]
        calls = [partial(in_thread, partial(_has_large, store, ref)) for ref in some]
        found = any([found, *await side_by_side(calls)])
    return found


def _has_large(store: Store, ref: FileRef) -> bool:
    try:
        reader = reader_of(store, ref)
    except Gone as gone:
        raise Definite(f"{gone}: it was replaced meanwhile; read again") from gone
    return any(reader.has(place, "message") for place in range(reader.row_groups))
