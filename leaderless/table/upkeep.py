"""Merges files of a log into larger ones, and deletes what was replaced, under a claim of its own.

The three steps, each of which may be cut off:

1. write: the merged file is made on the local disk, without a name there, and put into the store under a name
   that nobody else has;
2. replace: a compare-and-set of the register `table` names it instead of what it was made of;
3. delete, long after: `vacuum` deletes what was replaced before the retention of readers.

A worker that is cut off before step 2, or comes too late for it, leaves a file that no list names; `vacuum`
deletes it after the same retention. Before that it changes the register, so the compare-and-set of a worker
that is still at step 2 fails. A new claim raises the epoch in the register, with the same effect on a worker
that was only slow. Such a worker does not delete the file itself: where something between repeats a
compare-and-set, it is told of a conflict with its own change, and the list names the file.

The index of the core names runs, as before. Only runs below its pages are merged, because a start reads the
newer ones.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from os import SEEK_END
from tempfile import TemporaryFile, gettempdir
from threading import Event
from typing import BinaryIO, Protocol, TypeVar

import anyio

from leaderless.core.claims import Claims, LeaseLost
from leaderless.core.coordination import StoreSilent
from leaderless.core.process import Process
from leaderless.errors import Definite, Indefinite
from leaderless.store.calls import Deleted, in_thread, side_by_side
from leaderless.store.files import UNFINISHED, Files, size_if_there
from leaderless.store.names import FILE_FOLDERS, is_own, span_of_run
from leaderless.store.port import Listed, Store, Version
from leaderless.table.manifest import (
    Levels,
    Manifest,
    Merged,
    next_merge,
    read_manifest,
    replace_manifest,
)
from leaderless.table.merge import merge_rows
from leaderless.table.pages import FOOTER_BYTES
from leaderless.table.parquet import FileWriter, Reader, Written
from leaderless.table.pieces import release_memory
from leaderless.table.runs import FOLDER as RUNS
from leaderless.table.runs import SUFFIX, paged_runs

T = TypeVar("T")
CLAIM = "claim/table"
FOLDER = "merged"
BEATS_PER_LEASE = 4


class Call(Protocol):
    """Runs a process of the core, and returns or raises as it does."""

    def __call__(self, process: Process[T], /) -> Awaitable[T]:
        """What the process returns."""


class Upkeep:
    """One worker's part.

    `call` runs a process of the core. `now` gives the time of the store's clock, `token` the part of a file's
    name that no other file has. `claims` are the worker's on the register `CLAIM`, with leases of `lease_s`
    seconds.
    """

    def __init__(
        self,
        store: Store,
        files: Files,
        *,
        call: Call,
        now: Callable[[], Awaitable[float]],
        token: Callable[[], str],
        claims: Claims,
        lease_s: float,
        levels: Levels | None = None,
    ) -> None:
        self._store = store
        self._files = files
        self._call = call
        self._now = now
        self._token = token
        self._claims = claims
        self._lease_s = lease_s
        self._levels = levels or Levels()

    # ------------------------------------------------------------ merging

    async def merge(self) -> int:
        """Merge all that is to be merged, unless another worker does; returns how many files were made.

        Raises `Definite`, `Indefinite`, `Broken`.
        """
        made = 0
        if not await self._to_merge((await read_manifest(self._store))[0]):
            return made
        try:
            if await self._call(self._claims.claim()) is None:
                if self._claims.dead:  # workers crashed; the next one may try again
                    await self._call(self._claims.revive())
                return made
            while await self._merge_once():
                made += 1
            await self._call(self._claims.release(done=True))
        except LeaseLost:
            pass  # the next worker goes on where this one stopped
        except StoreSilent as silent:
            raise Indefinite(str(silent)) from silent
        return made

    async def _merge_once(self) -> bool:
        """Make one file, if there is enough for it."""
        manifest, version = await self._taken()
        some = await self._to_merge(manifest)
        if not some:
            return False
        merged = await self._beating(partial(self._write, some))
        changed = manifest.with_merged(some, merged, await self._now())
        if not await replace_manifest(self._store, changed, version):
            raise LeaseLost(CLAIM)  # and leave the file: see the module
        return True

    async def _taken(self) -> tuple[Manifest, Version | None]:
        """The manifest with the epoch of this claim, so that an older worker's update fails."""
        manifest, version = await read_manifest(self._store)
        if manifest.epoch < self._claims.epoch:
            taken = manifest._replace(epoch=self._claims.epoch)
            if not await replace_manifest(self._store, taken, version):
                raise LeaseLost(CLAIM)
            manifest, version = await read_manifest(self._store)
        if manifest.epoch != self._claims.epoch:
            raise LeaseLost(CLAIM)  # a newer worker may have merged these files, too
        return manifest, version

    async def _to_merge(self, manifest: Manifest) -> list[Merged]:
        if some := next_merge(manifest, [], self._levels):
            return some
        runs: list[Merged] = []
        async for run in paged_runs(self._store, self._files, manifest.sealed):
            runs.append(run)
            if len(runs) == self._levels.fan:
                break
        return next_merge(Manifest(), runs, self._levels)

    async def _write(self, some: Sequence[Merged]) -> Merged:
        """Make the file of consecutive ones and put it into the store.

        A caller that is cancelled does not wait. Then it stops, or leaves a file that no list names.
        """
        first, last = some[0], some[-1]
        path = f"{FOLDER}/{first.first}-{last.last}-{self._token()}{SUFFIX}"
        described = {"first": first.first, "last": last.last, "base": first.base, "end": last.end}

        def write() -> Merged:
            try:
                with TemporaryFile() as target:  # without a name, so it is gone with the process
                    content = _merge_files(self._files, some, target, described, cancelled)
                    size = target.tell()
                    target.seek(-8, SEEK_END)
                    if (footer := int.from_bytes(target.read(4), "little")) > FOOTER_BYTES:
                        raise Definite(f"no file was merged: its footer has {footer} bytes")
                    target.seek(0)
                    self._files.put(path, target)
            except OSError as error:
                text = f"no file was merged: it needs room in {gettempdir()} (see TMPDIR)"
                raise Definite(f"{text}: {error}") from error
            level = first.level + 1
            spans = first.first, last.last, first.base, last.end
            return Merged(path, level, *spans, content.rows, size, content.keys)

        cancelled = Event()
        try:
            return await in_thread(write, abandons=True)
        finally:
            cancelled.set()

    async def _beating(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something long, and show meanwhile that the worker is alive. Raises `LeaseLost`, `StoreSilent`."""
        ended = anyio.Event()
        results: list[T] = []

        async def do() -> None:
            try:
                results.append(await work())
            finally:
                ended.set()

        async def beat() -> None:
            while not ended.is_set():
                with anyio.move_on_after(self._lease_s / BEATS_PER_LEASE):
                    await ended.wait()
                await self._call(self._claims.beat())

        await side_by_side([do, beat])
        return results[0]

    # ------------------------------------------------------------ deleting

    async def vacuum(self, retention_s: float) -> Deleted:
        """Delete files that were replaced, or that no list names, more than `retention_s` seconds ago."""
        now = await self._now()
        manifest, version = await read_manifest(self._store)
        old = [each for each in manifest.replaced if now - each.at > retention_s]
        named = {file.path for file in manifest.files} | {each.path for each in manifest.replaced}
        named.add(manifest.start.path or "")
        listed = await in_thread(partial(self._listed, manifest.sealed))
        orphans = [
            each
            for each in listed
            if each.key not in named and now - (each.modified or now) > retention_s
        ]
        if not old and not orphans:
            return Deleted(0, 0)
        left = manifest._replace(
            replaced=tuple(each for each in manifest.replaced if each not in old)
        )
        # Orphans are deleted after this: a worker that would name one of them fails now. What was replaced is
        # deleted before, or nobody would remember it.
        sizes = {each.key: each.size or 0 for each in listed}
        replaced = [each.path for each in old]
        for path in {*replaced} - sizes.keys():
            size = await in_thread(partial(size_if_there, self._files, path))
            sizes[path] = size or 0  # None: an earlier vacuum was cut off
        await in_thread(partial(self._files.delete, replaced))
        if not await replace_manifest(self._store, left, version):
            return Deleted(len(replaced), sum(sizes[path] for path in replaced))
        lost = [each.key for each in orphans]
        await in_thread(partial(self._files.delete, lost))
        return Deleted(len(replaced + lost), sum(sizes[path] for path in replaced + lost))

    def _listed(self, sealed: int) -> list[Listed]:
        """The files that only the list of files names, and those of runs that nobody needs after a merge.

        Files that no log writes are of somebody else.
        """
        found = chain.from_iterable(map(self._files.list_files, FILE_FOLDERS))
        return [each for each in found if is_own(each.key) and _is_left(each.key, sealed)]


def _is_left(path: str, sealed: int) -> bool:
    """Whether a file is no run's, or not whole, or of segments below `sealed`, which merged files hold.

    A worker that was cut off before it listed its run leaves such a file, when the next one makes a longer run.
    """
    folder, _, name = path.partition("/")
    if folder != RUNS or name.startswith(UNFINISHED):
        return True
    span = span_of_run(path)
    return span is not None and span[1] < sealed


def _merge_files(
    files: Files,
    some: Sequence[Merged],
    target: BinaryIO,
    described: dict[str, int],
    cancelled: Event,
) -> Written:
    readers = [Reader(files, each.path, size=each.bytes) for each in some]
    with FileWriter(target, described) as writer:
        merge_rows(readers, writer, cancelled)
    release_memory()
    return writer.content
