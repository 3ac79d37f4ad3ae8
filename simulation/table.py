"""What programs do to a log as a table: they retain, read snapshots, and are drivers of a sink.

Drivers repeat an epoch until one of them knows that it is done; then comes the next, as from a checkpoint. Some
are killed, others stand still, and two may commit one epoch at once.

| law | what must hold |
|---|---|
| `OldListReadable` | a reader finds each file of its snapshot, unless it takes longer than the retention |
| `SunkOnce` | a row of an epoch is in the log at most once; all are when a driver says that it is done |
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import anyio
import orjson

from leaderless.api.log import Log
from leaderless.hosting.staged import attempt_name
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.files import Gone
from leaderless.store.port import Store
from leaderless.store.values import Encoded
from simulation.contents import Contents, Record
from simulation.oracle import Body, Violation, require

if TYPE_CHECKING:  # it needs pyarrow
    import pyarrow as pa

    from leaderless.spark.staging import Epoch
    from leaderless.table.retention import Policy

WRITER = "sink"
ROWS = 16  # of an epoch
TASKS = 2
FIRST = 1  # epoch; the model counts the batches of a writer from 1
PADDING = "x" * 40  # below `simulation.logs.INLINE_BYTES`
READ_S = 0.3  # between two files of a snapshot, at most


class Table:
    """All acts; `skips` says how many seconds have passed at once, in which a reader stood still.

    `around`: of a driver.
    """

    def __init__(
        self, contents: Contents, random: Random, around: Surroundings, skips: Callable[[], float]
    ) -> None:
        self._contents, self._random = contents, random
        self._around, self._skips = around, skips
        self.epoch = FIRST  # that is not known to be done
        self.begun = False

    async def retain(self, log: Log, _store: Store, _body: Body) -> None:
        """Delete the oldest files by the policy of the run."""
        await log.retain(self._contents.policy)

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

        self.begun, epoch = True, Epoch(WRITER, self.epoch)
        rows = self._random.sample(range(ROWS), ROWS)
        parts: list[str] = []
        for task in range(TASKS):
            folder = f"{epoch.folder}/{attempt_name(task, 0, self._around)}"
            parts += await stage(store, folder, [_rows(epoch, rows[task::TASKS])])
        await commit(log, store, epoch, parts)
        self.require_sunk(epoch.number + 1)
        self.epoch = max(self.epoch, epoch.number + 1)

    def require_sunk(self, done: int = 0) -> None:
        """No row is there twice; all of the epochs below `done` are there."""
        messages = self._contents.writers.get(f"named/{WRITER}", [])
        there = Counter((each[0], each[1]) for each in messages)  # type: ignore[index]
        twice = [row for row, times in there.items() if times > 1]
        lost = [
            (n, row) for n in range(FIRST, done) for row in range(ROWS) if (n, row) not in there
        ]
        require(not twice and not lost, "SunkOnce", f"twice {twice}, missing {lost}")


def _rows(epoch: "Epoch", numbers: list[int]) -> "pa.Table":
    import pyarrow as pa

    from leaderless.spark.encoding import SCHEMA

    texts = {n: orjson.dumps([epoch.number, n, PADDING]) for n in numbers}
    rows = [Encoded(f"sink{n % 3}", text, True) for n, text in texts.items()]
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)


def policy_of(random: Random, *, processed: bool) -> "Policy":
    """The policy of a run: what groups have processed, or by bytes, or by age."""
    from leaderless.table.retention import Policy

    if processed:
        return Policy(processed=True)
    return random.choice(
        (Policy(bytes=0), Policy(bytes=2_500), Policy(age_s=1.0), Policy(age_s=600.0))
    )
