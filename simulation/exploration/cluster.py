"""The simulator's stepped cluster under the events of `schedule`: it judges ends, and tells what happened.

`copies` has the same events without a network, and can be copied: the search runs there. A schedule that it
finds is played here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context, Strategy
from simulation.exploration.clients import KEY
from simulation.exploration.instants import Instant
from simulation.exploration.memory import digest_of
from simulation.exploration.schedule import BESIDE, Names, Scheduled, failing
from simulation.exploration.search import Failing
from simulation.exploration.setting import Setting
from simulation.judge import anomalies
from simulation.nodes import NodeSession, StrategyMaker, new_session
from simulation.noting import Noting, Step
from simulation.oracle import Body, Violation
from simulation.registers import Store
from simulation.stepped import TICK_S, Flying, SteppedCluster, SteppedHost, SteppedLoop

READS_MAX = 100  # until a node has shown all
RINGS_MAX = 10_000  # of one wait
IDLE_TIMES = (
    3  # so often the time that deferred commits wait for company, until all nodes list them
)


@dataclass(eq=False)
class ExploredHost(SteppedHost):
    """A host whose node has instants of its own: one a line. `seconds`: the time of all nodes."""

    seconds: Callable[[], float] = lambda: 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lines = 0

    @property
    def memory(self) -> bytes:
        """The digest of the node's memory."""
        _ = self.deadline  # asking for it forgets timers of answered calls
        return digest_of(self._session)

    def deliver(self, message: bytes) -> None:
        if self._session:
            self._session.receive(message, self._next())
            self._write(self._session)

    def pass_time(self) -> None:
        if self._session:
            self._session.pass_time(self._next())
            self._write(self._session)

    def _next(self) -> Instant:
        self._lines += 1
        return Instant(self.seconds(), self._lines)


class HandsOver(CommitPolicy):
    """Hands each batch to the node that committed last, whatever that costs."""

    def target(self) -> str | None:
        return self.committing_peer()


def maker_of(setting: Setting, make: StrategyMaker | None = None) -> str | StrategyMaker:
    """What makes the strategy of each node; `make` in place of the named one."""
    if make:
        return make
    return _handing_over if setting.hand_over else setting.strategy


def _handing_over(context: Context) -> Strategy:
    return LeaderlessLog(context, HandsOver)


class ExploredCluster(Scheduled, SteppedCluster):  # type: ignore[misc]  # events have names
    """See the module's text. `make`: the strategy in place of the named one; `keep`: keep the journal."""

    _hosts: dict[str, ExploredHost]  # type: ignore[assignment]  # made by `_new_host`

    def __init__(
        self, setting: Setting, make: StrategyMaker | None = None, *, keep: bool = False
    ) -> None:
        Scheduled.__init__(self, setting)
        self._seconds = 0.0
        self._names = Names()
        self._numbers: dict[str, int] = {}  # of messages, by name
        self._doubled = ""  # the message of which a copy is made
        store = Store(self._register_changed)
        maker = maker_of(setting, make)
        maker = self.refinement.followed(maker) if self.refinement else Noting(maker, [])
        SteppedCluster.__init__(
            self, setting.names, maker, setting.options, self.oracle, store, keep=keep
        )
        self.preface()

    @property
    def journal(self) -> bytes:
        """All messages so far, if they are kept."""
        self._journal.flush()
        return self.journal_file.content

    # ------------------------------------------------------------ what events move

    @property
    def seconds(self) -> float:
        return self._seconds

    def messages(self) -> dict[str, Body]:
        flying = self.flying
        return {name: flying[each].body for name, each in self._numbers.items() if each in flying}

    def deadline_of(self, node: str) -> float | None:
        deadline = self._hosts[node].deadline
        return None if deadline is None else float(deadline)

    def memory_of(self, node: str) -> bytes:
        return self._hosts[node].memory

    def tick(self) -> None:
        self._loop.now_s += TICK_S

    def set_time(self, seconds: float) -> None:
        self._loop.now_s += seconds - self._seconds
        self._seconds = seconds

    def send(self, client: str, node: str, body: Body) -> None:
        self.network.send(client, node, body)

    def arrive(self, name: str) -> None:
        self._names.arriving = name
        self.deliver(self._numbers.pop(name))

    def lose(self, name: str) -> None:
        self.drop(self._numbers.pop(name))

    def double(self, name: str) -> None:
        self._doubled = f"{name}+"
        self._loop.copy(self._numbers[name])
        self._doubled = ""

    def ring(self, node: str) -> None:
        self._hosts[node].pass_time()

    def restart(self, node: str) -> None:
        self.start(node)

    # ------------------------------------------------------------ the end

    def judge(self) -> None:
        """The last polls, the checker, and then whether all nodes serve and show the same log."""
        with failing():
            if self.setting.fence:
                self._open()
            if self.setting.deferred:
                self._list()
            # What only the last poll of a history shows is unseen, as in the real checker: one polls twice.
            for node in self.names if len(self.names) > 1 else self.names * 2:
                self.history.read(node, self._read(node))
            self._check()
            self.converge([KEY])

    def _open(self) -> None:
        for _ in range(3):
            if self.ask(self.names[0], {"type": "unfence"})["type"] == "unfence_ok":
                return

    def _list(self) -> None:
        """Every node lists what was acknowledged, although no later batch took it along."""
        self.run(IDLE_TIMES * self.setting.options.limits.commits_idle_s, 1.0)
        for node in self.names:
            answer = self.ask(node, {"type": "list_committed_offsets", "keys": [KEY]})
            if self.oracle:
                self.oracle.listed_at_last(answer.get("offsets", {}))

    def _read(self, node: str) -> dict[str, Any]:
        """All that a node shows from the beginning on."""
        pairs: list[list[Any]] = []
        for _ in range(READS_MAX):
            start = pairs[-1][0] + 1 if pairs else 0
            answer = self.ask(node, {"type": "poll", "offsets": {KEY: start}})
            found = answer.get("msgs", {}).get(KEY, [])
            if not found:
                break
            pairs += found
        return {KEY: pairs} if pairs else {}

    def _check(self) -> None:
        for failure in anomalies(self.history.ops):
            raise Failing(failure.name, failure.text)

    # ------------------------------------------------------------ inside

    def request(self, client: str, node: str, body: Body) -> list[Flying]:
        """A request beside the explored ones; `init` has one number, or starts would differ by their order."""
        if body["type"] == "init":
            return self.forge(client, node, {**body, "msg_id": 1})
        self._msg_ids = max(self._msg_ids, BESIDE) + 1
        return self.forge(client, node, {**body, "msg_id": self._msg_ids})

    def pass_time(self, seconds: float | None = None) -> list[Flying]:
        """Let time pass for every node, timer by timer."""
        end = self.seconds + (seconds or 0.0)
        for _ in range(RINGS_MAX):
            deadline = self._deadline
            if deadline is None or deadline > end:
                self.set_time(end)
                return self._take_sent()
            self.set_time(max(self.seconds, deadline))
            for node in self.names:
                if self._is_due(node):
                    self.ring(node)
        raise Violation(f"Progress: timers ring {RINGS_MAX} times until {end} s")

    def _client_receives(self, client: str, node: str, body: Body, wire: bytes) -> None:
        self._answered(client, body)
        super()._client_receives(client, node, body, wire)

    def _new_loop(self) -> SteppedLoop:
        return SteppedLoop(self._flies)

    def _flies(self, message: Flying) -> None:
        """Name a message by its content."""
        name = self._doubled or self._names.name(message.src, message.dest, message.body)
        self._numbers[name] = message.number

    def _new_host(self, name: str) -> ExploredHost:
        new = partial(new_session, self._strategy, options=self._options)
        send_line, killed = self.network.send_line, self.watch.killed
        # Starts are counted for each node: what one does must not depend on when another was killed.
        return ExploredHost(
            name,
            self._loop,
            send_line,
            lambda _, start: new(start),
            lambda: 0,
            on_kill=killed,
            seconds=lambda: self._seconds,
        )


def session_of(
    setting: Setting, make: StrategyMaker | None, start: int, steps: list[Step]
) -> NodeSession:
    """A node that has read nothing yet, in its start number `start`; its steps are added to `steps`."""
    return new_session(Noting(maker_of(setting, make), steps), start, setting.options)
