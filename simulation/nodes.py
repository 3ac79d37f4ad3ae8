"""What runs on a simulated host: the real node's session, made by strategy."""

from collections.abc import Callable
from typing import Protocol

from leaderless.core.headlog.view import InvariantBroken
from leaderless.core.machine import Machine
from leaderless.core.messages import Note
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, Options, Strategy
from leaderless.runtime.session import Session

StrategyMaker = Callable[[Context], Strategy]
CALLS_PER_START = 1_000_000  # no two starts of a node number their calls alike


class Speaker(Protocol):
    """A node without I/O: lines in, lines out; see `leaderless.runtime.session.Session`."""

    @property
    def deadline(self) -> float | None:
        """When `pass_time` is next needed, in seconds, or None."""
        ...

    def receive(self, line: bytes, now: float) -> None:
        """Take one line at time `now` in seconds."""
        ...

    def pass_time(self, now: float) -> None:
        """The deadline came."""
        ...

    def take(self) -> bytes:
        """What is to be written now: whole lines."""
        ...


# (the node's name, which of its starts this is, from 1) -> a node that has seen no line yet.
MakeSpeaker = Callable[[str, int], Speaker]


def new_session(
    strategy: str | StrategyMaker,
    incarnation: int = 1,
    options: Options | None = None,
) -> Session:
    """A session that has not seen `init` yet; `strategy` is a name or makes one."""
    make = STRATEGIES[strategy] if isinstance(strategy, str) else strategy

    def start(identity: Identity) -> Machine:
        clock, chosen = Clock(), options or Options()
        made = make(Context(identity, clock, chosen))
        timeout_s = chosen.limits.store_timeout_s
        return Machine(made, timeout_s, clock, calls_from=CALLS_PER_START * incarnation)

    return Session(start, f"i{incarnation}", note=_raise_if_broken)


def _raise_if_broken(note: Note) -> None:
    if note.broken:
        raise InvariantBroken(note.text)
