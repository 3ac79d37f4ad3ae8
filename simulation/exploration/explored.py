"""Processes whose messages wait for their fate: what explored nodes and explored programs have in common.

| event | what happens |
|---|---|
| `ask C` | client C makes its next request; its process reads it |
| `ring P` | process P does what is due: it has read all lines of this moment |
| `wait next`, `wait late` | time passes to the next timer, for all processes |
| `end` | nothing happens any more |

What happens to messages, and how processes die, is said in `cluster` and `bucket`.

Between two `wait` all messages are faster than any timer. `wait next` lets time pass when nothing else can
happen. `wait late` does so while something else could, and costs one of `late`. A process that stood still
while a timer ran out owes no answer to a client that is gone by then, or nearly so: the client gives up.

The digest of a state has the memory of each process, what the store holds, what is in flight, what is left of
each budget, and the history up to the order of independent operations.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import inf
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, TypeVar

import orjson

from bench.net import Deliver
from leaderless.wire.codec import encode
from simulation.alone import TICK_S
from simulation.exploration.clients import KEY, Client, History, clients_of
from simulation.exploration.events import Event, Footprint, Way
from simulation.exploration.memory import NotKnown
from simulation.exploration.processes import Memory, Processes, Read
from simulation.exploration.search import Failing
from simulation.headlog import oracle_for
from simulation.hosts import NS
from simulation.judge import anomalies, failure_of
from simulation.nodes import NodeSession
from simulation.oracle import Body, Violation, require
from simulation.programs import LEADERLESS
from simulation.refinement import Refinement
from simulation.watch import Watch

T = TypeVar("T")
SHARED = {"_processes", "refinement"}  # of a system and its copies; no step changes a value of them
BUDGETS = {  # what a setting allows, by the kind of event that it pays for
    "lose": "lost",
    "double": "duplicates",
    "delay": "delayed",
    "kill": "crashes",
    "late": "late",
    "cut": "partitions",
}
PAID_BY = {"forget": "lose", "orphan": "kill", **{kind: kind for kind in BUDGETS}}
READS_MAX = 100  # until a process has shown all
MOVES_MAX = 20_000  # of messages or timers at one time
ROUNDS_MAX = 200  # until every request is answered
ROUND_S = 0.2  # how long a message takes at the end
ASIDE = "c0"  # a client beside the explored ones
FIRST, BESIDE = 5_000, 10_000  # numbers of requests before, and beside the explored ones
WAITS_MAX = 200  # in a row, while nothing else can happen
EVENTS_MAX = 1_000  # of one schedule
END = Event("end")
WAIT = Event("wait", "next")
WAIT_LATE = Event("wait", "late")


class Flight(NamedTuple):
    """A message on its way; `number`: in the order in which messages were sent."""

    src: str
    dest: str
    body: Body
    number: int


class Explored(ABC):
    """A `search.System`. `processes` is shared by all copies. `keep`: keep the journal of messages.

    `service`: the store's name in the network; `helpers`: processes that act before or after the exploration;
    `brief_s`: a timer that is due so soon need not wait until nothing else can happen.
    """

    service: ClassVar[str]
    helpers: ClassVar[tuple[str, ...]] = ()
    brief_s: ClassVar[float] = 0.0
    cut_off = ""  # the node that is cut off, if one is
    late: Collection[str] = ()  # messages on their way that nobody waits for

    def __init__(self, processes: Processes, *, keep: bool = False) -> None:
        self._processes = processes
        self.setting = setting = processes.setting
        self.journal: list[dict[str, Any]] = []
        self._keeps = keep
        self._count = 0  # of messages
        self._listens: dict[str, Deliver] = {}
        self.seconds = self._now_s = 0.0
        self._flying: dict[str, Flight] = {}  # by name
        self._used: set[str] = set()  # names of messages that processes have sent
        self._memories: dict[str, bytes] = {}  # of the processes that live
        self.history = History(clients_of(setting))
        self.refinement = Refinement() if setting.strategy == LEADERLESS else None
        self._touched: dict[str, Way] = {}
        self.left = {kind: int(getattr(setting, name)) for kind, name in BUDGETS.items()}
        self._waits = self._events = 0
        self._ended = False
        self.oracle = None if setting.programs else oracle_for(setting.strategy, setting.options)
        self.watch = Watch(
            [*setting.names, *self.helpers], self._now_ns, self.is_alive, self.oracle
        )
        with failing():
            self._prepare()

    def copier(self) -> Callable[[], "Explored"]:
        """Makes copies of what this is now."""
        content = pickle.dumps(self, protocol=5)
        refinement = self.refinement and self.refinement.copy()

        def copy() -> Explored:
            made: Explored = pickle.loads(content)  # noqa: S301  # its own bytes, from memory
            made._processes = self._processes
            made.refinement = refinement and refinement.copy()
            return made

        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SHARED}

    # ------------------------------------------------------------ what differs

    def _longer(self) -> Iterable[Event]:
        """Times that may pass beside the one to the next timer."""
        return ()

    @abstractmethod
    def _prepare(self) -> None:
        """Start the processes, and let happen what is before the exploration."""

    @abstractmethod
    def _fates(self) -> Iterator[Event]:
        """What may happen to messages by itself."""

    @abstractmethod
    def _faults(self) -> Iterator[Event]:
        """The faults that may happen."""

    @abstractmethod
    def _served(self, src: str, body: Body) -> Body:
        """The answer of the store."""

    @abstractmethod
    def _replied(self, name: str, process: str, reply: Body) -> None:
        """The store answers the request `name` of a process."""

    @abstractmethod
    def stored(self) -> Sequence[tuple[str, Any]]:
        """What the store holds, by name."""

    @abstractmethod
    def _kept(self) -> object:
        """What the digest of a state has in one of the two alone."""

    @abstractmethod
    def _judge(self) -> None:
        """Judge this end; the system is not used afterwards. Raises anything."""

    # ------------------------------------------------------------ what it shows

    def look(self, process: str, show: Callable[[NodeSession], T]) -> T:
        """What `show` finds in a process; it must change nothing."""
        return self._processes.look(self._memories[process], show)

    def memory(self, process: str) -> Memory:
        """What a process holds."""
        return self._processes.memories[self._memories[process]]

    def is_alive(self, process: str) -> bool:
        """Whether a process has neither ended nor died."""
        return process in self._memories

    def messages(self) -> dict[str, Body]:
        """What is on its way, by name."""
        return {name: flight.body for name, flight in self._flying.items()}

    # ------------------------------------------------------------ the system

    def enabled(self) -> list[Event]:
        """What may happen next, faults last; nothing after `end`."""
        if self._ended:
            return []
        events = [*self._fates()]
        events += [Event("ring", process) for process in self._memories if self._is_due(process)]
        events += [Event("ask", c.name) for c in self._living_clients if c.idle]
        if 0 < self._next_in_s <= self.brief_s:
            events.append(WAIT)
        if not events and not self._all_done:
            return [WAIT, *self._faults()]
        return [*(events or [END]), *self._faults(), *self._late()]

    def step(self, event: Event) -> Footprint:
        """Let an event happen; returns what it touched. Raises `Failing`."""
        self._touched = {"time": "reads"}
        self._events += 1
        self._waits = self._waits + 1 if event == WAIT else 0
        self.tick()
        with failing():
            if self._events > EVENTS_MAX or self._waits > WAITS_MAX:
                raise Violation(f"Progress: no end is near, unanswered: {self._unanswered}")
            if budget := PAID_BY.get(event.kind):
                self._touch(budget, "writes")
                self.left[budget] -= 1
            before = {*self._flying}
            getattr(self, f"_{event.kind}")(event)
            if any(" hand_over_ok " in name for name in self._flying.keys() - before):
                self._touch("changes", "reads")  # what it shows is judged now
            if self.refinement:
                self.refinement.settle()
        return self._touched

    def digest(self) -> bytes:
        """Of all on which the future and its judgement depend."""
        state = (
            self.seconds,
            sorted(self._memories.items()),
            self.stored(),
            self._kept(),
            sorted(self.messages().items(), key=itemgetter(0)),
            self.left,
            self._waits,
            self._ended,
            self.history.digest(),
        )
        return blake2b(orjson.dumps(state, default=bytes.hex), digest_size=16).digest()

    def judge(self) -> None:
        """Judge an end, as far as this can be said of it. Raises `Failing`."""
        with failing():
            (self if self._keeps else self.copier()())._judge()

    def _is_due(self, process: str) -> bool:
        return self.memory(process).deadline <= self.seconds

    def _late(self) -> Iterator[Event]:
        """The times that may pass while something else could happen."""
        if self.left["late"] and self.brief_s < self._next_in_s < inf:
            yield WAIT_LATE
            yield from self._longer()

    @property
    def _next_in_s(self) -> float:
        """How long it is to the next timer."""
        return self._deadline - self.seconds

    @property
    def _living_clients(self) -> list[Client]:
        """The clients whose process lives."""
        return [each for each in self.history.clients.values() if each.node in self._memories]

    @property
    def _all_done(self) -> bool:
        return all(client.done for client in self._living_clients)

    @property
    def _deadline(self) -> float:
        return min((self.memory(process).deadline for process in self._memories), default=inf)

    @property
    def _unanswered(self) -> list[Any]:
        return [*self.watch.unanswered.values()]

    # ------------------------------------------------------------ events

    def _ask(self, event: Event) -> None:
        client = self.history.clients[event.what]
        self._touch("answers", "reads")
        self._touch(client.node, "writes")
        self.send(client.name, client.node, self.history.ask(client))

    def _ring(self, event: Event) -> None:
        self._touch(event.what, "writes")
        self._read(event.what, None)

    def _wait(self, event: Event) -> None:
        self._touch("time", "writes")
        deadline = self._deadline
        if deadline == inf:
            raise Violation(f"Progress: nothing happens any more, unanswered: {self._unanswered}")
        if event != WAIT:
            self.left["late"] -= 1
        timers = event in (WAIT, WAIT_LATE)
        self.set_time(max(self.seconds, deadline) if timers else self.seconds + float(event.what))
        for process in self._memories:
            if self.memory(process).deadline < self.seconds:  # it stood still when this was due
                self.watch.resumed(process)
                self.history.lose(process, self.watch.unanswered)

    def _end(self, _event: Event) -> None:
        self._touch("time", "writes")
        self._ended = True

    def _touch(self, resource: str, way: Way) -> None:
        """To touch something in two ways is to write it."""
        known = self._touched.setdefault(resource, way)
        if known != way:
            self._touched[resource] = "writes"

    # ------------------------------------------------------------ before and after the exploration

    def _preface(self, processes: Sequence[str]) -> None:
        """Send what is sent before the exploration begins, one message after the other."""
        for number in range(self.setting.before):
            body = {"type": "send", "key": KEY, "msg": number, "msg_id": FIRST + number}
            self.send(ASIDE, processes[number % len(processes)], body)
            for _ in range(EVENTS_MAX):
                if not self._move():
                    break
            require(not self.watch.unanswered, "Progress", f"unanswered: {self._unanswered}")

    def _move(self) -> bool:
        """Let the next natural thing happen; False when only time could pass, and nobody waits."""
        self.tick()
        if message := next(iter(self._flying), None):
            self.arrive(message)
        elif due := next(filter(self._is_due, self._memories), None):
            self._read(due, None)
        elif self.watch.unanswered and self._deadline < inf:
            self.set_time(self._deadline)
        else:
            return False
        return True

    def _require_sound(self) -> None:
        """Raise `Failing` for what the checker finds in the history."""
        for failure in anomalies(self.history.ops):
            raise Failing(failure.name, failure.text)

    def _polled(self, process: str) -> dict[str, Any]:
        """All that a process shows from the beginning on."""
        pairs: list[list[Any]] = []
        for _ in range(READS_MAX):
            start = pairs[-1][0] + 1 if pairs else 0
            answer = self._asked(process, {"type": "poll", "offsets": {KEY: start}})
            found = answer.get("msgs", {}).get(KEY, [])
            if not found:
                break
            pairs += found
        return {KEY: pairs} if pairs else {}

    def _asked(self, process: str, body: Body) -> Body:
        """The answer to a request beside the explored ones; everything is delivered."""
        answers: list[Body] = []
        self.add(ASIDE, lambda _src, answer, _wire: answers.append(answer))
        self.send(ASIDE, process, {**body, "msg_id": BESIDE + self._count})
        self._finish()
        del self._listens[ASIDE]
        return answers[-1] if answers else {"type": "none"}

    def _finish(self) -> None:
        """Deliver everything and let time pass until every request is answered."""
        for _ in range(ROUNDS_MAX):
            self._settle()
            if not self.watch.unanswered:
                return
            self._pass(ROUND_S)
        require(False, "Progress", f"unanswered: {self._unanswered}")

    def _settle(self) -> None:
        """Deliver everything, oldest first, until nothing is in flight."""
        for _ in range(MOVES_MAX):
            self.tick()
            message = next(iter(self._flying), None)
            if message is None:
                return
            self.arrive(message)
        require(False, "Progress", "messages are still in flight")

    def _pass(self, seconds: float) -> None:
        """Let time pass for every process, timer by timer; messages take longer."""
        end = self.seconds + seconds
        for _ in range(MOVES_MAX):
            deadline = self._deadline
            if deadline > end:
                self.set_time(end)
                return
            self.set_time(max(self.seconds, deadline))
            for process in [*filter(self._is_due, self._memories)]:
                self._read(process, None)
        require(False, "Progress", f"timers ring for ever until {end} s")

    def add(self, client: str, deliver: Deliver) -> None:
        """Somebody beside the explored clients listens; see `Network`."""
        self._listens[client] = deliver

    # ------------------------------------------------------------ what events move

    def tick(self) -> None:
        """A moment passes on the clock of the oracle."""
        self._now_s += TICK_S

    def set_time(self, seconds: float) -> None:
        """It is later, for all processes."""
        self._now_s += seconds - self.seconds
        self.seconds = seconds

    def send(self, src: str, process: str, body: Body) -> None:
        """A process reads at once what somebody says."""
        number = self._told("send", src, process, body)
        self._told("recv", src, process, body, number)
        self._read(process, encode(src, process, body).rstrip())

    def arrive(self, name: str) -> None:
        """A message arrives: the store carries it out, or a process reads it."""
        src, dest, body = self._landed(name)
        if dest == self.service:
            self._replied(name, src, self._carried_out(src, body))
        else:
            self._read(dest, encode(src, dest, body).rstrip())

    def _landed(self, name: str) -> tuple[str, str, Body]:
        """Take a message from its way, since it arrives."""
        src, dest, body, number = self._flying.pop(name)
        self._told("recv", src, dest, body, number)
        return src, dest, body

    def _carried_out(self, src: str, body: Body) -> Body:
        """The store carries out a request."""
        return {**self._served(src, body), "in_reply_to": body.get("msg_id")}

    def _start(self, process: str) -> None:
        """A process starts, and what it held before is gone."""
        self.watch.killed(process)
        start = self.memory(process).life.start + 1 if self.is_alive(process) else 1
        self._memories[process] = self._processes.started(process, start).digest
        body = {"type": "init", "node_id": process, "node_ids": self.setting.names, "msg_id": 1}
        self.send(ASIDE, process, body)

    def _read(self, process: str, line: bytes | None) -> None:
        """A process reads a line; None: its timers ring."""
        after, did = self._processes.after(self.memory(process), Read(line, self.seconds))
        self._memories[process] = after.digest
        if self.refinement:
            for node in did.started:
                self.refinement.started(node)
            self.refinement.noted += did.steps
        for each in did.lines:
            message = orjson.loads(each)
            self._written(process, message["dest"], message["body"])

    def _written(self, src: str, dest: str, body: Body) -> None:
        number = self._told("send", src, dest, body)
        if dest[0] == "c":
            self._told("recv", src, dest, body, number)
            self._answered(dest, body)
            if listens := self._listens.get(dest):
                listens(src, body, b"")
        else:
            name = name_of(src, dest, body)
            while name in self._used:
                name += "+"
            self._used.add(name)
            self._flying[name] = Flight(src, dest, body, number)

    def _answered(self, client: str, body: Body) -> None:
        """An answer reaches an explored client, or one beside them."""
        if client in self.history.clients:
            self._touch("answers", "adds")
            self._touch("changes", "reads")
            self.history.answer(self.history.clients[client], body)
        elif client == ASIDE and body["type"] == "send_ok" and body["in_reply_to"] < BESIDE:
            self.history.preface(body["in_reply_to"] - FIRST, body["offset"])

    def _told(self, kind: str, src: str, dest: str, body: Body, number: int = 0) -> int:
        """A message is sent, and gets a number, or is received; the watch and the journal take it down."""
        if kind == "send":
            self._count += 1
            number = self._count
        self.watch.message(kind, src, dest, body, b'{"id":%d,' % number)
        if self._keeps:
            message = {"id": number, "src": src, "dest": dest, "body": body}
            self.journal.append({"type": kind, "time": self._now_ns(), "message": message})
        return number

    def _now_ns(self) -> int:
        return round(self._now_s * NS)


@contextmanager
def failing() -> Iterator[None]:
    """Whatever is wrong inside the block is raised as `Failing`."""
    try:
        yield
    except (Failing, NotKnown):
        raise
    except Exception as error:
        failure = failure_of(error)
        raise Failing(failure.name, failure.text) from error


def name_of(src: str, dest: str, body: Body) -> str:
    """The name of a message, the same in every order of independent events.

    It is sender, receiver, type, and the call or something of what the message shows. What a process sends
    again gets a `+`, and so does the store's answer to what had one.
    """
    call = body.get("msg_id", body.get("in_reply_to"))
    if call is None:
        call = blake2b(orjson.dumps(body), digest_size=4).hexdigest()
    return f"{src}>{dest} {body['type']} {call}"
