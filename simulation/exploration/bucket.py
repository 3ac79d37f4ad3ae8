"""A log on a virtual bucket whose requests are carried out in whatever order is chosen.

Each client is a process of its own, with the real code of its log, all on one event loop. It runs until all its
tasks wait for the bucket or for a timer, which takes no time. Its requests are held; an event decides.

| event | what happens |
|---|---|
| `carry` | a request is carried out, and its client gets the answer |
| `lose` | a request is lost, and its client gets `OutcomeUnknown` |
| `forget` | a request is carried out, and its client gets `OutcomeUnknown` |
| `delay` | a client gets `OutcomeUnknown`, and its request is still on its way |
| `arrive` | a request that is still on its way is carried out |
| `kill` | a process dies, and what it asked is lost |
| `orphan` | a process dies, and what it asked is still on its way |
| `wait next`, `wait longer` | time passes to the next timer |

Time passes for nothing when no request is held or on its way, or when a timer is due within 10 ms. Otherwise it
takes one of `late`: so a pause between two tries ends while other requests are held only in a search with it.

A client is deterministic: what it was answered, and when, decides what it does next. So the digest of a state
has, of each client, a digest of its answers, and besides the objects, the requests, the time, and the budgets.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from bench.loop import Deadlock
from leaderless.store.port import OutcomeUnknown
from runs.history import Op
from simulation.exploration.events import Event, Footprint, Way
from simulation.exploration.held import Held, HeldWorld
from simulation.exploration.search import Failing
from simulation.exploration.setting import BucketSetting
from simulation.judge import anomalies
from simulation.objects.bucket import Request
from simulation.objects.judge import checked, lawless
from simulation.objects.logs import Rejected, Unclear
from simulation.objects.loop import PROCESS, VirtualEventLoop
from simulation.objects.run import Worker
from simulation.objects.scenario import Act

WAITS_MAX = 200  # in one schedule: an operation that needs more never ends
READS = ("get", "list")
FAULTS = ("crashes", "lost", "delayed", "late")
CLOCK = "clock"
BRIEF_S = 0.01  # such as the wait for others of a batch
BEGIN_S = 1.0  # what a process has read before is older than any request

Touched = dict[str, Way]


class ExploredBucket:
    """A system for `simulation.exploration.search`: the clients of a setting, and their bucket."""

    def __init__(self, setting: BucketSetting) -> None:
        self._setting = setting
        self._loop = VirtualEventLoop()
        # Tasks tell what they raised.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._world = HeldWorld(setting.scenario, self._loop)
        self._left = {name: int(getattr(setting, name)) for name in FAULTS}
        self._late: dict[str, Held] = {}  # on their way, and nobody waits for them
        self._seen = dict.fromkeys(setting.acting, b"")
        self._acting: dict[str, asyncio.Task[None]] = {}  # clients whose operations are not done
        self._tasks: list[asyncio.Task[None]] = []
        self._waits = 0
        self._prepare()
        self.begins_at = len(self.journal)  # what comes before is the same in every schedule

    @property
    def journal(self) -> list[Request]:
        """Every request so far that was carried out or lost, and every death."""
        return self._world.bucket.journal

    # ------------------------------------------------------------ what it shows

    @property
    def objects(self) -> list[tuple[str, bytes]]:
        """All objects of the bucket, by name."""
        return [(key, found.value) for key, found, _ in self._world.bucket.contents()]

    @property
    def requests(self) -> dict[str, str]:
        """What is asked by the requests that are held or on their way, by name."""
        return {name: each.asked for name, each in (*self._world.held.items(), *self._late.items())}

    @property
    def late(self) -> frozenset[str]:
        """The requests that are on their way, and that nobody waits for."""
        return frozenset(self._late)

    @property
    def acting(self) -> frozenset[str]:
        """The clients whose operations are not done."""
        return frozenset(self._acting)

    @property
    def left(self) -> dict[str, int]:
        """How often each fault may still happen."""
        return self._left

    @property
    def seconds(self) -> float:
        """The time of all processes."""
        return self._loop.now_s

    def operations(self, client: str) -> list[Op]:
        """What a client has begun and completed."""
        scenario, number = self._setting.scenario, self._number(client)
        workers = scenario.processes * scenario.workers
        ops = self._world.history.ops
        return [op for op in ops if isinstance(op.process, int) and op.process % workers == number]

    # ------------------------------------------------------------ what may happen

    def enabled(self) -> Sequence[Event]:
        """See `System`."""
        held = [*self._world.held.values()]
        writes = [each.name for each in held if each.kind not in READS]
        natural = [Event("carry", each.name) for each in held]
        natural += [Event("arrive", name) for name in self._late]
        if self._acting and (not natural or self._next_is_brief):
            natural.append(Event("wait", "next"))
        return [*natural, *self._faults([each.name for each in held], writes)]

    def _faults(self, held: Sequence[str], writes: Sequence[str]) -> Iterator[Event]:
        if self._left["lost"]:
            yield from (Event("lose", name) for name in held)
            yield from (Event("forget", name) for name in writes)
        if self._left["delayed"]:
            yield from (Event("delay", name) for name in writes)
        if self._left["crashes"]:
            for client in self._acting:
                yield Event("kill", client)
                if any(_client_of(name) == client for name in writes):
                    yield Event("orphan", client)
        waits = self._left["late"] and self._has_timer and not self._next_is_brief
        if waits and (held or self._late) and self._acting:
            yield Event("wait", "longer")

    @property
    def _has_timer(self) -> bool:
        return self._loop.next_in_s is not None

    @property
    def _next_is_brief(self) -> bool:
        """Whether a timer is due so soon that a request may well take longer."""
        next_in_s = self._loop.next_in_s
        return next_in_s is not None and next_in_s <= BRIEF_S

    def step(self, event: Event) -> Footprint:
        """See `System`."""
        at = len(self.journal)
        match event.kind:
            case "wait":
                touched = self._wait(event)
            case "kill" | "orphan":
                touched = self._kill(event)
            case "arrive":
                self._late.pop(event.what).carry_out()
                touched = {event.what: "writes"}
            case _:
                touched = self._answer(event)
        for request in self.journal[at:]:
            touched |= _touched(request)
        self._settle()
        touched.setdefault(CLOCK, "reads")
        return touched

    def digest(self) -> bytes:
        """See `System`."""
        state = (
            sorted(self._seen.items()),
            sorted(self._world.held),
            sorted(self._late),
            sorted(self._acting),
            self._left,
            self._loop.now_s,
            self._world.bucket.contents(),
        )
        return blake2b(repr(state).encode(), digest_size=16).digest()

    def judge(self) -> None:
        """See `System`. A new process reads the log to its end; then it is judged as in a simulated run."""
        try:
            self._finish(self._look())
        except (Rejected, Unclear) as error:
            raise Failing("Progress", f"the log cannot be read to its end: {error}") from error
        for failure in [*lawless(self._world), *anomalies(self._world.history.ops)]:
            raise Failing(failure.name, failure.text)

    async def _look(self) -> None:
        async with self._world.opened("last") as (log, _store):
            await Worker(self._world, self._number("last"), log).read_all()
        for failure in await checked(self._world):
            raise Failing(failure.name, failure.text)

    def close(self) -> None:
        """End all processes."""
        for store in self._world.stores.values():
            store.cut = True
        for task in self._tasks:
            task.cancel()
        self._loop.settle()
        while not all(task.done() for task in self._tasks) and self._has_timer:
            self._loop.advance()
            self._loop.settle()
        self._loop.close()

    # ------------------------------------------------------------ events

    def _answer(self, event: Event) -> Touched:
        """A held request meets its fate."""
        held = self._world.held.pop(event.what)
        touched: Touched = {held.client: "writes", held.name: "writes"}
        result = held.carry_out() if event.kind in ("carry", "forget") else None
        if event.kind == "delay":
            self._late[held.name] = held
        if event.kind != "carry":
            result = OutcomeUnknown(event.kind)
            touched |= self._spend("delayed" if event.kind == "delay" else "lost")
            self._note(held.client, event.kind, f"{held.kind} of {held.name}")
        self._see(held.client, f"{event} {result!r}")
        held.answer(result)
        return touched

    def _kill(self, event: Event) -> Touched:
        client = event.what
        self._world.stores[client].cut = True
        self._world.history.left_open(self._number(client), "killed")
        self._acting.pop(client).cancel()
        asked = [each for each in self._world.held.values() if each.client == client]
        for held in asked:
            del self._world.held[held.name]
            if event.kind == "orphan" and held.kind not in READS:
                self._late[held.name] = held
        self._see(client, str(event))
        self._note(client, event.kind, "")
        names = [client, *(held.name for held in asked)]
        touched: Touched = dict.fromkeys(names, "writes")
        return touched | self._spend("crashes")

    def _wait(self, event: Event) -> Touched:
        touched: Touched = dict.fromkeys((CLOCK, *self._seen), "writes")
        if event.what == "longer":
            touched |= self._spend("late")
        self._waits += 1
        if self._waits > WAITS_MAX or not self._has_timer:
            raise Failing("Progress", f"an operation of {', '.join(self._acting)} never ends")
        self._loop.advance()
        for client in self._seen:
            self._see(client, f"{self._loop.now_s}")
        return touched

    def _spend(self, budget: str) -> Touched:
        self._left[budget] -= 1
        return {budget: "writes"}

    def _see(self, client: str, text: str) -> None:
        self._seen[client] = blake2b(self._seen[client] + text.encode(), digest_size=16).digest()

    def _note(self, client: str, kind: str, what: str) -> None:
        self._world.bucket.note(client, kind, what, outcome="dies" if not what else "no answer")

    def _settle(self) -> None:
        """Let every client run until it waits."""
        try:
            self._loop.settle()
        except Deadlock as stuck:
            raise Failing("Progress", str(stuck)) from stuck
        for client, task in [*self._acting.items()]:
            if not task.done():
                continue
            del self._acting[client]
            if error := task.exception():
                raise Failing("crash", f"{client}: {error!r}")
        for failure in lawless(self._world):
            raise Failing(failure.name, failure.text)

    # ------------------------------------------------------------ clients

    def _prepare(self) -> None:
        """The log exists, and has the messages of before; every process has it open, and has read it."""
        begin, at_once = asyncio.Event(), asyncio.Event()
        at_once.set()
        sends = [
            _act("send", self._setting.sends + number) for number in range(self._setting.before)
        ]
        self._finish(self._live("before", sends, asyncio.Event(), at_once))
        for client in self._setting.acting:
            ready = asyncio.Event()
            task = self._loop.create_task(self._live(client, self._acts(client), ready, begin))
            self._tasks.append(task)
            self._acting[client] = task
            self._finish(_wait_for(ready))
        self._loop.now_s += BEGIN_S
        begin.set()
        self._settle()

    def _acts(self, client: str) -> list[Act]:
        match client:
            case "consumer":
                return [_act("poll")] * self._setting.polls
            case "compactor":
                return [_act("compact")] * self._setting.compactions
            case _:
                return [_act("send", self._setting.acting.index(client))]

    async def _live(
        self, client: str, acts: Sequence[Act], ready: asyncio.Event, begin: asyncio.Event
    ) -> None:
        PROCESS.set(client)
        async with self._world.opened(client) as (log, _store):
            await log.poll(dict.fromkeys(self._setting.scenario.keys, 0))
            ready.set()
            await begin.wait()
            worker = Worker(self._world, self._number(client), log)
            for act in acts:
                await worker.do(act)

    def _number(self, client: str) -> int:
        return self._setting.clients.index(client)

    def _finish(self, main: Coroutine[Any, Any, None]) -> None:
        try:
            self._loop.finish(main, self._world.carry_first)
        except Deadlock as stuck:
            raise Failing("Progress", str(stuck)) from stuck


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


def _act(kind: str, number: int = 0) -> Act:
    """What the only worker of a process does, at once."""
    return Act(number, 0.0, kind, 0, 0, "0", 0.0)


def _client_of(name: str) -> str:
    return name.partition(" ")[0]


def _touched(request: Request) -> Touched:
    """The objects that a request touched; a listing touches a folder, and so does each write below it."""
    if request.kind == "list":
        return {f"{request.key}/": "reads"}
    if request.kind == "get" or request.outcome == "conflict":
        return {request.key: "reads"}
    if request.outcome != "ok":
        return {}
    keys = orjson.loads(request.value) if request.kind == "delete" else [request.key]
    names = {name for key in keys for name in (key, *_folders(key))}
    return dict.fromkeys(names, "writes")


def _folders(key: str) -> Iterator[str]:
    parts = key.split("/")
    for length in range(len(parts)):
        yield "/".join(parts[:length]) + "/"
