"""An explored cluster of the real core beside `lin-kv`: fates of messages and nodes, and how an end is judged.

| event | what happens |
|---|---|
| `deliver M` | message M arrives: the store carries it out, or a node reads it |
| `wait 1`, `wait 4` | so many seconds pass, for all nodes |
| `lose M`, `double M` | message M is lost; or there are two of it |
| `kill N` | node N is killed and starts again; what is on its way to it still arrives |
| `cut N`, `join` | node N is cut off from the other nodes, whose messages are lost; it is joined again |

The other events are those of `explored`. `wait 1` lets a call of the store time out, and `wait 4` lets a claim
stand still for a lease, while its worker waits for a message. Each of the two costs one of `late`, too.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from bench.nemesis.requests import STORE
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.pace import Pace
from simulation.convergence import PROBE, Epilogue
from simulation.exploration.clients import KEY
from simulation.exploration.explored import Explored
from simulation.exploration.search import Event
from simulation.exploration.stage import Flight, name_of
from simulation.headlog import HeadLogOracle
from simulation.oracle import Body
from simulation.registers import Store

EPILOGUE_CLIENT = "c-epilogue"
# So often the time that deferred commits wait for company, until all nodes list them.
IDLE_TIMES = 3
STORE_TIMEOUT_S = 1.0  # of a call while no round trip above it was measured: `Pace.store_timeout_s`
WAIT_LONG = Event("wait", f"{STORE_TIMEOUT_S:g}")
LEASE_S = Pace().lease_s
WAIT_LEASE = Event("wait", f"{LEASE_S:g}")


class ExploredCluster(Explored):
    """Nodes, `lin-kv`, and the network between them. `cut_off`: the node that is cut off, or nothing."""

    service = STORE

    def _prepare(self) -> None:
        self._changed_at: dict[str, float] = {}
        self.store = Store(self._register_changed)
        for node in self.setting.names:
            self._start(node)
        self._preface(self.setting.names)

    def stored(self) -> list[tuple[str, Any]]:
        """See `Explored`."""
        return sorted(self.store.registers.items(), key=itemgetter(0))

    def _kept(self) -> object:
        return self.cut_off, sorted(self._changed_at.items())

    # ------------------------------------------------------------ what may happen

    def _fates(self) -> Iterator[Event]:
        return (Event("deliver", name) for name in self._flying)

    def _faults(self) -> Iterator[Event]:
        for kind in ("lose", "double"):
            if self.left[kind]:
                yield from (Event(kind, name) for name in self._flying if name[-1] != "+")
        if self.left["kill"]:
            yield from (Event("kill", node) for node in self.setting.names)
        if self.cut_off:
            yield Event("join")
        elif self.left["cut"] and not self._all_done:
            yield from (Event("cut", node) for node in self.setting.names)

    def _longer(self) -> Iterator[Event]:
        if self._deadline < self.seconds + STORE_TIMEOUT_S:
            yield WAIT_LONG
        # Whoever waited so long for an answer would get none: nodes have no time in between to say so.
        claimed = CLAIM in self.store.cells and not self.watch.unanswered
        if claimed and self._deadline < self.seconds + LEASE_S:
            yield WAIT_LEASE

    def _deliver(self, event: Event) -> None:
        ends = self._flying[event.what][:2]
        if self.cut_off in ends and STORE not in ends:
            del self._flying[event.what]
        else:
            self.arrive(event.what)

    def _lose(self, event: Event) -> None:
        del self._flying[event.what]

    def _kill(self, event: Event) -> None:
        self.history.lose(event.what, ())
        self._start(event.what)

    def _cut(self, event: Event) -> None:
        self.cut_off = event.what

    def _join(self, _event: Event) -> None:
        self.cut_off = ""

    # ------------------------------------------------------------ the store

    def _served(self, src: str, body: Body) -> Body:
        return self.store.handle(src, body)

    def _replied(self, name: str, process: str, reply: Body) -> None:
        number = self._told("send", STORE, process, reply)
        answer = name_of(STORE, process, reply) + "+" * name.count("+")
        self._flying[answer] = Flight(STORE, process, reply, number)

    def _register_changed(self, register: str, old: Any, new: Any) -> None:
        self._changed_at[register] = self.seconds
        if isinstance(self.oracle, HeadLogOracle):  # it judges answers by what the store holds
            self.history.changes += 1
        self.watch.changed(register, old, new)
        if self.refinement:
            self.refinement.changed(register, new)

    # ------------------------------------------------------------ the end

    def _judge(self) -> None:
        """Judge the last polls and the history, and whether all nodes serve and show the same log."""
        names = self.setting.names
        if self.setting.fence:
            self._open()
        if self.setting.deferred:
            # Every node lists what was acknowledged, although no later batch took it along.
            self._finish(self.seconds + IDLE_TIMES * self.setting.options.limits.commits_idle_s)
            for node in names:
                answer = self._asked(node, {"type": "list_committed_offsets", "keys": [KEY]})
                if self.oracle:
                    self.oracle.listed_at_last(answer.get("offsets", {}))
        # What only the last poll of a history shows is unseen, as in the real checker: one polls twice.
        for node in names if len(names) > 1 else names * 2:
            self.history.read(self._polled(node))
        self._require_sound()
        self._finish()
        epilogue = Epilogue(
            self,
            EPILOGUE_CLIENT,
            tuple(names),
            self.oracle,
            wait=lambda _what, _waiting: self._finish(),
            rest=lambda seconds: self._finish(self.seconds + seconds),
        )
        epilogue.run([PROBE, KEY])

    def _open(self) -> None:
        for _ in range(3):
            if self._asked(self.setting.names[0], {"type": "unfence"})["type"] == "unfence_ok":
                return
