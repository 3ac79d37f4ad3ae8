"""Begins a log whose keys do not begin at offset 0, as one that a retention has taken its oldest records of.

Its first segment is a tombstone. The run of that segment has no file, and stands in a page that says where each
key begins. `table` says that the log starts behind it.
"""

from collections.abc import Mapping
from functools import partial

import orjson

from leaderless.core.claims import Claim
from leaderless.core.coordination import TOMBSTONE
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    IndexEntry,
    Page,
    distribute,
    new_page,
    parts_for,
    size_of_run,
)
from leaderless.core.headlog.records import HEAD, Head, Run, segment_name
from leaderless.core.messages import Heading
from leaderless.core.shape import Shape
from leaderless.errors import Unfit
from leaderless.hosting.surroundings import REAL
from leaderless.store.calls import in_thread, patiently
from leaderless.store.files import files_of
from leaderless.store.port import Refused, Store, replaced
from leaderless.store.registers import canonical
from leaderless.table.manifest import Start, read_manifest, replace_manifest


async def begin_trimmed(store: Store, shape: Shape, starts: Mapping[str, int]) -> None:
    """Make the first head of a log that has none: keys begin at `starts`, above 0. May be repeated.

    Raises `Unfit` for a log of JSON runs, and `Definite` where another copy has begun.
    """
    files = files_of(store)
    if not shape.sliced or files is None:
        key, start = next(iter(starts.items()))
        raise Unfit(
            f"key {key!r} of FROM begins at offset {start}, and in a log with runs of JSON all keys begin at "
            "0: copy it to another place, with runs of Parquet (`--runs parquet`)"
        )
    size = sum(size_of_run(Run(0, 1, {key: (0, [])}, {}, {})) for key in starts)
    child = IndexEntry(0, 0, 0, 0, 1, 1, size)
    parts = parts_for(size, shape.page_bytes)
    drafts = {part: new_page([child]) for part in range(parts)}
    keys = {key: [0, 0, start] for key, start in starts.items()}
    distribute(Page(0, 1, [child], keys, {}, {}), 0, drafts, parts)
    page = IndexEntry(1, 0, 0, 0, 1, parts, sum(draft.size for draft in drafts.values()))
    values: dict[str, object] = {
        **{page.register(part): draft.value for part, draft in drafts.items()},
        segment_name(0): TOMBSTONE,
        CLAIM: Claim(epoch=1, task=1).value,
        COMPACTED: Index(epoch=1, cursor=1, listed=(page,)).value,
    }
    for name, value in values.items():
        await patiently(partial(_make, store, name, canonical(value)))
    path = f"starts/{REAL.token()}.json"
    await in_thread(partial(files.put, path, orjson.dumps(dict(starts))))
    manifest, version = await read_manifest(store)
    await replace_manifest(store, manifest._replace(start=Start(1, 1, path)), version)
    head = Head(Heading(version=1, by="copy", sealed=1, base=1, shape=shape), [])
    await patiently(partial(_make, store, HEAD, canonical(head.value)))


async def _make(store: Store, name: str, value: bytes) -> None:
    """Make an object that may be there already. Raises `Refused` where another one is: that stays."""
    if await replaced(store, name, value, None) is None:
        found = await store.read(name)
        if not found or found.value != value:
            raise Refused(
                f"{name} at {store.url} is of another copy, or FROM has lost more since this one began: "
                "copy it to an empty place"
            )
