"""What programs do to a log as a table: they retain, read snapshots, and are drivers of a sink.

Drivers repeat an epoch until one of them knows that it is done; then comes the next, as from a checkpoint. Some
are killed, others stand still, and two may commit one epoch at once. Some have no rows when they repeat one:
then they finish what was planned, or go on to the next epoch, as a stream does without a message of any task.

| law | what must hold |
|---|---|
| `OldListReadable` | a reader finds each file of its snapshot, unless it takes longer than the retention |
| `SunkOnce` | a row of an epoch is in the log at most once; all are when a driver says that it is done |
| `PlanFinished` | an epoch that was begun is in the log when a driver says that it, or a later one, is done |
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from leaderless.api.log import Log
from leaderless.errors import Definite
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.files import Gone
from leaderless.store.port import Store
from leaderless.upkeep.staged import attempt_name
from runs.facts import grouped
from simulation.contents import Contents, Record
from simulation.oracle import Body, Violation, raise_to, require

if TYPE_CHECKING:  # it needs pyarrow
    import pyarrow as pa

    from leaderless.spark.staging import Epoch
    from leaderless.table.retention import Policy

WRITER = "sink"
ROWS = 16  # of an epoch
TASKS = 2
EMPTY, PASSES = 0.3, 0.3  # of the repetitions; of these
TRIMS = 0.3  # of the retentions
PROCESSED = 0.5  # of the policies of runs with groups
FIRST = 0  # epoch
PADDING = "x" * 40  # below `simulation.logs.INLINE_BYTES`
READ_S = 0.3  # between two files of a snapshot, at most


class Table:
    """All acts; `skips` says how many seconds have passed at once, in which a reader stood still.

    `around`: of a driver; `alive`: whether the process with this store lives.
    """

    def __init__(
        self,
        contents: Contents,
        random: Random,
        around: Surroundings,
        *,
        skips: Callable[[], float],
        alive: Callable[[Store], bool],
    ) -> None:
        self._contents, self._random = contents, random
        self._around, self._skips, self._alive = around, skips, alive
        self._drivers: list[Store] = []  # of this epoch
        self.epoch = FIRST  # that is not known to be done
        self.begun = False
        self._done: set[int] = set()

    async def retain(self, log: Log, _store: Store, _body: Body) -> None:
        """Delete the oldest files by the policy of the run, or trim a key."""
        ends = await log.keys()
        if not ends or self._random.random() >= TRIMS:
            await log.retain(self._contents.policy)
            return
        key = self._random.choice([*ends])
        before = self._random.randint(0, ends[key])
        raise_to(self._contents.asked, {key: before})
        await log.trim(key, before)
        held = self._contents.trimmed.get(key, 0)
        require(
            held >= before, "StartsKnown", f"{key} is trimmed to {before}, and begins at {held}"
        )

    async def read(self, _log: Log, store: Store, _body: Body) -> None:
        """Read a snapshot, slowly."""
        from leaderless.table.schema import rows_in
        from leaderless.table.snapshot import snapshot, table_in

        end, skips = self._contents.end, self._skips()
        found = await snapshot(store)
        text = f"a snapshot has {found.version} batches, of {end} to {self._contents.end}"
        require(end <= found.version <= self._contents.end, "SnapshotExact", text)
        records: list[Record] = [row[:3] for row in rows_in(found.tail)]
        for ref in found.files:
            await anyio.sleep(self._random.random() * READ_S)
            try:
                table = await table_in(store, ref, found.version)
            except Gone as gone:
                if self._skips() == skips:
                    raise Violation(f"OldListReadable: {gone}") from gone
                return
            records += [row[:3] for row in rows_in(table)]
        self._contents.require_snapshot(found.start, found.version, records)

    async def sink(self, log: Log, store: Store, _body: Body) -> None:
        """Be a driver with its tasks: stage what the epoch has, in any order, and commit it."""
        from leaderless.spark.epochs import commit
        from leaderless.spark.staging import Epoch, stage

        epoch, parts = Epoch(WRITER, self.epoch), list[str]()
        if self.begun and self._random.random() < EMPTY:
            if self._random.random() < PASSES and not any(map(self._alive, self._drivers)):
                self._passes(epoch.number)
                return
        else:
            self.begun = True
            self._drivers.append(store)
            rows = self._random.sample(range(ROWS), ROWS)
            for task in range(TASKS):
                folder = f"{epoch.folder}/{attempt_name(task, 0, self._around)}"
                parts += await stage(store, folder, [_rows(epoch, rows[task::TASKS])])
        planned = self._contents.has_plan(epoch.plan)
        try:
            await commit(log, store, epoch, parts)
        except Definite as error:
            refused = planned and type(error) is Definite
            require(not refused, "PlanFinished", f"{epoch} has a plan, and is refused: {error}")
            raise
        self._require_sunk(epoch.number, whole=bool(parts or planned))
        if parts:
            self._done.add(epoch.number)
            self._contents.seen["commits of a sink"] += 1
            self._passes(epoch.number)

    def _passes(self, number: int) -> None:
        """The checkpoint says that an epoch is over."""
        if self.epoch == number:
            self.epoch, self.begun = number + 1, False
            self._drivers.clear()

    def _require_sunk(self, number: int, *, whole: bool) -> None:
        """A driver says that an epoch is done; `whole`: it had parts, or was begun."""
        messages: Sequence[Any] = self._contents.writers.get(f"named/{WRITER}", ())
        sunk = defaultdict(list, grouped((n, row) for n, row, _ in messages))  # rows by epoch
        twice = [n for n, rows in sunk.items() if len({*rows}) < len(rows)]
        require(not twice, "SunkOnce", f"epochs {twice} have rows twice")
        lost = [n for n in self._done if len(sunk[n]) < ROWS]
        require(not lost, "SunkOnce", f"epochs {lost} are not in the log")
        begun = [n for n in sunk if n < number + whole and 0 < len(sunk[n]) < ROWS]
        begun += [number] if whole and not sunk[number] else []
        require(
            not begun, "PlanFinished", f"epochs {begun}, before {number + whole}, are in it in part"
        )


def _rows(epoch: "Epoch", numbers: list[int]) -> "pa.Table":
    import pyarrow as pa

    from leaderless.spark.encoding import SCHEMA

    texts = [orjson.dumps([epoch.number, n, PADDING]) for n in numbers]
    keys = [f"sink{n % 3}" for n in numbers]
    return pa.table([keys, texts, [True] * len(numbers)], schema=SCHEMA)


def policy_of(random: Random, *, groups: bool) -> "Policy":
    """The policy of a run: what groups have processed, where there are some; or by bytes, or by age."""
    from leaderless.table.retention import Policy

    if groups and random.random() < PROCESSED:
        return Policy(processed=True)
    return random.choice(
        (Policy(bytes=0), Policy(bytes=2_500), Policy(age_s=1.0), Policy(age_s=600.0))
    )
