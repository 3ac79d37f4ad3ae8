"""What an operator asks of a log: fences, upkeep, and what it tells of itself."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from leaderless.api.output import Sample, exposition
from leaderless.api.tail import Status
from leaderless.core.headlog.records import FENCED
from leaderless.core.limits import Limits
from leaderless.core.messages import Fence, FenceOk, Pairs, Unfence
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.errors import Unfit
from leaderless.groups.cursors import Cursors, require_offset
from leaderless.hosting.data import require_key
from leaderless.hosting.host import Host, MakeEvent, error_of
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.wrapped import PRICES, Counted
from leaderless.upkeep.maintenance import Maintenance
from leaderless.upkeep.staged import vacuum_staged
from leaderless.upkeep.vacuum import Vacuumed

if TYPE_CHECKING:  # it needs pyarrow
    from leaderless.table.retention import Policy, Retained


HAND_OVERS = ("appends", "asked", "answered", "refused", "took")  # see `leaderless.peers.lines`


class Lag(NamedTuple):
    """Where a group is in a key.

    `committed`: the last offset that it has processed, None before the first. `lag`: how many records follow;
    `lag_s`: how long ago the first of them was appended, in seconds, None where no record says it; `failures`
    of that record. `owner`: the member that has the key.
    """

    committed: int | None
    lag: int
    lag_s: float | None
    failures: int
    owner: str | None


class GroupStatus(NamedTuple):
    """A group of consumers: its members, and where it is in each key."""

    members: list[str]
    keys: dict[str, Lag]


class Operated:
    """The part of a `leaderless.api.log.Log` that its records do not need."""

    _store: Counted
    _limits: Limits
    _around: Surroundings
    _strategy: LeaderlessLog
    host: Host
    cursors: Cursors
    maintenance: Maintenance
    hand_overs: Counter[str]

    if TYPE_CHECKING:  # see `Log`

        async def keys(self) -> dict[str, int]: ...

        async def has_named(self, writer: str, seq: int) -> bool: ...

        async def _poll(self, offsets: Mapping[str, int], limit: int) -> dict[str, Pairs]: ...

    async def fence(self) -> int:
        """Close the log for all appends until `unfence`, also those under way; returns the epoch."""
        return await self._set_state(Fence)

    async def unfence(self) -> int:
        """Open a fenced log again; returns the epoch."""
        return await self._set_state(Unfence)

    async def _set_state(self, event: MakeEvent) -> int:
        answer = await self.host.ask(event)
        if not isinstance(answer, FenceOk):
            raise error_of(answer, self.host.registers)
        return answer.epoch

    async def compact(self) -> int:
        """Put sealed segments into runs now, as far as they fill runs; returns how many are in runs.

        Processes that append do it by the way. Raises `Indefinite` when it comes no further.
        """
        return await self.maintenance.compact(self._strategy)

    async def vacuum(self, retention_s: float = 3600.0) -> Vacuumed:
        """Delete what no record refers to and is older than `retention_s` seconds.

        Raises `Unfit` for a retention below ten minutes.
        """
        found = await self.maintenance.vacuum(retention_s)
        staged, size = await vacuum_staged(
            self._store, self.maintenance.now, retention_s, self.has_named
        )
        return found._replace(staged=staged, staged_bytes=size)

    async def retain(self, policy: "Policy") -> "Retained":
        """Delete the oldest files of the log by a policy (`leaderless.table.retention`).

        `kept` says why no more files left. Raises `Unfit` on a log whose runs are JSON.
        """
        return await self.maintenance.retain(self._strategy, policy, {})

    async def trim(self, key: str, before: int) -> "Retained":
        """Delete the records of `key` below the offset `before`; readers are told. Raises `Unfit`.

        A file with them leaves when nothing in it is needed; snapshots have them until then.
        """
        require_key(key)
        require_offset(before)
        if before > (end := (await self.keys()).get(key, 0)):
            raise Unfit(f"before must be at most {end}, the end of key {key!r}, got {before}")
        return await self.maintenance.retain(self._strategy, None, {key: before})

    async def status(self) -> Status:
        """How the log is."""
        keys = await self.keys()
        head, cursor = await self.maintenance.outline()
        trouble, counts = await self.maintenance.trouble(head, cursor), self.hand_overs
        told = {**counts, "late": counts["asked"] - counts["answered"]}
        heading, rest = head.heading, (head.epoch, head.end, head.sealed, cursor, keys)
        return Status(self._store.url, heading.state, *rest, heading.by, told, trouble)

    async def groups(self) -> dict[str, GroupStatus]:
        """The groups of consumers, and how far each is behind."""
        found, told = await self.cursors.groups(), dict[str, GroupStatus]()
        ends = await self.keys()
        for group, (cursors, roster) in found.items():
            lags = {key: max(0, ends.get(key, 0) - each.next) for key, each in cursors.items()}
            waits = await self._waits_s({key: cursors[key].next for key in lags if lags[key]})
            owners = {key: tenure.owner for key, tenure in roster.keys.items()}
            told[group] = GroupStatus(
                sorted(roster.members),
                {
                    key: Lag(
                        each.committed,
                        lags[key],
                        waits.get(key) if lags[key] else 0.0,
                        each.failures,
                        owners.get(key),
                    )
                    for key, each in cursors.items()
                },
            )
        return told

    async def _waits_s(self, offsets: Mapping[str, int]) -> dict[str, float]:
        """How long the record at an offset of each key has been in the log, where it says when it came."""
        if not offsets:
            return {}
        found = await self._poll(offsets, 1)
        firsts = {key: pairs[0][2:] for key, pairs in found.items() if pairs}
        now_s = self._around.now()
        return {
            key: max(0.0, round(now_s - at[0] / 1000, 3)) for key, at in firsts.items() if any(at)
        }

    @property
    def counters(self) -> dict[str, int]:
        """What this process did since it opened the log: requests by kind, bytes, conflicts, and hand-overs."""
        store = self._store
        return {
            **{f"requests_{kind}": store.requests[kind] for kind in PRICES},
            "bytes_written": store.bytes_written,
            "bytes_read": store.bytes_read,
            "conflicts": store.conflicts,
            **{f"hand_overs_{name}": self.hand_overs[name] for name in HAND_OVERS},
        }

    async def metrics(self) -> str:
        """The state of the log, the lag of its groups and `counters`, as a text for Prometheus."""
        status, groups = await self.status(), await self.groups()
        lags = [
            ({"group": group, "key": key}, lag)
            for group, each in groups.items()
            for key, lag in each.keys.items()
        ]
        gauges: dict[str, list[Sample]] = {
            name: [({}, getattr(status, name))]
            for name in ("epoch", "batches", "segments", "compacted")
        }
        return exposition(
            {
                **gauges,
                "fenced": [({}, int(status.state == FENCED))],
                "next_offset": [({"key": key}, end) for key, end in status.keys.items()],
                "group_members": [
                    ({"group": group}, len(each.members)) for group, each in groups.items()
                ],
                "group_lag_records": [(labels, lag.lag) for labels, lag in lags],
                "group_lag_seconds": [
                    (labels, lag.lag_s) for labels, lag in lags if lag.lag_s is not None
                ],
                "group_failures": [(labels, lag.failures) for labels, lag in lags],
                **{f"{name}_total": [({}, count)] for name, count in self.counters.items()},
            }
        )
