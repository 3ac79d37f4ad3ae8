"""Plays a transcript of programs on one store, each a process with its own name, on a clock that jumps.

    > fresh [json]                  an empty bucket; so it begins; what its runs are; zstd: it compresses
    > p COMMAND                     a command of the program `p`, which begins with it
    > p dies                        no call of its comes to the store any more
    > p dies after head             the same after a write of it, whose answer is lost; `before 3`: other writes
    > p loses 2 index/              its next two writes of such objects get no answer, and change nothing
    > p misses 1 index/             the same, but they do
    > p conflicts 1 table           the same, but it is told of a conflict, as where a proxy repeats its updates
    > p stops at claim/             its calls to such objects wait until `p goes on`; `claim/ writes`: those
    > p hangs at group/             the same, but they are carried out before
    > p misreads head as {}         its reads of an object show this until `p goes on`
    > p halves 2 sink/              of its next two answers about such objects it gets the first half
    > p garbles 2 run/              the same, of bytes that nobody wrote
    > p refuses 9 head              the store refuses its next nine writes of such objects
    > p trusts head                 the store says "not modified" of an object, until `p goes on`
    > before q reads segment/: COMMAND    happens before its next read of such an object; or `writes`; `after`:
                                  when it is carried out, before the answer; `after each q`, `twice`
    > before p call 3: COMMAND      happens before its fourth call of the store from now on
    > sweep COMMAND; COMMAND        from `fresh`, for `$` of 0, 1 and so on until nothing happens meanwhile
    > meanwhile                     what such commands told since the last time, and how often
    > later 60 COMMAND              happens after so many seconds, beside what follows
    > old data/                     objects there are two hours older than they were
    > within 5 COMMAND              what ends within so many seconds
    > at once COMMAND | 9 COMMAND   tasks side by side: what each returns, sorted; `$` is 0 to 8
    > wait 60                       seconds pass
    > p requests                    which requests it has made since the last time, and what it has read
    > objects segment               what the store has there, and which of it is a tombstone
    > put data/1 x                  an object holds this; `delete data/1`; `lost data/`: all such, by nobody
    > fsck                          what it finds
    > lawless                       from here on no law judges what is on this store
    > require                       there must be a log; `initialise`: make it

Programs with a log (`tests.topics`, `tests.epochs` and `tests.objects` have others):

    > p append k 1 token=7          a call of the log of `p`, which opens it: arguments are JSON, else texts
    > p patient 3600                it is opened again, with so many seconds of patience
    > p sends [null,0]              sends of tasks side by side, each in this epoch
    > p fill k 10 [#,1]             append values to a key, one after the other; `#` is 0 to 9
    > p read_all k                  all records, by reads of as many as come at once
    > p consume g k                 a record by hand; `p ack g k 0 [through]` acknowledges it so
    > p tails ab earliest 2         a tail of the keys `a` and `b`; `p tailed 9`: its next records
    > p joins g ab lease_s=9        a member of a group, which wants the keys `a` and `b`
    > p next                        its next record; `p batch 3` its next ones
    > p acks k/0                    a record is settled; `p fails k/0 [cause]`
    > p takes 3                     the next three records, each acknowledged
    > p owns                        its keys
    > p leaves                      the member leaves; `p closes`: the log is closed, too
    > check [sorted]                the values that a new process reads of `k`, and what `fsck` finds

Segments have two entries, runs two segments. Values from 64 bytes on are objects, of less than 1000 bytes. An
error is told by its type and its text.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskGroup

from leaderless.api.log import Log
from leaderless.core.messages import Answer, Failure, Send
from leaderless.core.shape import Runs
from leaderless.errors import KeyClosed
from leaderless.groups import consumer as by_hand
from leaderless.groups.consumer import Consumer
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise, require_log
from leaderless.hosting.reads import Record
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.calls import side_by_side
from leaderless.store.names import is_file
from leaderless.store.port import Conflict, Store, all_of
from leaderless.store.wrapped import Within
from leaderless.table.manifest import Levels
from leaderless.upkeep import fsck
from leaderless.upkeep.laws.lawful import Observer
from simulation.bucket import EPOCH_S, Bucket
from simulation.loop import VirtualEventLoop, run_virtual
from tests.around import ANY, ANY_NUMBER, Fate, slow_port
from tests.datadriven.runner import AsyncPlayer, chosen_of, json_of
from tests.datadriven.words import Held, counted, named, shown, value_of
from tests.store_process import VERBS, Names, Process

HANGS_S = 10_000.0  # seconds that a call may take, longer than any wait
TIMES = {"each": ANY_NUMBER, "twice": 2}


class Program(Process):
    """One process with a log, and perhaps with a membership of a group."""

    runs: ClassVar[Runs] = "json"
    shape: ClassVar[dict[str, Any]] = {"seal_entries": 2, "segments_per_run": 2}

    def __init__(self, store: Store, tasks: TaskGroup, names: Names) -> None:
        super().__init__(store, tasks, names)
        self._held: list[Held] = []
        self._patience_s = 30.0
        self.log: Log
        self.member: Consumer
        self.tail: AsyncIterator[Record]

    async def open(self) -> None:
        self.log = await self._hold(self._opened())

    def ends(self) -> None:
        for held in self._held:
            held.scope.cancel()

    async def _hold(self, context: AbstractAsyncContextManager[Any]) -> Any:
        held = Held(context)
        opened = await self._tasks.start(held.run)
        self._held.append(held)
        return opened

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Log]:
        bounds = bounds_of(self.fated, self._patience_s, 5.0)
        made = await initialise(self.fated, self.runs, replace(bounds.shape, **self.shape))
        limits = replace(bounds.limits, batch_bytes=1 << 9)
        bounds = bounds._replace(limits=limits, inline_bytes=64, value_bytes=1000, levels=Levels(2))
        bounds = bounds._replace(shape=made.shape)
        log = Log(self.store, bounds, Surroundings(now, self._name))
        async with running(log.host), beside(*log.chores):
            yield log
            await log.ends(1.0)

    def calls(self, what: str) -> Callable[..., Any]:
        """A method of its log, or of the cursors of that."""
        found: Callable[..., Any] = getattr(
            self.log if hasattr(self.log, what) else self.log.cursors, what
        )
        return found

    async def _patient(self, seconds: str) -> None:
        await self._closes()
        self._patience_s = float(seconds)
        await self.open()

    async def _sends(self, epochs: str) -> str:
        async def ask(epoch: int | None) -> Answer:
            return await self.log.host.ask(lambda request: Send(request, "k", 1, epoch=epoch))

        answers = await side_by_side([partial(ask, epoch) for epoch in value_of(epochs)])
        return ", ".join(
            sorted(each.reason.name if isinstance(each, Failure) else "OK" for each in answers)
        )

    async def _append(self, key: str, value: str, *options: str) -> int:
        chosen = {name: value_of(word) for name, word in chosen_of([*options]).items()}
        return await self.log.append(key, value_of(value), **chosen)

    async def _fill(self, key: str, number: str, value: str = "#") -> None:
        values = [value_of(value.replace("#", str(at))) for at in range(int(number))]
        offsets = [await self.log.append(key, each) for each in values]
        assert offsets == sorted(offsets)

    async def _consume(self, group: str, key: str) -> Record | None:
        return await by_hand.consume(self.log.read, self.log.cursors, group, key)

    async def _ack(self, group: str, key: str, offset: str, how: str = "") -> by_hand.Acked:
        through = how == "through"
        return await by_hand.ack(self.log.cursors, group, key, int(offset), through=through)

    async def _tails(self, keys: str, *start: str) -> None:
        self.tail = self.log.tail([*value_of(keys)], *map(value_of, start))

    async def _tailed(self, number: str = "1") -> list[Record | None]:
        return [await anext(self.tail, None) for _ in range(int(number))]

    async def _joins(self, group: str, keys: str, *options: str) -> None:
        chosen = {name: value_of(value) for name, value in chosen_of([*options]).items()}
        self.member = await self._hold(self.log.consumer(group, [*value_of(keys)], **chosen))

    async def _next(self) -> Record:
        return await anext(self.member)

    async def _batch(self, *limit: str) -> list[Record]:
        return await self.member.batch(*map(int, limit))

    async def _takes(self, number: str) -> list[Record]:
        records = []
        for _ in range(int(number)):
            records.append(record := await anext(self.member))
            await self.member.ack(record)
        return records

    async def _acks(self, name: str) -> None:
        await self.member.ack(named(name))

    async def _fails(self, name: str, *cause: str) -> None:
        await self.member.fail(named(name), " ".join(cause) or None)

    async def _owns(self) -> str:
        return " ".join(sorted(self.member.keys))

    async def _leaves(self, first: int = 1) -> None:
        for held in reversed(self._held[first:]):
            await held.leave()

    async def _closes(self) -> None:
        await self._leaves(0)

    async def _read_all(self, key: str) -> list[Record]:
        records: list[Record] = []
        with suppress(KeyClosed):
            while found := await self.log.read(key, len(records)):
                records += found
        return records


class Programs(AsyncPlayer):
    """Carries commands out on a virtual bucket, whose requests take 5 ms, and which the laws of logs judge.

    `kind`: of the programs.
    """

    def __init__(self, kind: type[Process] = Program) -> None:
        super().__init__()
        self._kind = kind
        self._store: Store
        self._names = map(kind.named.format, count(1)).__next__
        self._observers: list[Observer] = []
        self._noted: Counter[str] = Counter()
        self._how = ""
        self._given: dict[str, Any] = {}  # of the programs
        self._programs: dict[str, Process] = {}

    def play(self, text: str) -> str:
        async def main(_loop: VirtualEventLoop) -> str:
            await self._fresh()
            return await self.played_on(self._store, text)

        played = run_virtual(main)
        assert [each.broken for each in self._observers if each.broken] == []
        return played

    async def played_on(self, store: Store, text: str) -> str:
        """As `play`, on another store, and on the event loop that runs."""
        self._store = Within(store, self._kind.within) if self._kind.within else store
        async with anyio.create_task_group() as self._tasks:
            self._programs = {}
            played = await self.played(text)
            self._tasks.cancel_scope.cancel()
        return played

    async def told(self, command: str) -> str:
        """What a command returns or raises."""
        try:
            with anyio.fail_after(HANGS_S):
                return shown(await self._carried_out(command))
        except Conflict:
            return "conflict"
        except self._kind.trouble as error:
            return f"{type(error).__name__}: {error}".replace(self._store.url, "STORE")

    async def _carried_out(self, command: str) -> Any:
        name, *words = command.split()
        if own := getattr(self, f"_{name}", None):
            return await own(*words)
        program = await self._program(name)
        return await program.carry_out(words[0], words[1:])

    async def _fresh(self, how: str = "") -> None:
        self._how, self._given = how, {"runs": how} if how else {}
        if how == "zstd":
            self._given = {"shape": Program.shape | {"compression": how}}
        for program in self._programs.values():
            await program.carry_out("dies", [])
            program.ends()  # or its timers go on as long as the transcript
        self._observers.append(observer := Observer())
        now = asyncio.get_running_loop().time

        def changed(key: str, *values: Any) -> None:
            if observer in self._observers and not is_file(key):
                observer.changed(key, *values)

        self._bucket = Bucket(now, keep=False, changed=changed)
        self._store, self._programs = slow_port(self._bucket, "p", 5.0), {}
        self._noted.clear()

    async def _wait(self, seconds: str) -> None:
        await anyio.sleep(float(seconds))

    async def _within(self, seconds: str, *words: str) -> Any:
        with anyio.move_on_after(float(seconds)):
            return await self._carried_out(" ".join(words))
        return f"it takes longer than {seconds} s"

    async def _before(self, *words: str) -> None:
        await self._happens("before", *words)

    async def _after(self, *words: str) -> None:
        await self._happens("after", *words)

    async def _happens(self, when: str, *words: str) -> None:
        times = TIMES.get(words[0], 1)
        name, verb, place, *command = words[words[0] in TIMES :]

        async def note() -> None:
            self._noted[await self.told(" ".join(command))] += 1

        happens: dict[str, Any] = {when: note}
        at = place.removesuffix(":")
        here: dict[str, Any] = {"passes": int(at)} if verb == "call" else {"place": at}
        fate = Fate(VERBS.get(verb, ANY), times=times, **here, **happens)
        (await self._program(name)).fated.fates.append(fate)

    async def _later(self, seconds: str, *words: str) -> None:
        async def happens() -> None:
            await anyio.sleep(float(seconds))
            await self.told(" ".join(words))

        await self._program(words[0])
        self._tasks.start_soon(happens)

    async def _old(self, folder: str) -> None:
        for key, (found, at) in self._bucket._objects.items():
            if key.startswith(folder):
                self._bucket._objects[key] = found, at - 7200

    async def _objects(self, folder: str) -> list[str]:
        seen = [
            self._kind.seen(each.key, found.value)
            async for each in all_of(self._store, folder)
            if (found := await self._store.read(each.key))
        ]
        return [*filter(None, seen)]

    async def _put(self, name: str, *text: str) -> None:
        await self._store.write(name, " ".join(text).encode())

    async def _delete(self, *names: str) -> None:
        await self._store.delete([*map(self._kind.key_of, names)])

    async def _lawless(self) -> None:
        self._observers.pop()

    async def _lost(self, name: str) -> None:
        for key in [key for key in self._bucket._objects if key.startswith(name)]:
            del self._bucket._objects[key]

    async def _require(self) -> None:
        await require_log(self._store)

    async def _initialise(self) -> str:
        return await self._kind.initialise(self._store, self._names)

    async def _program(self, name: str) -> Process:
        if name not in self._programs:
            program = self._kind(self._store, self._tasks, self._names)
            vars(program).update(self._given)
            await program.open()
            self._programs[name] = program
        return self._programs[name]

    async def _at(self, _once: str, *words: str) -> str:
        tasks: list[str] = []
        for command in " ".join(words).split(" | "):
            number, _, repeated = command.partition(" ")
            copies = range(int(number)) if number.isdigit() else []
            tasks += [repeated.replace("$", str(at)) for at in copies] or [command]
        for task in tasks:  # or two would open the same one
            if task != "initialise":
                await self._program(task.partition(" ")[0])
        return counted(Counter(await side_by_side([partial(self.told, task) for task in tasks])))

    async def _sweep(self, *words: str) -> str:
        told, last = Counter[str](), ""
        while not told or self._noted:
            await self._fresh(self._how)
            for command in " ".join(words).replace("$", str(told.total())).split("; "):
                last = await self.told(command)
            told[last] += 1
        return counted(told)

    async def _meanwhile(self) -> str:
        noted, self._noted = self._noted, Counter()
        return counted(noted)

    async def _check(self, how: str = "") -> str:
        reader = self._kind(self._store, self._tasks, self._names)
        await reader.open()
        values = [record.value for record in await reader.carry_out("read_all", ["k"])]
        seen = json_of(sorted(values) if how == "sorted" else values)
        return f"{seen}\n{await self._fsck()}"

    async def _fsck(self) -> str:
        return "\n".join(map(str, (await fsck.check(self._store)).findings))


def now() -> float:
    """The clock of a program."""
    return EPOCH_S + anyio.current_time()
