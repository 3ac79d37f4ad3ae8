"""What a strategy is: a way to serve the four requests of a log with a compare-and-set store."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from leaderless.core.messages import Failure, Reply, RequestEvent, Share
from leaderless.core.process import Process


class Identity(NamedTuple):
    """Who this node is.

    `node` is its name and `peers` all names, its own among them. `writer` names this incarnation of the
    node: no two starts of a node ever share it, so `[writer, n]` never names two things.
    """

    node: str
    peers: tuple[str, ...]
    writer: str


class Clock:
    """The time of the step under way, in seconds; only the machine sets it."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0


class Options(NamedTuple):
    """What may be chosen about a strategy.

    `freshness_s`: a view older than this is renewed before it answers a poll (0: polls are
    linearizable). `combine`: whether batches may be handed over to another node. `memory_bytes`: about
    how much of the log a node keeps in memory. `lanes`: how many batches a node has under way at most.
    """

    freshness_s: float = 0.09
    combine: bool = True
    memory_bytes: int = 256 << 20
    lanes: int = 4


class Trace(Protocol):
    """Takes a step of the protocol, to be checked against the model in `specs/HeadLog`."""

    def __call__(
        self, step: str, fields: Callable[..., dict[str, Any]] = dict, *of: object
    ) -> None:
        """`fields(*of)` makes the fields of the step; nobody listening means that it is never called."""
        ...


def untraced(step: str, fields: Callable[..., dict[str, Any]] = dict, *of: object) -> None:
    """Nobody listens."""


class Context(NamedTuple):
    """What a strategy is made from."""

    identity: Identity
    clock: Clock
    options: Options
    trace: Trace = untraced


def not_supported(event: RequestEvent) -> Process:
    """Refuse a request that a strategy does not serve."""
    text = f"this strategy does not serve {type(event).__name__}"
    yield Reply(event.request, Failure("not-supported", text))


class Strategy(Protocol):
    """Serves requests; one object lives as long as its node."""

    def serve(self, event: RequestEvent) -> Process:
        """A process that ends after it has answered the request (see `leaderless.core.process`)."""
        ...


@runtime_checkable
class Listener(Protocol):
    """A strategy that takes what peers show unasked; to the others it is lost."""

    def hear(self, share: Share) -> None:
        """Take it; must not raise, whatever the messages."""
        ...
