"""Where a log is: how it is made and found in a store, and which bounds follow from the store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import NamedTuple

from leaderless import __version__
from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.shape import Compression, Runs, Shape
from leaderless.errors import Definite, Indefinite, NotInitialised, OtherFormat, Unreachable
from leaderless.errors import Unfit as _Unfit
from leaderless.store.calls import in_thread, objects_in, patiently
from leaderless.store.compression import require_zstd
from leaderless.store.files import files_of
from leaderless.store.format import format_of, shape_in
from leaderless.store.names import FILE_FOLDERS, FORMAT, TOPICS, is_file, path_segment
from leaderless.store.options import StoreOptions, install
from leaderless.store.port import Conflict, OutcomeUnknown, Refused, Store
from leaderless.store.registers import Registers
from leaderless.store.urls import open_store
from leaderless.store.wrapped import Within
from leaderless.table.manifest import Levels

INSTALL = f"it needs the package pyarrow: {install('table')}"
_HAS_PYARROW = find_spec("pyarrow") is not None
SMALL_VALUES = 1 << 24  # a store of smaller objects gets smaller registers
# Objects of any strategy.
OF_NODES = {
    "head",
    "segment",
    "run",
    "committed",
    "log",
    "range",
    "reserved",
}
LOOK_OBJECTS = 100_000
APART = "name a prefix that is beside it, or a topic"
FILE_RUN_BYTES = 4 << 20  # of the segments of a run that is a file: no reader needs it whole


def place_of(url: str, topic: str | None, options: StoreOptions) -> Store:
    """The store of one log: what `url` names, and below it the folder of `topic`, if one is given.

    Raises `Definite`.
    """
    try:
        store = open_store(url, options)
        return Within(store, f"{TOPICS}/{path_segment(topic)}") if topic is not None else store
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except ValueError as error:
        raise _Unfit(f"topic: {error}") from None


class Made(NamedTuple):
    """Whether a log was made by this call, and its shape."""

    new: bool
    shape: Shape


async def ensure_log(
    store: Store, runs: Runs | None = None, compression: Compression | None = None
) -> Made:
    """As `initialise`, but raise `OtherFormat` rather than make a log over one that has no `format`.

    `compression`: of a new log, for all its life, "zstd" or "none"; None: none, or what there is already.

    Nodes of other strategies make logs without `format`, which programs cannot read.
    """
    try:
        found = await require_log(store)
    except NotInitialised:
        await _require_free(store)
        await _require_no_files(store, runs)
        return await patiently(partial(_created, store, runs, None, compression))
    return _kept(store, runs, compression, found)


async def _require_free(store: Store) -> None:
    """Raise `OtherFormat` for a log of nodes here, `Unfit` for a place inside another log, or around one.

    Topics may stand beside a log. Of a place with many objects the first `LOOK_OBJECTS` are looked at.
    """
    async for outer in _logs_around(store):
        raise _Unfit(f"{store.url} is inside the log at {outer}; {APART}")
    of_nodes, seen = "", 0
    async for each in objects_in(store):
        folder, _, name = each.key.rpartition("/")
        top = each.key.partition("/")[0]
        inner = Within(store, folder)
        if folder and name == FORMAT and top != TOPICS and await _is_log(inner):
            raise _Unfit(f"{store.url} has the log at {inner.url} inside it; {APART}")
        of_nodes = of_nodes or (each.key if top in OF_NODES else "")
        if (seen := seen + 1) == LOOK_OBJECTS:
            break
    # `format` is made before all else, so another process that has made a log meanwhile shows it now.
    if of_nodes and await patiently(lambda: store.read(FORMAT)) is None:
        raise OtherFormat(
            f"{store.url} has {of_nodes!r} and no {FORMAT!r}: it holds a log of another strategy, which "
            "programs cannot read. Take a prefix or a topic of its own for this log"
        )


async def _require_no_files(store: Store, runs: Runs | None) -> None:
    """Raise `Unfit` for files of an earlier log: those of this one would have their names."""
    files = files_of(store) if runs == "parquet" else None
    if files is None:
        return
    found = chain.from_iterable(map(files.list_files, FILE_FOLDERS))
    left = await in_thread(lambda: next((each.key for each in found if is_file(each.key)), None))
    if left and await patiently(lambda: store.read(FORMAT)) is None:
        raise _Unfit(
            f"{files.location(left)} is of an earlier log at {store.url}: move its folders "
            f"{', '.join(FILE_FOLDERS)} away first"
        )


async def _logs_around(store: Store) -> AsyncIterator[str]:
    """The URLs of logs whose place has this one inside it."""
    prefix: list[str] = []
    inmost = store
    while isinstance(inmost, Within):
        prefix = [*inmost.prefix.split("/"), *prefix]
        inmost = inmost.outer
    for depth, below in enumerate(prefix):
        outer = Within(inmost, "/".join(prefix[:depth])) if depth else inmost
        if below != TOPICS and await _is_log(outer):
            yield outer.url


async def _is_log(store: Store) -> bool:
    """Whether a log is there, as far as this user may read it."""
    try:
        await shape_in(store)
    except Unreachable:
        raise
    except Definite:
        return False
    return True


async def initialise(store: Store, runs: Runs | None = None, shape: Shape | None = None) -> Made:
    """Make the log if it is not there. Raises as `require_log`.

    `shape`: of a new log; None: that of `new_shape`. `runs`: how a new log keeps them; None: as `shape` says,
    without one as JSON, and as it does if it is there already. Raises `Unfit` when the store, or an existing
    log, has no such runs.
    """
    try:
        return await _created(store, runs, shape)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except OutcomeUnknown as unknown:
        raise Indefinite(str(unknown)) from unknown


async def _created(
    store: Store, runs: Runs | None, shape: Shape | None, compression: Compression | None = None
) -> Made:
    """Make `format`, which may be tried again. Raises `StoreError` for what the store says of it."""
    made = runs or (shape.runs if shape else "json")
    if made == "parquet":
        _require_parquet(store)
    chosen = replace(shape, runs=made) if shape else new_shape(store, made)
    chosen = replace(chosen, compression=compression or chosen.compression)
    require_zstd(chosen.compression, store.url)
    try:
        await store.create(FORMAT, format_of(chosen, f"leaderless {__version__}"))
    except Conflict:
        return _kept(store, runs, compression, await require_log(store))
    return Made(True, chosen)


def _kept(store: Store, runs: Runs | None, compression: Compression | None, found: Shape) -> Made:
    """The log that is there already, of this shape. Raises `Unfit` where another one was asked for."""
    if runs not in (None, found.runs):
        raise _Unfit(f"the log at {store.url} has runs of {found.runs}, not {runs}")
    if compression not in (None, found.compression):
        raise _Unfit(
            f"the log at {store.url} has the compression {found.compression}, not {compression}: it "
            "keeps that for all its life"
        )
    return Made(False, found)


def _require_parquet(store: Store) -> None:
    if files_of(store) is None:
        raise _Unfit(f"{store.url} has no files, so its logs have runs of JSON")
    require_pyarrow(f"the log at {store.url} has runs of Parquet")


def require_pyarrow(what: str) -> None:
    """Raise `Definite` if pyarrow, which `what` needs, is not installed."""
    if not _HAS_PYARROW:
        raise Definite(f"{what}: {INSTALL}")


async def require_log(store: Store) -> Shape:
    """Return the shape of the log, if there is one that this program can read.

    Raises `NotInitialised`, `OtherFormat`, `Definite` when the store refuses or pyarrow is missing,
    `Indefinite` when the store is silent.
    """
    shape = await shape_in(store)
    if shape.sliced:
        _require_parquet(store)
    require_zstd(shape.compression, store.url)
    return shape


def new_shape(store: Store, runs: Runs = "json") -> Shape:
    """The shape of a log that a program makes in this store.

    A request to a store costs more than a message to Maelstrom's `lin-kv`, in time and money, and bytes
    cost less: so its segments are larger than those of a log that nodes make. So is a run, and who
    opens the log reads those that are in no page yet: so there are few of them.
    """
    small = store.value_bytes_max < SMALL_VALUES
    return Shape(
        register_bytes=min(store.value_bytes_max, 1 << 26),
        seal_bytes=1 << 13 if small else 1 << 16,
        segments_per_run=4 if small else 16,
        page_children=4,
        run_bytes=1 << 19 if small else FILE_RUN_BYTES if runs == "parquet" else 1 << 21,
        page_bytes=1 << 13 if small else 1 << 18,
        runs=runs,
    )


class Bounds(NamedTuple):
    """What a process goes by: the shape of the log, what it chooses itself, and which values the log holds.

    A larger value than `inline_bytes` gets an object of its own, of `value_bytes` at most. `levels`: how files
    of runs are merged, on a log that has them.
    """

    shape: Shape
    limits: Limits
    pace: Pace
    inline_bytes: int
    value_bytes: int
    levels: Levels = Levels()


def bounds_of(
    store: Store,
    patience_s: float,
    store_timeout_s: float,
    shape: Shape | None = None,
    *,
    message_worth_s: float = Pace().message_worth_s,
) -> Bounds:
    """Bounds of a program for a log of this shape on `store`; None: of the shape that it would make.

    Batches are larger than those of a node, for the reason that `new_shape` has. A process takes fewer rests:
    no other node waits for it. `patience_s`: see `Limits.client_patience_s`. `message_worth_s`: see `Pace`.
    Raises `OtherFormat` for a shape that no limits fit.
    """
    shape = shape or new_shape(store)
    small = shape.register_bytes < SMALL_VALUES
    limits = Limits(
        message_bytes=1 << 16,
        batch_bytes=1 << 15 if small else 1 << 20,
        memory_bytes=5 << 23 if shape.sliced else 5 << 24,
        ahead_bytes=5 << 22,
        compaction_bytes=1 << 20 if small else 1 << 22 if shape.sliced else 1 << 23,
        client_patience_s=patience_s,
    )
    try:
        limits.fitted(shape)
    except ValueError as error:
        raise OtherFormat(f"the log at {store.url} has a shape of no use here: {error}") from None
    pace = Pace(
        message_worth_s=message_worth_s,
        commit_every_s=getattr(store, "write_every_s", 0.0),
        rest_every=32,
        turn_commits=6,
        store_timeout_s=store_timeout_s,
        hedge_s_min=0.25,
        greeting_s=0.5,
        hedge_s_max=2.0,
        probe_s_max=30.0,
        gathers=0.4,
        error_patience_s=0.15,  # four errors: a store's client tries again by itself, and so may the caller
    )
    return Bounds(shape, limits, pace, 1 << 14, store.value_bytes_max)


def registers_of(store: Store, bounds: Bounds) -> Registers:
    """The registers of a log on `store`, whose runs are files if the bounds say so."""
    files = files_of(store)
    if not bounds.shape.sliced or files is None:
        return Registers(store, bounds.shape)
    from leaderless.table.registers import TableRegisters

    return TableRegisters(store, files, bounds.shape)
