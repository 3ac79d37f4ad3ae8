"""What usually runs on a simulated host: a session of the real node."""

from collections.abc import Callable

from leaderless.core.coordination import InvariantBroken
from leaderless.core.machine import Machine
from leaderless.core.messages import Note
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, Options, Strategy
from leaderless.core.timeouts import StoreTimeouts
from leaderless.hosting.host import Host
from leaderless.runtime.kept_log import Look
from leaderless.runtime.session import Session, log_note

StrategyMaker = Callable[[Context], Strategy]
CALLS_PER_START = 1_000_000  # no two starts of a node give their calls the same numbers
LINEARIZABLE = Options(freshness_s=0.0)  # a poll shows what was acknowledged before it was asked


def new_session(
    strategy: str | StrategyMaker,
    incarnation: int = 1,
    options: Options | None = None,
    *,
    strict: bool = True,
    look: Look | None = None,
    hosted: Callable[[Machine], Machine | Host] = lambda machine: machine,
    wall: Callable[[], float] | None = None,
) -> Session:
    """A session that has not received `init` yet; `strategy` is a name, or makes the strategy.

    An invariant that breaks raises `InvariantBroken` if `strict`; otherwise it is logged, as in a real node.
    `look`: as of a `Session`; `hosted`: what drives its machine in a store; `wall`: as of a `Clock`.
    """
    make = STRATEGIES[strategy] if isinstance(strategy, str) else strategy

    def start(identity: Identity) -> Machine | Host:
        clock, chosen = Clock(wall), options or Options()
        made = make(Context(identity, clock, chosen))
        scheduler = Scheduler(StoreTimeouts(chosen.pace), CALLS_PER_START * incarnation)
        return hosted(Machine(made, chosen.limits, clock, scheduler))

    return Session(
        start,
        f"i{incarnation}",
        note=raise_if_broken if strict else log_note,
        limits=(options or Options()).limits,
        look=look,
    )


def raise_if_broken(note: Note) -> None:
    """What a strict session does with a note: raise `InvariantBroken` for a broken invariant."""
    if note.broken:
        raise InvariantBroken(note.text)
