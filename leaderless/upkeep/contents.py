"""A log as it is at one moment, and its records in the order of slots, a part at a time.

The prefix is consistent: every batch of the slots below its end, and no other. It stays readable while others
append, seal and compact (`leaderless.core.headlog.chain`); where runs are files, for the hour that replaced
files stay.
"""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import NamedTuple

from leaderless.core.headlog.index import Index, IndexEntry, Part, decode_part, page_of
from leaderless.core.headlog.outline import Outline
from leaderless.core.headlog.records import Head, Run, Segment, merge, rest_of, run_of
from leaderless.core.shape import Shape
from leaderless.errors import Unreachable
from leaderless.hosting.place import require_log
from leaderless.store.calls import in_thread
from leaderless.store.chain import read_listed, read_tail, runs_below
from leaderless.store.files import files_of
from leaderless.store.port import Store, StoreError
from leaderless.table.manifest import Manifest, read_manifest


class Contents(NamedTuple):
    """What `contents_of` found.

    `segments`: those that are in no run, and the tail of the head. `starts`: the first offset of each key that
    has lost records to a retention or a trim. `outline`: ends of keys, commits, newest batches of writers.
    """

    store: Store
    shape: Shape
    head: Head
    compacted: Index
    manifest: Manifest
    segments: list[Segment]
    starts: Mapping[str, int]
    outline: Outline

    @property
    def end(self) -> int:
        """The slot after its newest batch."""
        return self.outline.slot

    async def runs(self) -> AsyncIterator[Run]:
        """All of it in the order of slots. Records below `starts` may be there. Raises `LogError`."""
        if self.shape.sliced:
            from leaderless.table.snapshot import files_below, runs_of

            for ref in await files_below(self.store, self.manifest, self.compacted):
                try:
                    async for run in runs_of(self.store, ref):
                        yield run
                except StoreError as error:  # such as `Gone`
                    raise Unreachable(f"{ref.path}: {error}; repeat it, and it goes on") from error
        else:
            async for listed in runs_below(self.store, self.compacted.listed):
                yield await read_listed(self.store, listed.register(), run_of)
        for segment in self.segments:
            for slot, entry in enumerate(segment.entries, segment.base):
                yield merge([Segment(slot, [entry])])


async def contents_of(store: Store) -> Contents:
    """The log in a store as it is now; its directory is read, no older message. Raises `LogError`."""
    shape = await require_log(store)
    manifest, starts = Manifest(), dict[str, int]()
    if shape.sliced and (files := files_of(store)):
        from leaderless.table.retention import read_starts

        manifest, _ = await read_manifest(store)  # before the index: runs move into merged files
        starts = await in_thread(partial(read_starts, files, manifest))
    index, head, held = await read_tail(store)
    tail = rest_of(head, index.end)
    segments = [*(each.value for each in held or ()), *([tail] if tail.entries else [])]
    outline = Outline(0, lambda _: 0, ())
    for listed in index.listed:
        for place in range(listed.parts):
            outline.add(await _part(store, shape, listed, place))
        outline.slot = listed.end
    for segment in segments:
        outline.add(merge([segment]))
        outline.slot = segment.end
    return Contents(store, shape, head, index, manifest, segments, starts, outline)


async def _part(store: Store, shape: Shape, listed: IndexEntry, place: int) -> Part:
    """A part of the directory; that of a run in a file stands there."""
    if listed.level or not shape.sliced:
        return await read_listed(store, listed.register(place), decode_part)
    from leaderless.table.snapshot import page_in

    return page_of(await in_thread(partial(page_in, store, listed)))
