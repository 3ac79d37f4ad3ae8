"""Upkeep of a log: compaction and vacuum on demand, merges of files, and the outline of the log.

Its steps that belong to the core are processes of the one machine of the log, on its host. Their store calls
teach the same timeouts as appends: `leaderless.core.timeouts` says what a slow one does to them.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio

from leaderless.core.claims import Claims, claim_of
from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog.attempt import raise_epoch
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.records import Head
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.errors import Indefinite, LogError, Unfit
from leaderless.groups.cursors import Cursors
from leaderless.hosting.host import Host
from leaderless.hosting.place import Bounds
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.store.calls import in_thread, patiently, read_value
from leaderless.store.chain import read_head, read_index
from leaderless.store.files import Files, files_of
from leaderless.store.port import Store
from leaderless.store.registers import require_written
from leaderless.upkeep.vacuum import (
    Vacuumed,
    references,
    references_in_files,
    vacuum_peers,
    vacuum_values,
)

if TYPE_CHECKING:  # these need pyarrow
    from leaderless.table.retention import Policy, Retained
    from leaderless.table.upkeep import Upkeep

log: logging.Logger = logging.getLogger("leaderless")

RETENTION_S_MIN = 600.0  # a query reads files for so long that others replaced; appends take less
CLOCK = "clock"  # an object whose time of writing is that of the store
COMPACT_LOOK_S = 15.0  # between two looks whether segments wait that nobody compacts
MERGE_LOOK_S = 5.0  # between two looks whether this process has written enough runs to merge


class Maintenance:
    """What an operator asks of the log in `store`; `host` must run, on the registers of that log."""

    def __init__(
        self, store: Store, host: Host, bounds: Bounds, around: Surroundings = REAL
    ) -> None:
        self._store = store
        self._around = around
        self._bounds = bounds
        self._host = host
        self._merged_after = 0  # runs that this process had written
        self._merging = anyio.Lock()
        self._files = files_of(store) if bounds.shape.sliced else None
        self._upkeep = self._upkeep_of(self._files) if self._files else None

    def _upkeep_of(self, files: Files) -> "Upkeep":
        """What merges files."""
        from leaderless.table.upkeep import CLAIM, Upkeep

        lease_s = self._bounds.pace.lease_s
        claims = Claims(self._host.clock, CLAIM, f"upkeep-{self._around.name()}", self._bounds.pace)
        return Upkeep(
            self._store,
            files,
            call=self._host.call,
            now=self.now,
            token=self._around.token,
            claims=claims,
            lease_s=lease_s,
            levels=self._bounds.levels,
        )

    async def outline(self) -> tuple[Head, int]:
        """The head, and the first segment that is not deleted yet. Raises `Broken`."""
        head = await read_head(self._store)
        return head, (await read_index(self._store)).cursor

    async def trouble(self, head: Head, cursor: int) -> str | None:
        """Why segments are in no run, if the claim says so (`Claim.trouble`); `head`, `cursor`: the outline."""
        held = await read_value(self._store, CLAIM, claim_of)
        waits = head.sealed - cursor >= head.shape.segments_per_run
        return held.value.trouble(waits) if held else None

    async def compact(self, strategy: LeaderlessLog) -> int:
        """Compact what fills a run, or wait for the process that does; `strategy` is that of the host.

        Returns how many segments are in runs and deleted. Raises `Indefinite` when it comes no further.
        """
        await self._compact(strategy, whole=False)
        await self.merge()
        return (await self.outline())[1]

    async def _compact(self, strategy: LeaderlessLog, *, whole: bool) -> None:
        try:
            await self._host.call(strategy.compact(whole=whole))
        except StoreSilent as silent:
            trouble = self._host.registers.trouble or "`leaderless fsck` looks into it"
            raise Indefinite(f"{silent} ({trouble})") from silent

    async def compact_now_and_then(self, strategy: LeaderlessLog) -> None:
        """Compact what was left over, without end, in a process that appends.

        Such processes compact beside their work, and may be cut off. When this one has learnt of segments for
        another run, two requests tell whether they wait. A process that only reads writes nothing.
        """
        known, enough = 0, self._bounds.shape.segments_per_run
        while True:
            await anyio.sleep(COMPACT_LOOK_S)
            if not strategy.appends or strategy.sealed - known < enough:
                continue
            known = strategy.sealed
            try:
                head, compacted = await self.outline()
                if head.sealed - compacted >= enough:
                    await self.compact(strategy)
            except LogError as error:
                log.info("segments are compacted later: %s", error)

    async def end(self, strategy: LeaderlessLog, most_s: float) -> None:
        """Let upkeep that is under way end, for `most_s` seconds at most; say what is left to others."""
        if not (strategy.upkeeps or self._merging.locked()):
            return
        with anyio.move_on_after(most_s) as waiting, suppress(LogError):
            await self._host.call(strategy.upkept())
            async with self._merging:
                pass
        if waiting.cancelled_caught:
            merges, segments = self._merging.locked(), strategy.uncompacted
            log.warning(
                "closed after %g s with %s: the next process that appends goes on, or `leaderless compact`",
                most_s,
                "files to be merged" if merges else f"{segments} segments to be compacted",
            )

    async def merge(self) -> int:
        """Merge files of runs into larger ones, as far as there are enough; returns how many were made."""
        if self._upkeep is None:
            return 0
        async with self._merging:
            return await self._upkeep.merge()

    async def merge_now_and_then(self) -> None:
        """Merge whenever this process has written enough runs, without end."""
        while True:
            await anyio.sleep(MERGE_LOOK_S)
            try:
                await self.merge_if_due()
            except LogError as error:
                log.info("files are merged later: %s", error)

    async def merge_if_due(self) -> int:
        """The same if this process has written enough runs since it did so last."""
        written: int = getattr(self._host.registers, "runs_written", 0)
        if written - self._merged_after < self._bounds.levels.fan:
            return 0
        self._merged_after = written
        return await self.merge()

    async def retain(
        self, strategy: LeaderlessLog, policy: "Policy | None", trims: Mapping[str, int]
    ) -> "Retained":
        """Delete the oldest files of the log, as `leaderless.table.retention` says; `policy`: None for a trim.

        All that is sealed is put into files first. Raises `Unfit`, `OtherFormat`, `Indefinite`.
        """
        require_written(self._store, self._bounds.shape)
        if self._files is None:
            raise Unfit("runs of JSON are not deleted; a log of Parquet files has a retention")
        from leaderless.table.retention import Policy, delete_oldest, require_policy

        if policy is not None:
            require_policy(policy)
        await self._compact(strategy, whole=True)
        return await delete_oldest(
            self._store,
            self._files,
            policy or Policy(),
            trims,
            processed=self._processed,
            now=self.now,
            token=self._around.token,
        )

    async def starts(self) -> dict[str, int]:
        """The first offset of each key that a retention has deleted records of. Raises `LogError`."""
        if self._files is None:
            return {}
        from leaderless.table.manifest import read_manifest
        from leaderless.table.retention import read_starts

        manifest, _ = await read_manifest(self._store)
        return await in_thread(partial(read_starts, self._files, manifest))

    async def _processed(self) -> dict[str, int]:
        """Of each key that groups want, the offset below which all of them have processed it."""
        processed: dict[str, int] = {}
        for cursors, _ in (await Cursors(self._store).groups()).values():
            for key, cursor in cursors.items():
                processed[key] = min(cursor.next, processed.get(key, cursor.next))
        return processed

    async def vacuum(self, retention_s: float) -> Vacuumed:
        """Delete orphans, and files that others replaced; see the module.

        Values first: so a value outlives the files that refer to it, until the next vacuum.
        Raises `Unfit`, `OtherFormat`.
        """
        if not retention_s >= RETENTION_S_MIN:
            raise Unfit(
                f"a retention of {retention_s:g} s: it must be {RETENTION_S_MIN:g} s or more"
            )
        require_written(self._store, self._bounds.shape)
        now, found = await self.now(), references_in_files if self._upkeep else references
        await vacuum_peers(self._store, now, retention_s)
        values = await vacuum_values(self._store, now, retention_s, self._new_epoch, found)
        if self._upkeep is None:
            return values
        files, size = await self._upkeep.vacuum(retention_s)
        return values._replace(files=files, files_bytes=size)

    async def _new_epoch(self) -> Head | None:
        try:
            return await self._host.call(raise_epoch(f"vacuum-{self._around.name()}"))
        except StoreSilent as silent:
            raise Indefinite(f"{silent}; no value was deleted") from silent

    async def now(self) -> float:
        """The time by the store's clock, where it has one."""
        name = self._around.name().encode()
        await patiently(lambda: self._store.write(CLOCK, name))
        page = await patiently(lambda: self._store.list_objects("", CLOCK[:-1], 1))
        return (page[0].modified if page and page[0].key == CLOCK else None) or self._around.now()
