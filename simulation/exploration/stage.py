"""The stage of an exploration: processes, their messages on the way, a store and the time, which events move.

A message is on its way until it is told to arrive. A process reads at once what arrives; what it writes is on
its way again, but for answers to clients. Time stands still until it is set.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from hashlib import blake2b
from math import inf
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import orjson

from bench.net import Deliver
from leaderless.wire.codec import encode
from simulation.alone import TICK_S
from simulation.exploration.clients import KEY
from simulation.exploration.processes import Memory, Processes, Read
from simulation.headlog import oracle_for
from simulation.hosts import NS, NodeSession
from simulation.logs import LEADERLESS
from simulation.oracle import Body, require
from simulation.refinement import Refinement
from simulation.watch import Watch

T = TypeVar("T")
SHARED = {"_processes", "refinement"}  # of a stage and its copies; no step changes a value of them
READS_MAX = 100  # until a process has shown all
MOVES_MAX = 20_000  # of messages and timers, until every request is answered
PATIENCE_S = 40.0  # until then, too
ROUND_S = 0.2  # how long a message takes once time passes
ASIDE = "c0"  # a client beside the explored ones
BESIDE = 10_000  # its requests have numbers from here on


class Flight(NamedTuple):
    """A message on its way; `number`: in the order in which messages were sent."""

    src: str
    dest: str
    body: Body
    number: int


class Stage(ABC):
    """`processes` is shared by all copies. `keep`: keep the journal of messages.

    `service`: the store's name in the network; `helpers`: processes that act before or after the exploration.
    """

    service: ClassVar[str]
    helpers: ClassVar[tuple[str, ...]] = ()

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
        self.refinement = Refinement() if setting.strategy == LEADERLESS else None
        self.oracle = None if setting.programs else oracle_for(setting.strategy, setting.options)
        self.watch = Watch(
            [*setting.names, *self.helpers], self._now_ns, self.is_alive, self.oracle
        )

    def copier(self) -> Callable[[], Self]:
        """Makes copies of what this is now."""
        content = pickle.dumps(self, protocol=5)
        refinement = self.refinement and self.refinement.copy()

        def copy() -> Any:
            made = pickle.loads(content)  # noqa: S301  # its own bytes, from memory
            made._processes = self._processes
            made.refinement = refinement and refinement.copy()
            return made

        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SHARED}

    # ------------------------------------------------------------ what differs

    @abstractmethod
    def _served(self, src: str, body: Body) -> Body:
        """The answer of the store."""

    @abstractmethod
    def _replied(self, name: str, process: str, reply: Body) -> None:
        """The store answers the request `name` of a process."""

    @abstractmethod
    def _answered(self, client: str, body: Body) -> None:
        """An answer reaches a client."""

    # ------------------------------------------------------------ what is there

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

    def _is_due(self, process: str) -> bool:
        return self.memory(process).deadline <= self.seconds

    @property
    def _next_in_s(self) -> float:
        """How long it is to the next timer."""
        return self._deadline - self.seconds

    @property
    def _deadline(self) -> float:
        return min((self.memory(process).deadline for process in self._memories), default=inf)

    @property
    def _unanswered(self) -> list[Any]:
        return [*self.watch.unanswered.values()]

    # ------------------------------------------------------------ what moves

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
        body = {
            "type": "init",
            "node_id": process,
            "node_ids": self.setting.node_names,
            "msg_id": 1,
        }
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

    # ------------------------------------------------------------ what happens by itself

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

    def _finish(self, until_s: float = 0.0) -> None:
        """Let happen what happens by itself, until then and until every request is answered.

        Messages arrive, the oldest first, and timers ring that are due. When nothing is left to do, time passes
        to the next timer; what is sent then arrives when `ROUND_S` is over.
        """
        last_s, arrives_s = self.seconds + PATIENCE_S, self.seconds
        for _ in range(MOVES_MAX):
            self.tick()
            deadline, message = self._deadline, next(iter(self._flying), None)
            if message and self.seconds >= arrives_s:
                self.arrive(message)
            elif deadline <= self.seconds:
                self._read(next(filter(self._is_due, self._memories)), None)
            elif message or deadline <= until_s or (self.watch.unanswered and deadline < last_s):
                if self.seconds >= arrives_s:
                    arrives_s = self.seconds + ROUND_S
                self.set_time(min(deadline, arrives_s))
            else:
                break
        left = [*self._unanswered, *self.messages()]
        require(not left, "Progress", f"unanswered, or on its way: {left}")
        self.set_time(max(self.seconds, until_s))

    def add(self, client: str, deliver: Deliver) -> None:
        """Somebody beside the explored clients listens; see `Network`."""
        self._listens[client] = deliver


def name_of(src: str, dest: str, body: Body) -> str:
    """The name of a message, the same in every order of independent events.

    It is sender, receiver, type, and the call or something of what the message shows. What a process sends
    again gets a `+`, and so does the store's answer to what had one.
    """
    call = body.get("msg_id", body.get("in_reply_to"))
    if call is None:
        call = blake2b(orjson.dumps(body), digest_size=4).hexdigest()
    return f"{src}>{dest} {body['type']} {call}"
