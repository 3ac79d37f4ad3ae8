"""Compaction and vacuum on demand, and the outline of a log.

Why a vacuum never deletes what a record refers to. An append writes the object first, and then commits its
reference with a compare-and-set of the head. (1) The vacuum lists the objects that are older than the
retention. (2) It changes the head's version. (3) It reads every reference in the log, and deletes the listed
objects without one. A reference that got into the log before (2) is found in (3). One that is still on its way
rests on a head from before (2), so its compare-and-set fails; and by then its process has waited longer than
`Host.still_s` allows, so it makes no further one. A process that stood still before it began to commit raises
`Stalled`.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import orjson

from leaderless.core.claims import Claims
from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.records import HEAD
from leaderless.core.headlog.replica import Replica
from leaderless.core.process import Process, Sleep
from leaderless.core.strategy import Clock
from leaderless.errors import Broken, Indefinite, LogError, Unfit
from leaderless.library.cursors import Cursors
from leaderless.library.host import Host, Processes
from leaderless.library.place import Bounds
from leaderless.library.surroundings import REAL, Surroundings
from leaderless.store.calls import patiently, side_by_side
from leaderless.store.files import files_of
from leaderless.store.port import PAGE, Conflict, Listed, Store, all_of
from leaderless.store.registers import Registers
from leaderless.store.values import Reference, value_of

if TYPE_CHECKING:  # these need pyarrow
    from leaderless.table.retention import Policy, Retained
    from leaderless.table.upkeep import Done, Upkeep

log = logging.getLogger("leaderless")

RETENTION_S_MIN = 600.0
CLOCK = "clock"  # an object whose time of writing is that of the store
COMPACT_LOOK_S = 15.0  # between two looks whether segments wait that nobody compacts
MERGE_LOOK_S = 5.0  # between two looks whether this process has written enough runs to merge
LOOK_S = 0.05  # between two looks whether a compaction has ended
OTHER_LOOK_S = 0.1  # between two looks whether another process has compacted
READ_AT_ONCE = 16


class Outline(NamedTuple):
    """What the head says of a log, see `leaderless.core.messages.Heading`; `tail` counts its entries."""

    state: str
    epoch: int
    base: int
    sealed: int
    tail: int


class Vacuumed(NamedTuple):
    """Objects of large values: those that were deleted, their bytes, and those that stay.

    `files`, `files_bytes`: Parquet files that were deleted, because larger ones had replaced them.
    `staged`, `staged_bytes`: objects of sinks that were deleted (`leaderless.library.staged`).
    """

    deleted: int
    bytes: int
    kept: int
    files: int = 0
    files_bytes: int = 0
    staged: int = 0
    staged_bytes: int = 0


class Maintenance:
    """What an operator asks of one log; `host` must run."""

    def __init__(
        self,
        store: Store,
        registers: Registers,
        bounds: Bounds,
        around: Surroundings = REAL,
    ) -> None:
        self._store = store
        self._around = around
        self._bounds = bounds
        self._processes = Processes(bounds.pace)
        self.host = Host(self._processes, registers)
        self._registers = registers
        self._merged_after = 0  # runs that this process had written
        self._upkeep = self._upkeep_of(store)

    def _upkeep_of(self, store: Store) -> "Upkeep | None":
        """What merges files; None on a log without them."""
        files = files_of(store)
        if files is None or not self._bounds.limits.sliced:
            return None
        from leaderless.table.upkeep import CLAIM, Upkeep

        lease_s = self._bounds.pace.lease_s
        claims = Claims(self.clock, CLAIM, f"upkeep-{self._around.name()}", self._bounds.pace)
        call, now = self.host.call, self.now
        levels = self._bounds.levels
        return Upkeep(
            store, files, call=call, now=now, claims=claims, lease_s=lease_s, levels=levels
        )

    @property
    def clock(self) -> Clock:
        """The clock that processes on `host` read."""
        return self._processes.clock

    async def outline(self) -> tuple[Outline, int]:
        """The head's outline, and the first segment that is not deleted yet."""
        head = await self._read(HEAD) or {
            "state": "open",
            "epoch": 0,
            "base": 0,
            "sealed": 0,
            "tail": [],
        }
        index = await self._read("compacted") or {"cursor": 0}
        try:
            outline = Outline(
                head["state"], head["epoch"], head["base"], head["sealed"], len(head["tail"])
            )
            return outline, index["cursor"]
        except (KeyError, TypeError):
            raise Broken(
                "the head or the index is none of this program; see `leaderless fsck`"
            ) from None

    async def compact(self) -> int:
        """Compact what fills a run, or wait for the process that does.

        Returns how many segments are in runs and deleted.
        """
        worker = f"compact-{self._around.name()}"
        clock, (limits, pace, *_) = self._processes.clock, self._bounds
        replica = Replica(clock, worker, (), limits)
        compactor = Compactor(clock, replica, worker, pace)
        try:
            await self.host.call(_compact(clock, replica, compactor))
        except StoreSilent as silent:
            raise Indefinite(str(silent)) from silent
        await self.merge()
        return (await self.outline())[1]

    async def compact_now_and_then(self, sealed: Callable[[], int]) -> None:
        """Compact what no other process does, without end.

        Those that append compact beside their work. They may have gone, so every process looks, also one
        that only reads: when it has learnt of segments for another run, two requests tell whether they wait.
        `sealed`: how many segments there are, as far as this process knows.
        """
        known, enough = 0, self._bounds.limits.segments_per_run
        while True:
            await anyio.sleep(COMPACT_LOOK_S)
            if sealed() - known < enough:
                continue
            known = sealed()
            try:
                outline, compacted = await self.outline()
                if outline.sealed - compacted >= enough:
                    await self.compact()
            except LogError as error:
                log.info("segments are compacted later: %s", error)

    async def merge(self) -> "Done | None":
        """Merge files of runs into larger ones, as far as there are enough; None on a log without files."""
        return await self._upkeep.merge() if self._upkeep else None

    async def merge_now_and_then(self) -> None:
        """Merge whenever this process has written enough runs, without end."""
        while True:
            await anyio.sleep(MERGE_LOOK_S)
            try:
                await self.merge_if_due()
            except LogError as error:
                log.info("files are merged later: %s", error)

    async def merge_if_due(self) -> "Done | None":
        """Merge, if this process has written enough runs since it did so last; None if it has not."""
        written: int = getattr(self._registers, "runs_written", 0)
        if written - self._merged_after < self._bounds.levels.fan:
            return None
        self._merged_after = written
        return await self.merge()

    async def retain(self, policy: "Policy") -> "Retained":
        """Delete the oldest files of the log; see `leaderless.table.retention`. Raises `Unfit`."""
        files = files_of(self._store)
        if self._upkeep is None or files is None:
            raise Unfit("runs of JSON are not deleted; a log of Parquet files has a retention")
        from leaderless.table.retention import retain

        return await retain(self._store, files, policy, processed=self._processed, now=self.now)

    async def _processed(self) -> dict[str, int]:
        """Of each key that groups read, the offset below which all of them have processed it."""
        processed: dict[str, int] = {}
        for cursors in (await Cursors(self._store).groups()).values():
            for key, cursor in cursors.items():
                processed[key] = min(cursor.next, processed.get(key, cursor.next))
        return processed

    async def vacuum(self, retention_s: float) -> Vacuumed:
        """Delete orphans, and files that others replaced; see the module."""
        if not retention_s >= RETENTION_S_MIN:
            raise Unfit(
                f"a retention of {retention_s:g} s: it must be {RETENTION_S_MIN:g} s or more"
            )
        if self._upkeep:
            files, size = await self._upkeep.vacuum(retention_s)
            return (await self._vacuum_data(retention_s))._replace(files=files, files_bytes=size)
        return await self._vacuum_data(retention_s)

    async def _vacuum_data(self, retention_s: float) -> Vacuumed:
        now = await self.now()
        objects = [listed async for listed in all_of(self._store, "data")]
        old = [each for each in objects if now - _written_at(each) > retention_s]
        if not old:
            return Vacuumed(0, 0, len(objects))
        await self._touch_head()
        found = references_in_files if self._upkeep else references
        referred = {reference.key async for reference in found(self._store)}
        orphans = [each for each in old if each.key not in referred]
        for start in range(0, len(orphans), PAGE):
            keys = [each.key for each in orphans[start : start + PAGE]]
            await patiently(partial(self._store.delete, keys))
        size = sum(each.size or 0 for each in orphans)
        return Vacuumed(len(orphans), size, len(objects) - len(orphans))

    async def now(self) -> float:
        """The time by the store's clock, where it has one."""
        name = self._around.name().encode()
        await patiently(lambda: self._store.write(CLOCK, name))
        page = await patiently(lambda: self._store.list_objects("", CLOCK[:-1], 1))
        return (page[0].modified if page and page[0].key == CLOCK else None) or self._around.now()

    async def _touch_head(self) -> None:
        """Give the head a new version, so that every compare-and-set fails that rests on an older one."""

        async def attempt() -> bool:
            found = await self._store.read(HEAD)
            if found is None:
                return True
            head = orjson.loads(found.value)
            head["version"] += 1
            value = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
            try:
                await self._store.compare_and_set(HEAD, value, found.version)
            except Conflict:
                return False
            return True

        while not await patiently(attempt):
            pass  # another process changed it, which would do too, but it may have failed before this began

    async def _read(self, name: str) -> Any:
        found = await patiently(lambda: self._store.read(name))
        return orjson.loads(found.value) if found else None


def _compact(clock: Clock, replica: Replica, compactor: Compactor) -> Process[None]:
    """Until what is sealed is in runs, or the store does not take it.

    While a live worker of another process has the claim, it waits.
    """
    yield from replica.refresh()
    yield from compactor.consider()
    while compactor.running or compactor.left_to_another:
        if compactor.running:
            yield Sleep(clock.now + LOOK_S)
        else:
            yield Sleep(clock.now + OTHER_LOOK_S)
            yield from compactor.consider()


def _written_at(listed: Listed) -> float:
    """When an object of `leaderless.library.data` was written, in seconds since 1970."""
    if listed.modified is not None:
        return listed.modified
    return float(listed.key.removeprefix("data/").partition("-")[0])


async def references(store: Store) -> AsyncIterator[Reference]:
    """Every reference to a large value in a log.

    An entry moves from the head to a segment, and from there to a run, and is in the new place before it
    leaves the old one. So to look there in this order misses none.
    """
    head = await patiently(lambda: store.read(HEAD))
    for each in references_in(orjson.loads(head.value) if head else {}):
        yield each
    for folder in ("segment", "run"):
        names = [listed.key async for listed in all_of(store, folder)]
        for start in range(0, len(names), READ_AT_ONCE):
            some = names[start : start + READ_AT_ONCE]
            reads = [partial(patiently, partial(store.read, name)) for name in some]
            for found in await side_by_side(reads):
                for each in references_in(orjson.loads(found.value) if found else {}):
                    yield each


async def references_in_files(store: Store) -> AsyncIterator[Reference]:
    """The same in a log whose runs are files, by a snapshot of it."""
    from leaderless.table.snapshot import references

    async for each in references(store):
        yield each


def references_in(register: dict[str, Any]) -> Iterator[Reference]:
    """Those in a head, a segment or a run (`leaderless.core.headlog.records`)."""
    entries = register.get("tail", register.get("entries", []))
    blocks = [block for _, _, appends, _ in entries for block in appends.values()]
    for _, messages in [*blocks, *register.get("keys", {}).values()]:
        for message in messages:
            if isinstance(message, dict) and "$data" in message:
                value = value_of(message)
                if isinstance(value, Reference):
                    yield value
