"""What a strategy is: a way to serve the four requests of a log with a compare-and-set store."""

from collections.abc import Callable, Container
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from leaderless.core.limits import Limits
from leaderless.core.messages import Failure, Fields, Reason, Reply, RequestEvent, Share
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.shape import Shape


class Identity(NamedTuple):
    """Who this node is.

    `node` is its name and `peers` all names, its own among them. `writer` names this incarnation of the
    node: no two starts of a node ever share it, so `[writer, n]` never names two things.
    """

    node: str
    peers: tuple[str, ...]
    writer: str


class Clock:
    """The time of the step under way, in seconds; only the machine sets it.

    `wall`: gives seconds since 1970, for the times of records; None: records get none.
    """

    __slots__ = ("now", "wall")

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        self.now: float = 0.0
        self.wall: Callable[[], float] | None = wall


class Options(NamedTuple):
    """What may be chosen about a strategy.

    `shape`: that of a log which this process makes; None: as nodes make it on `lin-kv`.
    `freshness_s`: a view older than this is renewed before it answers a poll (0: polls are
    linearizable). `combine`: whether batches may be handed over to another node. `limits`: its bounds; `pace`:
    for how long it waits, and what for. `peers`: whom it can ask by name; None: those of its identity.
    `durable_commits`: whether a committed offset is in the store before it is acknowledged; otherwise it waits
    in memory for a batch to ride in, which costs no message, and a crash of the node loses it.
    """

    freshness_s: float = 0.09
    combine: bool = True
    durable_commits: bool = True
    limits: Limits = Limits()
    pace: Pace = Pace()
    shape: Shape | None = None
    peers: Container[str] | None = None


class Trace:
    """Takes the steps of the protocol, which are held to the model in `specs/HeadLog`; this one is off."""

    __slots__ = ()
    on: ClassVar[bool] = False

    def __call__(self, name: str, fields: Callable[..., Fields] = dict, *of: object) -> None:
        """Take the step `name`; `fields(*of)` makes its fields, and is called only when the trace is on."""


class Context(NamedTuple):
    """What a strategy is made from."""

    identity: Identity
    clock: Clock
    options: Options
    trace: Trace = Trace()


def not_supported(event: RequestEvent) -> Process[None]:
    """Refuse a request that a strategy does not serve."""
    text = f"this strategy does not serve {type(event).__name__}"
    yield Reply(event.request, Failure(Reason.NOT_SUPPORTED, text))


class Strategy(Protocol):
    """Serves requests; one object lives as long as its node."""

    def serve(self, event: RequestEvent) -> Process[None]:
        """A process that ends after it has answered the request (see `leaderless.core.process`)."""
        ...


@runtime_checkable
class Listener(Protocol):
    """A strategy that takes what peers show unasked; to the others it is lost."""

    def hear(self, share: Share) -> None:
        """Take it; must not raise, whatever the messages."""
        ...
