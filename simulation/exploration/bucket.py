"""A log on a virtual bucket whose requests are carried out in whatever order is chosen.

Each process is a program (`simulation.programs`) with one client. It runs until all its tasks wait for the
bucket or for a timer, which takes no time. Its requests are held; an event decides.

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

A program is deterministic: what it was answered, and when, decides what it does next. So the digest of a state
has, of each program, a digest of its answers, and besides the objects, the requests, the time, and the budgets.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from random import Random
from typing import Any

import orjson

from leaderless.hosting import fsck
from leaderless.wire.bodies import ErrorCode
from runs.history import Op
from simulation.bucket import Bucket, LawfulBucket, Request
from simulation.exploration.clients import KEY, Body, Client, History
from simulation.exploration.events import Event, Footprint, Way
from simulation.exploration.schedule import failing
from simulation.exploration.search import Failing
from simulation.exploration.setting import Setting
from simulation.judge import anomalies
from simulation.programs import BUCKET, LEADERLESS, Around, Program, at_once
from simulation.refinement import Refinement

WAITS_MAX = 200  # in one schedule: an operation that needs more never ends
READS = ("get", "list")
FAULTS = ("crashes", "lost", "delayed", "late")
CLOCK = "clock"
BRIEF_S = 0.01  # such as the wait for others of a batch
BEGIN_S = 1.0  # what a process has read before is older than any request
PREPARES = "c"  # who asks before the exploration, and after it; no client of the history

Touched = dict[str, Way]


@dataclass(frozen=True, slots=True)
class Held:
    """A request that has left its process. `name`: the process, and which of its requests it is."""

    name: str
    client: str
    body: Body

    @property
    def kind(self) -> str:
        """Put, create, update, get, list or delete."""
        return str(self.body["type"])

    @property
    def asked(self) -> str:
        """Its kind, and of which object."""
        return f"{self.kind} {self.body['key']}"


class ExploredBucket:
    """A system for `simulation.exploration.search`: the programs of a setting, and their bucket."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._now_s = 0.0
        self._refinement = Refinement()
        self._bucket: Bucket = (
            LawfulBucket(self._now, self._refinement)
            if setting.strategy == LEADERLESS
            else Bucket(self._now)
        )
        self._programs: dict[str, Program] = {}
        self._named = Counter[str]()
        self._told: list[Body] = []  # what who prepares was answered
        requests = {client: self._requests(client) for client in setting.acting}
        self._history = History(
            [Client(name, name, n, each) for n, (name, each) in enumerate(requests.items())]
        )
        self._left = {name: int(getattr(setting, name)) for name in FAULTS}
        self._held: dict[str, Held] = {}
        self._late: dict[str, Held] = {}  # on their way, and nobody waits for them
        self._seen = dict.fromkeys(setting.acting, b"")
        self._acting = dict.fromkeys(setting.acting)  # whose operations are not done
        self._silent = set[str]()  # those that have ended: no time passes for them
        self._waits = 0
        with failing():
            self._prepare()
        self.begins_at = len(self.journal)  # what comes before is the same in every schedule

    @property
    def journal(self) -> list[Request]:
        """Every request so far that was carried out or lost, and every death."""
        return self._bucket.journal

    # ------------------------------------------------------------ what it shows

    @property
    def objects(self) -> list[tuple[str, bytes]]:
        """All objects of the bucket, by name."""
        return [(key, found.value) for key, found, _ in self._bucket.contents()]

    @property
    def requests(self) -> dict[str, str]:
        """What is asked by the requests that are held or on their way, by name."""
        return {name: each.asked for name, each in (*self._held.items(), *self._late.items())}

    @property
    def late(self) -> frozenset[str]:
        """The requests that are on their way, and that nobody waits for."""
        return frozenset(self._late)

    @property
    def acting(self) -> frozenset[str]:
        """The processes whose operations are not done."""
        return frozenset(self._acting)

    @property
    def left(self) -> dict[str, int]:
        """How often each fault may still happen."""
        return self._left

    @property
    def seconds(self) -> float:
        """The time of all processes."""
        return self._now_s

    def _now(self) -> float:
        return self._now_s

    def operations(self, client: str) -> list[Op]:
        """What a client has begun and completed."""
        return self._history.of(client)

    # ------------------------------------------------------------ what may happen

    def enabled(self) -> Sequence[Event]:
        """See `System`."""
        held = [*self._held.values()]
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
        return self._next_in_s < inf

    @property
    def _next_is_brief(self) -> bool:
        """Whether a timer is due so soon that a request may well take longer."""
        return self._next_in_s <= BRIEF_S

    @property
    def _next_in_s(self) -> float:
        """How long it is to the next timer of those that act."""
        deadlines = (self._programs[name].deadline for name in self._acting)
        return min((at for at in deadlines if at is not None), default=inf) - self._now_s

    def step(self, event: Event) -> Footprint:
        """See `System`."""
        at = len(self.journal)
        with failing():
            match event.kind:
                case "wait":
                    touched = self._wait(event)
                case "kill" | "orphan":
                    touched = self._kill(event)
                case "arrive":
                    self._carry_out(self._late.pop(event.what))
                    touched = {event.what: "writes"}
                case _:
                    touched = self._answer(event)
            self._refinement.settle()
        for request in self.journal[at:]:
            touched |= _touched(request)
        touched.setdefault(CLOCK, "reads")
        return touched

    def digest(self) -> bytes:
        """See `System`."""
        state = (
            sorted(self._seen.items()),
            sorted(self._held),
            sorted(self._late),
            sorted(self._acting),
            self._left,
            self._now_s,
            self._bucket.contents(),
        )
        return blake2b(repr(state).encode(), digest_size=16).digest()

    def judge(self) -> None:
        """See `System`. A new process reads the log to its end; then it is judged as in a simulated run."""
        with failing():
            found = self._read("last")
        for _ in range(2):  # the checker takes for unseen what only the last operation polled
            self._history.read("last", found)
        if self._setting.strategy == LEADERLESS:
            for finding in at_once(self._bucket, fsck.check, self._now_s).findings:
                raise Failing(finding.invariant, f"{finding.object}: {finding.text}")
        for failure in anomalies(self._history.ops):
            raise Failing(failure.name, failure.text)

    def close(self) -> None:
        """End all processes."""
        for program in self._programs.values():
            program.end()

    # ------------------------------------------------------------ events

    def _answer(self, event: Event) -> Touched:
        """A held request meets its fate."""
        held = self._held.pop(event.what)
        touched: Touched = {held.client: "writes", held.name: "writes"}
        answer = self._carry_out(held) if event.kind in ("carry", "forget") else {}
        if event.kind == "delay":
            self._late[held.name] = held
        if event.kind != "carry":
            answer = {"type": "error", "code": ErrorCode.TIMEOUT, "text": event.kind}
            touched |= self._spend("delayed" if event.kind == "delay" else "lost")
            self._note(held.client, event.kind, f"{held.kind} of {held.name}")
        self._see(held.client, f"{event} {answer!r}")
        self._tell(held, answer)
        return touched

    def _carry_out(self, held: Held) -> Body:
        return self._bucket.carried_out(held.client, held.body)

    def _tell(self, held: Held, answer: Body) -> None:
        self._give(held.client, BUCKET, {**answer, "in_reply_to": held.body["msg_id"]})

    def _kill(self, event: Event) -> Touched:
        client = event.what
        self._history.lose(client, ())
        self._see(client, str(event))
        self._note(client, event.kind, "")
        touched: Touched = dict.fromkeys([client, *self._ended(client)], "writes")
        if event.kind == "kill":
            for name in touched.keys() & self._late.keys():
                del self._late[name]
        return touched | self._spend("crashes")

    def _ended(self, client: str) -> list[str]:
        """A process ends; the writes that it asked for are still on their way. Returns all that it asked."""
        del self._acting[client]
        self._silent.add(client)
        asked = [each for each in self._held.values() if each.client == client]
        for held in asked:
            del self._held[held.name]
            if held.kind not in READS:
                self._late[held.name] = held
        return [held.name for held in asked]

    def _wait(self, event: Event) -> Touched:
        touched: Touched = dict.fromkeys((CLOCK, *self._acting), "writes")
        if event.what == "longer":
            touched |= self._spend("late")
        self._waits += 1
        if self._waits > WAITS_MAX or not self._has_timer:
            raise Failing("Progress", f"an operation of {', '.join(self._acting)} never ends")
        self._pass(self._next_in_s)
        for client in self._acting:
            self._see(client, f"{self._now_s}")
        return touched

    def _pass(self, seconds: float) -> None:
        """Time passes, and timers ring, each process after the other."""
        self._now_s += seconds
        for name, program in [*self._programs.items()]:
            deadline = program.deadline
            if name not in self._silent and deadline is not None and deadline <= self._now_s:
                program.pass_time(self._now_s)
                self._said(name)

    def _spend(self, budget: str) -> Touched:
        self._left[budget] -= 1
        return {budget: "writes"}

    def _see(self, client: str, text: str) -> None:
        self._seen[client] = blake2b(self._seen[client] + text.encode(), digest_size=16).digest()

    def _note(self, client: str, kind: str, what: str) -> None:
        self._bucket.note(client, kind, what, outcome="dies" if not what else "no answer")

    # ------------------------------------------------------------ programs and their clients

    def _prepare(self) -> None:
        """The log exists, and has the messages of before; every process has it open, and has read it."""
        setting = self._setting
        self._begin("before")
        for number in range(setting.sends, setting.sends + setting.before):
            sent = self._asked("before", {"type": "send", "key": KEY, "msg": number})
            self._history.preface(number, sent["offset"])
        self._held.clear()  # it ends
        for client in setting.acting:
            self._read(client)
        self._silent.add("before")
        self._pass(BEGIN_S)
        for client in setting.acting:
            self._next(client)

    def _requests(self, client: str) -> tuple[tuple[str, int], ...]:
        match client:
            case "consumer":
                return (("poll", 0),) * self._setting.polls
            case "compactor":
                return (("compact", 0),) * self._setting.compactions
            case _:
                return (("send", self._setting.acting.index(client)),)

    def _begin(self, name: str) -> None:
        """A process starts."""
        setting = self._setting
        around = Around(
            setting.strategy,
            setting.repeats,
            lambda _operator: self._bucket.clock_s,
            lambda: self._name(name),
            Random(name),
            self._bucket.traced,
            setting.shape,
        )
        self._programs[name] = Program(name, 1, self._now, around, timeout_s=inf)
        self._give(name, PREPARES, {"type": "init", "msg_id": 0})

    def _name(self, process: str) -> str:
        """A new name. It follows from the past of the process that asks for it alone."""
        self._named[process] += 1
        return f"{process}-{self._named[process]}"

    def _read(self, name: str) -> dict[str, Any]:
        """What a process that starts reads of the log, from the beginning to the end."""
        self._begin(name)
        found: list[Any] = []
        while True:
            at = found[-1][0] + 1 if found else 0
            pairs = self._asked(name, {"type": "poll", "offsets": {KEY: at}})["msgs"].get(KEY)
            if not pairs:
                return {KEY: found} if found else {}
            found += pairs

    def _asked(self, name: str, body: Body) -> Body:
        """The answer of a process to which nothing else happens. Raises `Failing`."""
        self._told.clear()
        self._give(name, PREPARES, {**body, "msg_id": 1})
        while not any(each["in_reply_to"] == 1 for each in self._told):
            self._go_on(name)
        answer = self._told[-1]
        if answer["type"] == "error":
            raise Failing("Progress", f"the log cannot be read to its end: {answer['text']}")
        return answer

    def _go_on(self, name: str) -> None:
        """Carry out the oldest request; without one, let time pass to the next timer of a process."""
        if self._held:
            held = self._held.pop(next(iter(self._held)))
            self._tell(held, self._carry_out(held))
        else:
            self._pass((self._programs[name].deadline or self._now_s) - self._now_s)

    def _next(self, client: str) -> None:
        """The client of a process makes its next request, if it has one."""
        its = self._history.clients[client]
        if its.idle:
            self._give(client, client, self._history.ask(its))

    def _give(self, name: str, src: str, body: Body) -> None:
        """A process gets a message."""
        line = orjson.dumps({"src": src, "dest": name, "body": body})
        self._programs[name].receive_all([line], self._now_s)
        self._said(name)

    def _said(self, name: str) -> None:
        """Take what a process says: its requests are held."""
        for line in self._programs[name].take().splitlines():
            message = orjson.loads(line)
            dest, body = message["dest"], message["body"]
            if dest == BUCKET:
                request = f"{name} {body['msg_id'] - self._programs[name].numbers_from}"
                self._held[request] = Held(request, name, body)
            elif dest == PREPARES:
                self._told.append(body)
            else:
                self._history.answer(self._history.clients[dest], body)
                self._next(dest)
        if name in self._acting and self._history.clients[name].done:
            self._ended(name)


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
