"""The events that explored nodes and programs have in common, and the digest of a state.

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

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import inf
from operator import itemgetter
from typing import Any, ClassVar

import orjson

from simulation.exploration.clients import KEY, Client, History, clients_of
from simulation.exploration.memory import NotKnown
from simulation.exploration.processes import Processes
from simulation.exploration.search import Event, Failing
from simulation.exploration.stage import ASIDE, BESIDE, Stage
from simulation.judge import anomalies, failure_of
from simulation.oracle import Body, Violation

BUDGETS = {  # what a setting allows, by the kind of event that it pays for
    "lose": "lost",
    "double": "duplicates",
    "delay": "delayed",
    "kill": "crashes",
    "late": "late",
    "cut": "partitions",
}
PAID_BY = {"forget": "lose", "orphan": "kill", **{kind: kind for kind in BUDGETS}}
FIRST = 5_000  # requests before the exploration have numbers from here on
WAITS_MAX = 200  # in a row, while nothing else can happen
EVENTS_MAX = 1_000  # of one schedule
END = Event("end")
WAIT = Event("wait", "next")
WAIT_LATE = Event("wait", "late")


class Explored(Stage):
    """A `search.System`. `brief_s`: a timer that is due so soon need not wait until nothing else can happen."""

    brief_s: ClassVar[float] = 0.0
    cut_off = ""  # the node that is cut off, if one is
    late: Collection[str] = ()  # messages on their way that nobody waits for

    def __init__(self, processes: Processes, *, keep: bool = False) -> None:
        super().__init__(processes, keep=keep)
        self.history = History(clients_of(self.setting))
        self.left = {kind: int(getattr(self.setting, name)) for kind, name in BUDGETS.items()}
        self._waits = self._events = 0
        self._ended = False
        with failing():
            self._prepare()

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
    def stored(self) -> Sequence[tuple[str, Any]]:
        """What the store holds, by name."""

    @abstractmethod
    def _kept(self) -> object:
        """What the digest of a state has in one of the two alone."""

    @abstractmethod
    def _judge(self) -> None:
        """Judge this end; the system is not used afterwards. Raises anything."""

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

    def step(self, event: Event) -> None:
        """Let an event happen. Raises `Failing`."""
        self._events += 1
        self._waits = self._waits + 1 if event == WAIT else 0
        self.tick()
        with failing():
            if self._events > EVENTS_MAX or self._waits > WAITS_MAX:
                raise Violation(f"Progress: no end is near, unanswered: {self._unanswered}")
            if budget := PAID_BY.get(event.kind):
                self.left[budget] -= 1
            getattr(self, f"_{event.kind}")(event)
            if self.refinement:
                self.refinement.settle()

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

    def _late(self) -> Iterator[Event]:
        """The times that may pass while something else could happen."""
        if self.left["late"] and self.brief_s < self._next_in_s < inf:
            yield WAIT_LATE
            yield from self._longer()

    @property
    def _living_clients(self) -> list[Client]:
        """The clients whose process lives."""
        return [each for each in self.history.clients.values() if each.node in self._memories]

    @property
    def _all_done(self) -> bool:
        return all(client.done for client in self._living_clients)

    # ------------------------------------------------------------ events

    def _double(self, event: Event) -> None:
        self._flying[f"{event.what}+"] = self._flying[event.what]

    def _ask(self, event: Event) -> None:
        client = self.history.clients[event.what]
        self.send(client.name, client.node, self.history.ask(client))

    def _ring(self, event: Event) -> None:
        self._read(event.what, None)

    def _wait(self, event: Event) -> None:
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
        self._ended = True

    def _answered(self, client: str, body: Body) -> None:
        """An answer reaches an explored client, or one beside them."""
        if client in self.history.clients:
            self.history.answer(self.history.clients[client], body)
        elif client == ASIDE and body["type"] == "send_ok" and body["in_reply_to"] < BESIDE:
            self.history.preface(body["in_reply_to"] - FIRST, body["offset"])

    # ------------------------------------------------------------ before and after the exploration

    def _preface(self, processes: Sequence[str]) -> None:
        """Send what is sent before the exploration begins, one message after the other."""
        for number in range(self.setting.before):
            body = {"type": "send", "key": KEY, "msg": number, "msg_id": FIRST + number}
            self.send(ASIDE, processes[number % len(processes)], body)
            self._finish()

    def _require_sound(self) -> None:
        """Raise `Failing` for what the checker finds in the history."""
        for failure in anomalies(self.history.ops):
            raise Failing(failure.name, failure.text)


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
