"""What a node finds in its store before it serves, and how the log there is kept.

A log of the strategy `leaderless` has the object `format`, as a log of the library has (`hosting.place`). The
node follows it. If the store is empty, the node makes it: the first one decides, and the others follow. So
nodes and programs of the library may share a log, and no node writes runs of another kind than the log has.

The logs of other strategies have no `format`, and the library cannot read them.
"""

import logging
from functools import partial
from typing import NamedTuple

from leaderless.core.shape import Shape
from leaderless.core.strategies import DEFAULT
from leaderless.errors import LogError
from leaderless.hosting.place import initialise
from leaderless.runtime.settings import Settings
from leaderless.store.calls import reached
from leaderless.store.names import FORMAT
from leaderless.store.port import Refused, Store
from leaderless.store.probe import PROBES, probe
from leaderless.store.values import Json, message_of

log: logging.Logger = logging.getLogger("leaderless")

# How long a store may be silent at the start; a bench waits 10 s for an answer to `init`.
REACH_S = 6.0
_FIRST_KEYS = 100


class Look(NamedTuple):
    """What a look at a store found.

    `trouble`: why it cannot hold the log, so that `init` is refused; "" when it can. `shape`: that of the log,
    None for a log of another strategy.
    """

    trouble: str = ""
    shape: Shape | None = None

    @staticmethod
    def kept(message: Json) -> Json:
        """A client's message as it stands in such a log.

        The library's readers take some names in a message as special, so it is escaped.
        """
        return message_of(message)

    @staticmethod
    def shown(message: Json) -> Json:
        """What a client sent; bytes and large values, which only the library appends, as they stand."""
        if isinstance(message, dict) and message.keys() == {"$json"}:
            return message["$json"]
        return message


async def look_at(store: Store, settings: Settings) -> Look:
    """Look at the store, and make the log of these settings if there is none.

    One line in the node's log says what is wrong.
    """
    try:
        return Look("", await reached(partial(_examine, store, settings), REACH_S, reads=True))
    except LogError as error:
        text = f"the store cannot be used: {error}"
        log.error("%s", text)
        return Look(text)


async def _examine(store: Store, settings: Settings) -> Shape | None:
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
    if settings.strategy != DEFAULT:
        _require(not has_format, f"{store.url} holds a log of the strategy {DEFAULT}")
        return None
    _require(has_format or not is_log, f"{store.url} has objects and no {FORMAT!r}")
    return (await initialise(store, settings.runs, settings.options.shape or Shape())).shape


def _require(holds: bool, wrong: str) -> None:
    if not holds:
        raise Refused(f"{wrong}; give the node a prefix of its own")
