"""One run of a scenario: processes and their workers on a virtual bucket, and the history that they leave.

    main phase      acts at their times; a worker does one after the other; faults of requests
    healing         no more faults; processes that were stopped go on, those that were killed start again
    late requests   whatever was late has reached the bucket
    final polls     a fresh process per worker reads every key from its beginning to the end

A process that is killed loses its tasks; requests that have left are carried out. A process that is stopped
(`pause`) runs no line of code until it goes on; in a long pause an operator vacuums the log. S3-Queue's
compactions are not safe beside each other by its own word: so one process compacts a key at a time, with
every log. Where the run is mixed, each life of a process is a program or a node (`lives`), and so is each of
those that read at the end.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import blake2b
from random import Random
from typing import Any

import anyio

from leaderless.core.coordination import InvariantBroken
from leaderless.hosting.laws.lawful import Observer
from runs.history import Op, json_line
from runs.keyword import Keyword
from simulation.objects.bucket import Bucket
from simulation.objects.client import Faults, Network, VirtualStore
from simulation.objects.lives import OPERATOR
from simulation.objects.logs import Around, OpenLog, Rejected, Unclear, opened, outcomes
from simulation.objects.loop import PROCESS, VirtualEventLoop
from simulation.objects.model import Held
from simulation.objects.nodes import Peers
from simulation.objects.scenario import DISTURBANCES, LEADERLESS, RETENTION_S, Act, Scenario
from simulation.oracle import Asked, Body, Oracle, Promises, Violation

RESTART_S = 0.5  # from a kill to the next life
SETTLE_S = 10.0  # until every late request is carried out
VACUUM_AFTER_S = 1.2 * RETENTION_S  # of a pause that is longer
FINAL_POLLS_MAX = 1000
FINAL_TRIES = 5
SEND, POLL = Keyword("send"), Keyword("poll")


class History:
    """Operations as they begin and end; a client whose operation may have happened is replaced."""

    def __init__(self, loop: VirtualEventLoop, workers: int) -> None:
        self._loop = loop
        self._workers = workers
        self.ops: list[Op] = []
        self._lives: dict[int, int] = {}
        self._open: dict[int, tuple[str, Any]] = {}

    @contextmanager
    def operation(self, worker: int, f: str, value: Any, **extra: Any) -> Iterator[list[Any]]:
        """Note an operation of a worker; the block appends the value with which it completed."""
        self._add(worker, "invoke", f, value, extra)
        self._open[worker] = f, value
        completed: list[Any] = []
        try:
            with outcomes():
                yield completed
        except Rejected as error:
            if self._open.pop(worker, None):
                self._add(worker, "fail", f, value, {"error": str(error)})
            raise
        except BaseException as error:  # also a cancellation
            self.left_open(worker, str(error) or type(error).__name__)
            raise
        if self._open.pop(worker, None):
            self._add(worker, "ok", f, completed[0] if completed else value, extra)

    def left_open(self, worker: int, error: str) -> None:
        """Nobody will know how the operation of this worker ends, if it has one under way."""
        if begun := self._open.pop(worker, None):
            self._add(worker, "info", *begun, {"error": error})
            self._lives[worker] = self._lives.get(worker, 0) + 1

    def new_client(self, worker: int) -> None:
        """Replace the client of a worker, if it has asked anything."""
        if any(op.process == self._process(worker) for op in reversed(self.ops)):
            self._add(worker, "invoke", "crash", None, {})
            self._add(worker, "info", "crash", None, {})
            self._lives[worker] = self._lives.get(worker, 0) + 1

    def _process(self, worker: int) -> int:
        return worker + self._workers * self._lives.get(worker, 0)

    def _add(self, worker: int, kind: Any, f: str, value: Any, extra: dict[str, Any]) -> None:
        process = self._process(worker)
        time_ns = round(self._loop.now_s * 1e9)
        self.ops.append(Op(len(self.ops), time_ns, kind, process, f, value, dict(extra)))


class Process:
    """A process of the run. `left`: the acts of each of its workers that are not begun."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.name = f"p{number}"
        self.number = number
        self.left = [deque[Act]() for _ in range(world.scenario.workers)]
        self.lives = 0
        self._life: anyio.CancelScope | None = None
        self._store: VirtualStore | None = None

    async def run(self) -> None:
        """Live until all acts of its workers are done; a killed process starts again."""
        PROCESS.set(self.name)
        while any(self.left):
            self.lives += 1
            with anyio.CancelScope() as self._life:
                await self._live()
            await anyio.sleep(RESTART_S)

    def kill(self) -> None:
        """End this life at once, if there is one. What was stopped runs on, and reaches nothing."""
        if self._store:
            self._store.cut = True
        for worker in range(len(self.left)):  # in this order, whichever task ends first
            self.world.history.left_open(self.number * len(self.left) + worker, "killed")
        if self._life:
            self._life.cancel()
            self.world.loop.resume_process(self.name)

    async def _live(self) -> None:
        try:
            async with (
                self.world.opened(f"{self.name}/{self.lives}") as (log, self._store),
                anyio.create_task_group() as workers,
            ):
                for number, acts in enumerate(self.left):
                    workers.start_soon(self._work, number, acts, log)
        except (Rejected, Unclear):
            pass  # the bucket did not let it open the log

    async def _work(self, number: int, acts: deque[Act], log: OpenLog) -> None:
        worker = Worker(self.world, self.number * len(self.left) + number, log)
        while acts:
            await anyio.sleep_until(acts[0].at_s)
            await worker.do(acts.popleft())


class Worker:
    """A client of one process: its positions in the keys, and what it does with them."""

    def __init__(self, world: "World", number: int, log: OpenLog) -> None:
        self._world = world
        self._number = number
        self._log = log
        self._positions: dict[str, int] = {}
        self._padding = "x" * world.scenario.value_bytes
        world.history.new_client(number)

    async def do(self, act: Act) -> None:
        """One act; an error of it is in the history."""
        try:
            with outcomes():
                await self._do(act)
        except Rejected:
            pass
        except Unclear:
            if act.kind in ("send", "poll"):
                self._positions = {}  # the history goes on with a new client

    async def _do(self, act: Act) -> None:
        match act.kind:
            case "send":
                await self._send(act)
            case "poll":
                await self.poll()
            case "compact":
                async with self._world.compacting(act.key):
                    await self._log.compact(act.key)
            case "commit":
                await self._commit({act.key: act.number})
            case "list":
                await self.list_committed()

    async def _send(self, act: Act) -> None:
        value = act.number
        with self._world.history.operation(
            self._number, "send", [[SEND, act.key, value]]
        ) as completed:
            offset = await self._log.send(act.key, [value, self._padding])
            completed.append([[SEND, act.key, [offset, value]]])

    async def _commit(self, offsets: dict[str, int]) -> None:
        asked = self._world.ask({"type": "commit_offsets", "offsets": self._at_home(offsets)})
        await self._log.commit(offsets)
        self._world.answered(asked, {"type": "commit_offsets_ok"})

    async def list_committed(self) -> None:
        """List the committed offsets of all keys, which are judged."""
        keys = self._world.scenario.keys
        listed = [*self._at_home(dict.fromkeys(keys, 0))]
        asked = self._world.ask({"type": "list_committed_offsets", "keys": listed})
        found = self._at_home(await self._log.committed(keys))
        self._world.answered(asked, {"type": "list_committed_offsets_ok", "offsets": found})

    def _at_home(self, offsets: dict[str, int]) -> dict[str, int]:
        """As the oracle knows them: nodes and programs keep committed offsets in homes of their own."""
        return {f"{key} of {self._log.home}": offset for key, offset in offsets.items()}

    async def assign(self, **extra: Any) -> None:
        """Read every key from its beginning."""
        keys = self._world.scenario.keys
        with self._world.history.operation(self._number, "assign", keys, **extra):
            self._positions = dict.fromkeys(keys, 0)

    async def poll(self) -> bool:
        """Read what comes next; returns whether there was anything."""
        if not self._positions:
            await self.assign()
        with self._world.history.operation(self._number, "poll", [[POLL]]) as completed:
            found = {
                key: [[offset, number] for offset, (number, _padding) in pairs]
                for key, pairs in (await self._log.poll(self._positions)).items()
            }
            completed.append([[POLL, found]])
        self._positions |= {key: pairs[-1][0] + 1 for key, pairs in found.items()}
        return bool(found)

    async def read_all(self) -> None:
        """Read every key to its end. Raises `Unclear` or `Rejected` when that cannot be done."""
        await self.assign(**{"seek-to-beginning?": True})
        for _ in range(FINAL_POLLS_MAX):
            if not await self.poll():
                return


class World:
    """A run of `scenario`; `execute` it once.

    `history`, `bucket.journal`, `laws` and `model` tell what happened.
    """

    def __init__(self, scenario: Scenario, loop: VirtualEventLoop) -> None:
        self.scenario = scenario
        self.loop = loop
        self.laws, self.model, self._oracle = Observer(), Held(), Oracle(Promises())
        self.broken: Violation | None = None  # the first answer that breaks a promise
        self.peers = Peers(loop, self.random("peers"))
        times = not scenario.ahead_s
        self.bucket = Bucket(loop.time, changed=self._changed, tells_times=times)
        self.history = History(loop, scenario.processes * scenario.workers)
        self.faults = Faults(scenario.network.odds, self.random("faults"), scenario.omit_faults)
        self.unread = ""  # why the final polls did not come to the end
        self._names = 0
        self._compacting: dict[str, anyio.Lock] = {}

    async def execute(self) -> None:
        """Run it to its end."""
        processes = [Process(self, number) for number in range(self.scenario.processes)]
        acts = self.scenario.acts()
        for act in acts:
            if act.kind not in DISTURBANCES:
                processes[act.process].left[act.worker].append(act)
        async with anyio.create_task_group() as tasks:
            for process in processes:
                tasks.start_soon(process.run)
            for act in acts:
                if act.kind in DISTURBANCES:
                    tasks.start_soon(self._disturb, processes[act.process], act)
            tasks.start_soon(self._heal_after, self.scenario.time_limit_s)
        await anyio.sleep(SETTLE_S)
        await self._read_all()

    async def _disturb(self, process: Process, act: Act) -> None:
        await anyio.sleep_until(act.at_s)
        if act.kind == "kill":
            process.kill()
            return
        if act.kind == "vacuum":
            await self._vacuum()
            return
        self.loop.stop_process(process.name)
        before_s = min(act.pause_s, VACUUM_AFTER_S)
        await anyio.sleep(before_s)
        if before_s < act.pause_s:
            await self._vacuum()
            await anyio.sleep(act.pause_s - before_s)
        self.loop.resume_process(process.name)

    async def _vacuum(self) -> None:
        """An operator vacuums every key."""
        for key in self.scenario.keys:
            try:
                async with self.opened(OPERATOR) as (log, _store):
                    await log.vacuum(key)
            except (Rejected, Unclear):
                pass

    async def _heal_after(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.faults.healed = True

    async def _read_all(self) -> None:
        for number in range(self.scenario.processes * self.scenario.workers):
            for _ in range(FINAL_TRIES):
                try:
                    async with self.opened(f"final{number}") as (log, _store):
                        worker = Worker(self, number, log)
                        await worker.read_all()
                        if self.scenario.mixed:
                            await worker.list_committed()
                    break
                except (Rejected, Unclear) as error:
                    self.unread = str(error)

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncIterator[tuple[OpenLog, VirtualStore]]:
        """The log, open in a process of this name."""
        store = self.store(name, self.scenario.network)
        ahead_s = self.scenario.ahead_s if name == OPERATOR else 0.0
        random = self.random(f"{name}/pauses")
        around = Around(
            self.scenario,
            lambda: self.bucket.clock_s + ahead_s,
            self.name,
            random,
            name,
            self.peers,
            self.model.traced,
        )
        async with opened(store, around) as log:
            with outcomes():
                yield log, store

    def store(self, name: str, network: Network) -> VirtualStore:
        """The bucket, as a process of this name sees it."""
        return VirtualStore(self.bucket, name, network, self.faults, self.random(name))

    @asynccontextmanager
    async def compacting(self, key: str) -> AsyncIterator[None]:
        """Wait until no other process compacts the key."""
        async with self._compacting.setdefault(key, anyio.Lock()):
            yield

    def ask(self, request: Body) -> Asked:
        """A client asks now for something that the oracle judges."""
        self._oracle.asked(request)
        return Asked("", request, self.loop.now_s)

    def answered(self, asked: Asked, reply: Body) -> None:
        """It is answered; `broken` tells at the end."""
        try:
            self._oracle.answered(asked, reply, self.loop.now_s)
        except Violation as violation:
            self.broken = self.broken or violation

    def _changed(self, key: str, value: bytes | None) -> None:
        """No program may notice that a law is broken: `laws` and `model` tell at the end."""
        if self.scenario.log == LEADERLESS:
            with suppress(InvariantBroken):
                self.laws.changed(key, value)
            self.model.changed(key, value)

    @property
    def digest(self) -> str:
        """Of every request and the history."""
        digest = blake2b(digest_size=16)
        for request in self.bucket.journal:
            digest.update(repr(request).encode())
        for op in self.history.ops:
            digest.update(json_line(op))
        return digest.hexdigest()

    def random(self, name: str) -> Random:
        return Random(f"{self.scenario.seed}/objects/{name}")

    def name(self) -> str:
        self._names += 1
        return f"{self._names}-{self._names:024x}"
