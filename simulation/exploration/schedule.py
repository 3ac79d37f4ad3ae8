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

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, TypeVar

import orjson

from bench.nemesis.faults import STORE
from bench.net import Deliver
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.pace import Pace
from leaderless.wire.codec import encode
from simulation.alone import TICK_S
from simulation.convergence import PROBE, Epilogue
from simulation.exploration.clients import KEY, History, clients_of
from simulation.exploration.copies import Nodes, Read
from simulation.exploration.events import Event, Footprint, Way
from simulation.exploration.memory import NotKnown
from simulation.exploration.search import Failing
from simulation.headlog import HeadLogOracle, oracle_for
from simulation.hosts import NS
from simulation.judge import anomalies, failure_of
from simulation.nodes import NodeSession
from simulation.oracle import Body, Violation, require
from simulation.refinement import Refinement
from simulation.registers import Store
from simulation.watch import Watch

T = TypeVar("T")
EPILOGUE_CLIENT = "c-epilogue"
SHARED = {"_nodes", "refinement"}  # of a cluster and its copies; no step changes a value of them
READS_MAX = 100  # until a node has shown all
MOVES_MAX = 20_000  # of messages or timers at one time
ROUNDS_MAX = 200  # until every request is answered
ROUND_S = 0.2  # how long a message takes at the end
IDLE_TIMES = (
    3  # so often the time that deferred commits wait for company, until all nodes list them
)
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


class ExploredCluster:
    """A `search.System` that can be copied; `nodes` is shared by all copies. `keep`: keep the journal."""

    def __init__(self, nodes: Nodes, *, keep: bool = False) -> None:
        self._nodes = nodes
        self.setting = setting = nodes.setting
        self.journal: list[dict[str, Any]] = []
        self._keeps = keep
        self._count = 0  # of messages
        self._ids: dict[str, int] = {}  # of messages in flight
        self._beside = 0  # requests beside the explored ones
        self._listens: dict[str, Deliver] = {}
        self._seconds = self._now_s = 0.0
        self._flying: dict[str, tuple[str, str, Body]] = {}
        self._names = Names()
        self._starts = dict.fromkeys(setting.names, 0)
        self._memories: dict[str, bytes] = {}
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
        self.watch = Watch(setting.names, self._now_ns, self._is_alive, self.oracle)
        self.store = Store(self._register_changed)
        for node in setting.names:
            self.restart(node)
        self._preface()

    def _preface(self) -> None:
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

    def copier(self) -> Callable[[], "ExploredCluster"]:
        """Makes copies of what this is now."""
        content = pickle.dumps(self, protocol=5)
        refinement = self.refinement and self.refinement.copy()

        def copy() -> ExploredCluster:
            made: ExploredCluster = pickle.loads(content)  # noqa: S301  # its own bytes, from memory
            made._nodes = self._nodes
            made.refinement = refinement and refinement.copy()
            return made

        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SHARED}

    def look(self, node: str, show: Callable[[NodeSession], T]) -> T:
        """What `show` finds in a node; it must change nothing."""
        return self._nodes.look(self._memories[node], show)

    def life(self, node: str) -> int:
        """Which of its starts a node is in, from 1."""
        return self._starts[node]

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

    # ------------------------------------------------------------ the end

    def judge(self) -> None:
        """Judge the last polls and the history, and whether all nodes serve and show the same log."""
        (self if self._keeps else self.copier()())._judge()

    def _judge(self) -> None:
        with failing():
            names = self.setting.names
            if self.setting.fence:
                self._open()
            if self.setting.deferred:
                self._list()
            # What only the last poll of a history shows is unseen, as in the real checker: one polls twice.
            for node in names if len(names) > 1 else names * 2:
                self.history.read(node, self._polled(node))
            for failure in anomalies(self.history.ops):
                raise Failing(failure.name, failure.text)
            self._finish()
            epilogue = Epilogue(
                self,
                EPILOGUE_CLIENT,
                tuple(names),
                self.oracle,
                wait=lambda _what, _waiting: self._finish(),
                rest=self._rest,
            )
            epilogue.run([PROBE, KEY])

    def _open(self) -> None:
        for _ in range(3):
            if self._asked(self.setting.names[0], {"type": "unfence"})["type"] == "unfence_ok":
                return

    def _list(self) -> None:
        """Every node lists what was acknowledged, although no later batch took it along."""
        self._rest(IDLE_TIMES * self.setting.options.limits.commits_idle_s, 1.0)
        for node in self.setting.names:
            answer = self._asked(node, {"type": "list_committed_offsets", "keys": [KEY]})
            if self.oracle:
                self.oracle.listed_at_last(answer.get("offsets", {}))

    def _polled(self, node: str) -> dict[str, Any]:
        """All that a node shows from the beginning on."""
        pairs: list[list[Any]] = []
        for _ in range(READS_MAX):
            start = pairs[-1][0] + 1 if pairs else 0
            answer = self._asked(node, {"type": "poll", "offsets": {KEY: start}})
            found = answer.get("msgs", {}).get(KEY, [])
            if not found:
                break
            pairs += found
        return {KEY: pairs} if pairs else {}

    def _asked(self, node: str, body: Body) -> Body:
        """The answer to a request beside the explored ones; everything is delivered."""
        self._beside += 1
        answers: list[Body] = []
        self.add("c0", lambda _src, answer, _wire: answers.append(answer))
        self.send("c0", node, {**body, "msg_id": BESIDE + self._beside})
        self._finish()
        return answers[-1] if answers else {"type": "none"}

    def _finish(self) -> None:
        """Deliver everything and let time pass until every request is answered."""
        for _ in range(ROUNDS_MAX):
            self._settle()
            if not self.watch.unanswered:
                return
            self._pass(ROUND_S)
        require(False, "Progress", f"unanswered: {self._unanswered}")

    def _rest(self, seconds: float, every_s: float = ROUND_S) -> None:
        """Deliver everything, and again after each round, for so many seconds."""
        for _ in range(round(seconds / every_s)):
            self._settle()
            self._pass(every_s)
        self._settle()

    def _settle(self) -> None:
        """Deliver everything, oldest first, until nothing is in flight."""
        for _ in range(MOVES_MAX):
            self.tick()
            message = next(iter(self.messages()), None)
            if message is None:
                return
            self.arrive(message)
        require(False, "Progress", "messages are still in flight")

    def _pass(self, seconds: float) -> None:
        """Let time pass for every node, timer by timer; messages take longer."""
        end = self.seconds + seconds
        for _ in range(MOVES_MAX):
            deadline = self._deadline
            if deadline is None or deadline > end:
                self.set_time(end)
                return
            self.set_time(max(self.seconds, deadline))
            for node in filter(self._is_due, self.setting.names):
                self.ring(node)
        require(False, "Progress", f"timers ring for ever until {end} s")

    def add(self, client: str, deliver: Deliver) -> None:
        """Somebody beside the explored clients listens; see `Network`."""
        self._listens[client] = deliver

    # ------------------------------------------------------------ what events move

    @property
    def seconds(self) -> float:
        return self._seconds

    def messages(self) -> dict[str, Body]:
        return {name: body for name, (_, _, body) in self._flying.items()}

    def deadline_of(self, node: str) -> float | None:
        return self._nodes.memories[self._memories[node]].deadline

    def memory_of(self, node: str) -> bytes:
        return self._memories[node]

    def tick(self) -> None:
        self._now_s += TICK_S

    def set_time(self, seconds: float) -> None:
        self._now_s += seconds - self._seconds
        self._seconds = seconds

    def send(self, client: str, node: str, body: Body) -> None:
        number = self._told("send", client, node, body)
        self._told("recv", client, node, body, number)
        self._read(node, encode(client, node, body).rstrip())

    def arrive(self, name: str) -> None:
        src, dest, body = self._flying.pop(name)
        self._told("recv", src, dest, body, self._ids.pop(name))
        if dest == STORE:
            self._names.arriving = name
            reply = self.store.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            self._fly(STORE, src, reply, self._told("send", STORE, src, reply))
        else:
            self._read(dest, encode(src, dest, body).rstrip())

    def lose(self, name: str) -> None:
        del self._flying[name], self._ids[name]

    def double(self, name: str) -> None:
        self._flying[f"{name}+"] = self._flying[name]
        self._ids[f"{name}+"] = self._ids[name]

    def ring(self, node: str) -> None:
        self._read(node, None)

    def restart(self, node: str) -> None:
        self.watch.killed(node)
        self._starts[node] += 1
        self._memories[node] = self._nodes.started(self._starts[node]).digest
        if self.refinement:
            self.refinement.started(node)
        body = {"type": "init", "node_id": node, "node_ids": self.setting.names, "msg_id": 1}
        self.send("c0", node, body)

    # ------------------------------------------------------------ inside

    def _read(self, node: str, line: bytes | None) -> None:
        memory = self._nodes.memories[self._memories[node]]
        after, did = self._nodes.after(memory, Read(line, self._seconds))
        self._memories[node] = after.digest
        if self.refinement:
            self.refinement.noted += did.steps
        for each in did.lines:
            message = orjson.loads(each)
            self._written(node, message["dest"], message["body"])

    def _written(self, src: str, dest: str, body: Body) -> None:
        number = self._told("send", src, dest, body)
        if dest[0] == "c":
            self._told("recv", src, dest, body, number)
            self._answered(dest, body)
            if listens := self._listens.get(dest):
                listens(src, body, b"")
        else:
            self._fly(src, dest, body, number)

    def _fly(self, src: str, dest: str, body: Body, number: int) -> None:
        name = self._names.name(src, dest, body)
        self._flying[name], self._ids[name] = (src, dest, body), number

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

    def _is_alive(self, _node: str) -> bool:
        return True

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
    except Exception as error:
        failure = failure_of(error)
        raise Failing(failure.name, failure.text) from error


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
