"""What a node finds in its store before it serves, and how the log there is kept.

A log of the strategy `leaderless` has the object `format`, as a log of the library has (`hosting.place`). The
node follows it. If the store is empty, the node makes it: the first one decides, and the others follow. So
nodes and programs of the library may share a log, and no node writes runs of another kind than the log has.

The logs of other strategies have no `format`, and the library cannot read them.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

import anyio

from leaderless.core.shape import Runs, Shape
from leaderless.core.strategies import DEFAULT
from leaderless.errors import Indefinite, LogError, Unreachable
from leaderless.hosting.place import initialise
from leaderless.store.names import FORMAT
from leaderless.store.port import OutcomeUnknown, Refused, Store
from leaderless.store.probe import PROBES, probe
from leaderless.store.values import Json, message_of

log: logging.Logger = logging.getLogger("leaderless")

REACH_S = (
    6.0  # how long a store may be silent at the start; a bench waits 10 s for an answer to `init`
)
REACH_PAUSE_S = 0.2  # between two tries
_FIRST_KEYS = 100


class Wanted(NamedTuple):
    """The strategy of a node, and the log that it makes.

    `runs`: how a new log keeps them; None: as JSON, and in an existing log as it does. `shape`: of a new log.
    """

    strategy: str = DEFAULT
    runs: Runs | None = None
    shape: Shape = Shape()


class MessageForm(NamedTuple):
    """How clients' messages stand in the log: `kept` makes that form, `shown` is the opposite."""

    kept: Callable[[Json], Json]
    shown: Callable[[Json], Json]


class Look(NamedTuple):
    """What a look at a store found.

    `trouble`: why it cannot hold the log, so that `init` is refused; "" when it can. `shape`: that of the log,
    None for a log of another strategy.
    """

    trouble: str = ""
    shape: Shape | None = None

    @property
    def form(self) -> MessageForm | None:
        """Of messages in the log; None: they stand there as clients sent them."""
        return LIBRARY_FORM if self.shape else None


async def look_at(store: Store, wanted: Wanted) -> Look:
    """Look at the store, and make the log if there is none. One line in the node's log says what is wrong."""
    until = anyio.current_time() + REACH_S
    while True:
        try:
            return Look("", await _examine(store, wanted))
        except Refused as refused:
            return _told(f"the store cannot be used: {refused}")
        except (OutcomeUnknown, Unreachable, Indefinite) as unknown:
            if anyio.current_time() >= until:
                return _told(f"the store did not answer within {REACH_S:g} s: {unknown}")
            await anyio.sleep(REACH_PAUSE_S)
        except LogError as error:
            return _told(f"the store cannot be used: {error}")


def _told(text: str) -> Look:
    log.error("%s", text)
    return Look(text)


async def _examine(store: Store, wanted: Wanted) -> Shape | None:
    """The shape of the log; an empty store is probed before.

    The list is read before `format`, which is made before anything else of a log.
    """
    listed = await store.list_objects(limit=_FIRST_KEYS)
    is_log = any(each.key != FORMAT and not each.key.startswith(f"{PROBES}/") for each in listed)
    has_format = await store.read(FORMAT) is not None
    if is_log:
        log.warning(
            "the log at %s is not empty, and goes on. Right for a node that was started again; "
            "a new test needs a prefix of its own",
            store.url,
        )
    elif not has_format:
        await probe(store)
    if wanted.strategy != DEFAULT:
        _require(not has_format, f"{store.url} holds a log of the strategy {DEFAULT}")
        return None
    _require(has_format or not is_log, f"{store.url} has objects and no {FORMAT!r}")
    return (await initialise(store, wanted.runs, wanted.shape)).shape


def _require(holds: bool, wrong: str) -> None:
    if not holds:
        raise Refused(f"{wrong}; give the node a prefix of its own")


def _shown(message: Json) -> Json:
    if isinstance(message, dict) and message.keys() == {"$json"}:
        return message["$json"]
    return message


# The library's readers take some names in a message as special, so a client's message is escaped. Bytes and
# large values, which only the library appends, are shown as they stand in the log.
LIBRARY_FORM = MessageForm(kept=message_of, shown=_shown)
