"""Where a log is: a store, and the object `format` that says which version of the program made it."""

from typing import NamedTuple

import orjson

from leaderless import __version__
from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.library.errors import Definite, Indefinite, NotInitialised, OtherFormat
from leaderless.library.errors import Unfit as _Unfit
from leaderless.store.names import FORMAT, segment_of
from leaderless.store.options import StoreOptions
from leaderless.store.port import Conflict, OutcomeUnknown, Refused, Store, Within
from leaderless.store.urls import open_store

VERSION = 1  # of the format; raised when an older program could misread what a newer one writes
SMALL_VALUES = 1 << 24  # a store of smaller objects gets smaller registers


def place_of(url: str, topic: str | None, options: StoreOptions) -> Store:
    """The store of one log: what `url` names, and below it the folder of `topic`, if one is given.

    Raises `Definite`.
    """
    try:
        store = open_store(url, options)
        return Within(store, f"topic/{segment_of(topic)}") if topic is not None else store
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except ValueError as error:
        raise _Unfit(f"topic: {error}") from None


async def initialise(store: Store) -> bool:
    """Make the log if it is not there; returns whether this call made it. Raises as `require_log`."""
    value = orjson.dumps({"format": VERSION, "made_by": f"leaderless {__version__}"})
    try:
        await store.create(FORMAT, value)
    except Conflict:
        await require_log(store)
        return False
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except OutcomeUnknown as unknown:
        raise Indefinite(str(unknown)) from unknown
    return True


async def require_log(store: Store) -> None:
    """Return if there is a log that this program can read.

    Raises `NotInitialised`, `OtherFormat`, `Definite` when the store refuses, `Indefinite` when it is silent.
    """
    try:
        found = await store.read(FORMAT)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except OutcomeUnknown as unknown:
        raise Indefinite(str(unknown)) from unknown
    if found is None:
        raise NotInitialised(f"there is no log at {store.url}; make it with `leaderless init`")
    try:
        version = orjson.loads(found.value)["format"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        version = None
    if version != VERSION:
        raise OtherFormat(
            f"{store.url} has format {version}, and this program (leaderless {__version__}) knows "
            f"{VERSION}: use a newer one"
        )


class Bounds(NamedTuple):
    """What follows from a store: the core's limits and pace, and which values the log itself holds.

    A larger value than `inline_bytes` gets an object of its own, of `value_bytes` at most.
    """

    limits: Limits
    pace: Pace
    inline_bytes: int
    value_bytes: int


def bounds_of(store: Store, patience_s: float, store_timeout_s: float) -> Bounds:
    """Bounds for a log on `store`.

    A request to a store costs more than a message to Maelstrom's `lin-kv`, in time and money, and bytes
    cost less: so batches and segments are larger. `patience_s`: see `Limits.client_patience_s`.
    """
    small = store.value_bytes_max < SMALL_VALUES
    limits = Limits(
        line_bytes=min(store.value_bytes_max, 1 << 26),
        message_bytes=1 << 16,
        batch_bytes=1 << 15 if small else 1 << 20,
        commit_bytes=1 << 16 if small else 1 << 21,
        seal_bytes=1 << 13 if small else 1 << 16,
        segments_per_run=4 if small else 16,
        page_bytes=1 << 13 if small else 1 << 18,
        client_patience_s=patience_s,
        answer_margin_s=patience_s / 10,
    )
    pace = Pace(store_timeout_s=store_timeout_s, timeout_unmeasured_max_s=store_timeout_s)
    return Bounds(limits, pace, 1 << 14, store.value_bytes_max)
