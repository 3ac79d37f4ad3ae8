"""The events of an explored cluster: which may happen, what each touches, and the digest of a state.

| event | what happens |
|---|---|
| `ask C` | client C makes its next request; its node reads it |
| `deliver M` | message M arrives: the store carries it out, or a node reads it |
| `ring N` | node N does what is due: it has read all lines of this moment |
| `wait S` | so many seconds pass, for all nodes |
| `lose M`, `double M` | message M is lost; or there are two of it |
| `kill N` | node N is killed and starts again; what is on its way to it still arrives |
| `cut N`, `join` | node N is cut off from the other nodes, whose messages are lost; it is joined again |
| `end` | nothing happens any more |

Between two `wait` all messages are faster than any timer. `wait next` lets time pass to the next timer when
nothing else can happen. `wait late` does so while something else could, `wait 1` lets a call of the store time
out, and `wait 4` lets a claim stand still for a lease, while its worker waits for a message. Each of the three
costs one of `late`. A node that stood still while a timer ran out owes no answer to a client that is gone by
then, or nearly so: the client gives up.

The digest has the memory of each node, the registers, what is in flight, what is left of each budget, and the
history up to the order of independent operations.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import orjson

from bench.nemesis.faults import STORE
from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.pace import Pace
from simulation.exploration.clients import KEY, History, clients_of
from simulation.exploration.events import Event, Footprint, Way
from simulation.exploration.memory import NotKnown
from simulation.exploration.search import Failing
from simulation.exploration.setting import Setting
from simulation.headlog import HeadLogOracle, oracle_for
from simulation.judge import named
from simulation.oracle import Body, Violation, require
from simulation.refinement import Refinement
from simulation.registers import Store
from simulation.watch import Watch

FIRST, BESIDE = 5_000, 10_000  # numbers of requests before, and beside the explored ones
STORE_TIMEOUT_S = 1.0  # of a call while no round trip above it was measured: `Pace.store_timeout_s`
WAITS_MAX = 200  # in a row, while nothing else can happen
EVENTS_MAX = 1_000  # of one schedule
END = Event("end")
WAIT = Event("wait", "next")
WAIT_LATE = Event("wait", "late")
WAIT_LONG = Event("wait", f"{STORE_TIMEOUT_S:g}")
LEASE_S = Pace().lease_s
WAIT_LEASE = Event("wait", f"{LEASE_S:g}")


class Scheduled(ABC):
    """Events on top of what moves messages, nodes and time; a `search.System`, but for its judgement.

    A subclass has a `store` that tells `_register_changed`, and a `watch`.
    """

    store: Store
    watch: Watch

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.history = History(clients_of(setting))
        self.oracle = oracle_for(setting.strategy, setting.options)
        self.refinement = Refinement() if setting.strategy == "leaderless" else None
        self._judges_changes = isinstance(self.oracle, HeadLogOracle)
        self._touched: dict[str, Way] = {}
        self._left = {"lose": setting.lost, "double": setting.duplicates, "kill": setting.crashes}
        self._left |= {"late": setting.late, "cut": setting.partitions}
        self._cut_off = ""
        self._waits = self._events = 0
        self._ended = False
        self._changed_at: dict[str, float] = {}

    def preface(self) -> None:
        """Send what is sent before the exploration begins, one message after the other. Raises `Failing`."""
        names = self.setting.names
        for number in range(self.setting.before):
            body = {"type": "send", "key": KEY, "msg": number, "msg_id": FIRST + number}
            with failing():
                self.send("c0", names[number % len(names)], body)
                for _ in range(EVENTS_MAX):
                    if not self._move():
                        break
                require(not self.watch.unanswered, "Progress", f"unanswered: {self._unanswered}")

    def _move(self) -> bool:
        """Let the next natural thing happen; False when only time could pass, and nobody waits."""
        self.tick()
        if message := next(iter(self.messages()), None):
            self.arrive(message)
        elif due := next(filter(self._is_due, self.setting.names), None):
            self.ring(due)
        elif self.watch.unanswered and self._deadline is not None:
            self.set_time(self._deadline)
        else:
            return False
        return True

    # ------------------------------------------------------------ what a subclass moves

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The time of all nodes. The oracle's clock is ahead of it by a moment for each event so far.

        So on the oracle's clock at least as much time lies between two events as on that of the nodes.
        """

    @abstractmethod
    def messages(self) -> dict[str, Body]:
        """The bodies in flight, by name, the oldest first."""

    @abstractmethod
    def deadline_of(self, node: str) -> float | None:
        """When the next timer of a node runs out."""

    @abstractmethod
    def memory_of(self, node: str) -> bytes:
        """The digest of a node's memory."""

    @abstractmethod
    def tick(self) -> None:
        """Another event begins: the oracle's clock goes on by a moment."""

    @abstractmethod
    def set_time(self, seconds: float) -> None:
        """Time passes for all nodes; no timer fires."""

    @abstractmethod
    def send(self, client: str, node: str, body: Body) -> None:
        """A client's request is read by its node."""

    @abstractmethod
    def arrive(self, name: str) -> None:
        """A message is carried out by the store, or read by a node."""

    @abstractmethod
    def lose(self, name: str) -> None:
        """A message never arrives."""

    @abstractmethod
    def double(self, name: str) -> None:
        """A message is in flight once more."""

    @abstractmethod
    def ring(self, node: str) -> None:
        """A node does what is due."""

    @abstractmethod
    def restart(self, node: str) -> None:
        """A node is killed and starts again."""

    # ------------------------------------------------------------ the system

    @property
    def left(self) -> dict[str, int]:
        """How often each fault may still happen."""
        return self._left

    @property
    def cut_off(self) -> str:
        """The node that is cut off, or nothing."""
        return self._cut_off

    def enabled(self) -> list[Event]:
        """What may happen next, faults last; nothing after `end`."""
        if self._ended:
            return []
        events = [Event("deliver", name) for name in self.messages()]
        events += [Event("ring", node) for node in self.setting.names if self._is_due(node)]
        clients = self.history.clients.values()
        events += [Event("ask", client.name) for client in clients if client.idle]
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
            before = self.messages().keys()
            getattr(self, f"_{event.kind}")(event.what)
            if any(" hand_over_ok " in name for name in self.messages().keys() - before):
                self._touch("changes", "reads")  # what it shows is judged now
            if self.refinement:
                self.refinement.settle()
        return self._touched

    def digest(self) -> bytes:
        """Of all on which the future and its judgement depend."""
        state = (
            self.seconds,
            [self.memory_of(node).hex() for node in self.setting.names],
            sorted(self.store.registers.items(), key=_first),
            sorted(self._changed_at.items()),
            sorted(self.messages().items(), key=_first),
            self._left,
            self._cut_off,
            self._waits,
            self._ended,
            self.history.digest(),
        )
        return blake2b(orjson.dumps(state), digest_size=16).digest()

    def _is_due(self, node: str) -> bool:
        deadline = self.deadline_of(node)
        return deadline is not None and deadline <= self.seconds

    def _faults(self) -> Iterator[Event]:
        for kind in ("lose", "double"):
            if self._left[kind]:
                yield from (Event(kind, name) for name in self.messages() if name[-1] != "+")
        if self._left["kill"]:
            yield from (Event("kill", node) for node in self.setting.names)
        if self._cut_off:
            yield Event("join")
        elif self._left["cut"] and not self._all_done:
            yield from (Event("cut", node) for node in self.setting.names)

    def _late(self) -> Iterator[Event]:
        deadline = self._deadline
        if self._left["late"] and deadline is not None and deadline > self.seconds:
            yield WAIT_LATE
            if deadline < self.seconds + STORE_TIMEOUT_S:
                yield WAIT_LONG
            # Whoever waited so long for an answer would get none: nodes have no time in between to say so.
            claimed = CLAIM in self.store.cells and not self.watch.unanswered
            if claimed and deadline < self.seconds + LEASE_S:
                yield WAIT_LEASE

    @property
    def _all_done(self) -> bool:
        return all(client.done for client in self.history.clients.values())

    @property
    def _deadline(self) -> float | None:
        deadlines = map(self.deadline_of, self.setting.names)
        return min((each for each in deadlines if each is not None), default=None)

    @property
    def _unanswered(self) -> list[Any]:
        return [*self.watch.unanswered.values()]

    # ------------------------------------------------------------ events

    def _ask(self, name: str) -> None:
        client = self.history.clients[name]
        self._touch("answers", "reads")
        self._touch(client.node, "writes")
        self.send(name, client.node, self.history.ask(client))

    def _deliver(self, name: str) -> None:
        body = self.messages()[name]
        src, dest = name.partition(" ")[0].split(">")
        self._touch(name, "writes")
        if dest not in self.setting.names:
            self._touch(f"register {body.get('key')}", "reads")
        else:
            self._touch(dest, "writes")
            if self.setting.partitions and src in self.setting.names:
                self._touch("cut", "reads")
                if self._cut_off in (src, dest):
                    self.lose(name)
                    return
        self.arrive(name)

    def _ring(self, node: str) -> None:
        self._touch(node, "writes")
        self.ring(node)

    def _wait(self, how: str) -> None:
        self._touch("time", "writes")
        deadline = self._deadline
        if deadline is None:
            raise Violation(f"Progress: nothing happens any more, unanswered: {self._unanswered}")
        if how != WAIT.what:
            self._left["late"] -= 1
        timers = how in (WAIT.what, WAIT_LATE.what)
        self.set_time(max(self.seconds, deadline) if timers else self.seconds + float(how))
        for node in self.setting.names:
            its = self.deadline_of(node)
            if its is not None and its < self.seconds:  # it stood still when this was due
                self.watch.resumed(node)
                self.history.lose(node, self.watch.unanswered)

    def _lose(self, name: str) -> None:
        self._spend("lose")
        self._touch(name, "writes")
        self.lose(name)

    def _double(self, name: str) -> None:
        self._spend("double")
        self._touch(name, "writes")
        self.double(name)

    def _kill(self, node: str) -> None:
        self._spend("kill")
        self._touch(node, "writes")
        self.history.lose(node, ())
        self.restart(node)

    def _cut(self, node: str) -> None:
        self._spend("cut")
        self._cut_off = node

    def _join(self, _what: str) -> None:
        self._touch("cut", "writes")
        self._cut_off = ""

    def _end(self, _what: str) -> None:
        self._touch("time", "writes")
        self._ended = True

    def _spend(self, kind: str) -> None:
        self._touch(kind, "writes")
        self._left[kind] -= 1

    # ------------------------------------------------------------ what an event touches

    def _touch(self, resource: str, way: Way) -> None:
        """To touch something in two ways is to write it."""
        known = self._touched.setdefault(resource, way)
        if known != way:
            self._touched[resource] = "writes"

    def _register_changed(self, register: str, old: Any, new: Any) -> None:
        self._touched[f"register {register}"] = "writes"
        self._changed_at[register] = self.seconds
        if self._judges_changes:
            self.history.changes += 1
            self._touch("answers", "adds")
            self._touch("changes", "writes")
        self.watch.changed(register, old, new)
        if self.refinement:
            self.refinement.changed(register, new)

    def _answered(self, client: str, body: Body) -> None:
        """An answer reaches an explored client, or one beside them."""
        if client in self.history.clients:
            self._touch("answers", "adds")
            self._touch("changes", "reads")
            self.history.answer(self.history.clients[client], body)
        elif client == "c0" and body["type"] == "send_ok" and body["in_reply_to"] < BESIDE:
            self.history.preface(body["in_reply_to"] - FIRST, body["offset"])


@contextmanager
def failing() -> Iterator[None]:
    """Whatever is wrong inside the block is raised as `Failing`."""
    try:
        yield
    except (Failing, NotKnown):
        raise
    except Violation as violation:
        raise Failing(violation.name, str(violation).partition(": ")[2]) from violation
    except InvariantBroken as broken:
        failure = named(str(broken))
        raise Failing(failure.name, failure.text) from broken
    except Exception as crash:
        raise Failing("crash", repr(crash)) from crash


class Names:
    """Names messages, each in the same way in every order of independent events.

    A name is sender, receiver, type, and the call or something of what it shows. What a node sends again gets a
    `+`, and so does the store's answer to what had one.
    """

    def __init__(self) -> None:
        self.arriving = ""  # the message that the store carries out
        self._used: set[str] = set()  # by nodes

    def name(self, src: str, dest: str, body: Body) -> str:
        """The name of a message that is sent now."""
        name = _name_of(src, dest, body)
        if src == STORE:
            return name + "+" * self.arriving.count("+")
        while name in self._used:
            name += "+"
        self._used.add(name)
        return name


def _name_of(src: str, dest: str, body: Body) -> str:
    call = body.get("msg_id", body.get("in_reply_to"))
    if call is None:
        call = blake2b(orjson.dumps(body), digest_size=4).hexdigest()
    return f"{src}>{dest} {body['type']} {call}"


def _first(pair: tuple[Any, ...]) -> str:
    return str(pair[0])
