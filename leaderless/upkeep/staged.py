"""Rows that a sink has staged, as upkeep knows them: which of them nobody will append, and how they go.

    sink/WRITER/EPOCH/TASK-ATTEMPT-TIME-NAME/N    rows of one attempt of a task
    sink/WRITER/EPOCH/plan                        {format, parts, batch_bytes}: what the epoch is
                                                  or {format, condemned}: parts that a vacuum deletes

A sink (`leaderless.spark`) stages rows, makes the plan of the epoch, and appends its rows under names that
follow from it. Its commit is safe from a vacuum for these reasons:

- An epoch that has a plan stays until it is done, however old it is: a part of it may be in the log, and only
  its plan says how to go on.
- Without a plan, a vacuum first condemns the parts that it deletes, in the register of the plan. A plan and a
  condemnation exclude each other by compare-and-set. So a driver that stood still finds its parts condemned
  before it has appended anything, and its commit fails definitely.
- What was condemned once stays so. An attempt has a name that no other one has, so a driver that starts again
  stages parts that nobody condemned, and its plan takes the place of the condemnation.

An epoch is left alone until its newest part is older than the retention. The register of a condemnation stays,
about 100 bytes for each part, until a later epoch of the writer ends.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from reprlib import repr as brief
from typing import NamedTuple

import orjson

from leaderless.core.coordination import Json, Misfit
from leaderless.core.shape import FORMATS, LOG_FORMAT
from leaderless.errors import OtherFormat
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.store.calls import Deleted, delete_all, own_objects, patiently, read_value
from leaderless.store.names import is_own, name_of, path_segment
from leaderless.store.port import Listed, Store, replaced

FOLDER = "sink"
PLAN = "plan"
PLACES_BITS = 20
LAST = (1 << PLACES_BITS) - 1  # the place of the last batch of an epoch

IsDone = Callable[[str, int], Awaitable[bool]]


class Plan(NamedTuple):
    """What an epoch appends: the rows of `parts`, in this order, in batches of `batch_bytes`."""

    parts: tuple[str, ...]
    batch_bytes: int


def folder_of(writer: str, number: int) -> str:
    """The folder of an epoch. Raises `ValueError`, as `path_segment`."""
    return f"{FOLDER}/{path_segment(writer)}/{number:020}"


def seq_of(epoch: int, place: int) -> int:
    """The number of the batch at a place of an epoch, among those of its writer."""
    return epoch << PLACES_BITS | place


def attempt_name(partition: int, attempt: int, around: Surroundings = REAL) -> str:
    """The folder of one attempt of a task, which no other attempt of any process has."""
    return f"{partition:06}-{attempt}-{around.now():.0f}-{around.name().rpartition('-')[2]}"


async def vacuum_staged(
    store: Store, now: Callable[[], Awaitable[float]], retention_s: float, is_done: IsDone
) -> Deleted:
    """Delete what sinks have staged more than `retention_s` seconds ago and nobody will append.

    `now`: the time of the store's clock. `is_done` says whether the log has a batch of a writer.
    """
    epochs: dict[tuple[str, int], list[Listed]] = {}
    async for listed in own_objects(store, FOLDER):
        epochs.setdefault(epoch_of(listed.key), []).append(listed)
    deleted: list[Listed] = []
    moment = await now() if epochs else 0.0
    for epoch, objects in epochs.items():
        if all(moment - staged_at(each, moment) > retention_s for each in objects):
            deleted += await _vacuum_epoch(store, epoch, objects, is_done)
    return Deleted(len(deleted), sum(each.size or 0 for each in deleted))


async def _vacuum_epoch(
    store: Store, epoch: tuple[str, int], objects: Sequence[Listed], is_done: IsDone
) -> Sequence[Listed]:
    writer, number = epoch
    if await is_done(writer, seq_of(number, LAST)):
        doomed = objects
    else:
        plan = f"{folder_of(writer, number)}/{PLAN}"
        doomed = [each for each in objects if each.key != plan]
        if not doomed or not await _condemn(store, plan, [each.key for each in doomed]):
            return []
    await delete_all(store, [each.key for each in doomed])
    return doomed


async def _condemn(store: Store, key: str, parts: Iterable[str]) -> bool:
    """Condemn parts of an epoch, in the register `key` of its plan.

    Returns whether they may be deleted: not when the epoch has a plan.
    """
    found = await read_value(store, key, condemned_in)
    held = found.value if found else frozenset[str]()
    if held is None:
        return False
    record = {"format": LOG_FORMAT, "condemned": sorted(held.union(parts))}
    change = partial(replaced, store, key, orjson.dumps(record), found and found.version)
    return held.issuperset(parts) or await patiently(change) is not None


def decision_of(record: Json) -> Plan | frozenset[str]:
    """What the register of a plan holds: a plan, or condemned parts. Raises `Misfit`, `OtherFormat`."""
    match record:
        case {"format": int(version)} if version not in FORMATS:
            raise OtherFormat(
                f"a plan of format {version}, this version knows {LOG_FORMAT}: use the one that wrote it"
            )
        case {"format": int(), "parts": [*parts], "batch_bytes": int(batch_bytes)}:
            return Plan(_staged(parts), batch_bytes)
        case {"format": int(), "condemned": _}:
            return condemned_in(record) or frozenset()
    raise Misfit("no plan of a sink")


def condemned_in(record: Json) -> frozenset[str] | None:
    """The condemned parts in the register of a plan; None when it has a plan, of whatever format.

    Raises `Misfit`.
    """
    match record:
        case {"format": int(number), "condemned": [*parts]} if number in FORMATS:
            return frozenset(_staged(parts))
        case {"format": int()}:
            return None
    raise Misfit("no plan of a sink")


def _staged(parts: Sequence[Json]) -> tuple[str, ...]:
    """The names of parts. Raises `Misfit` for one that no sink writes."""
    names = tuple(map(str, parts))
    if all(name.startswith(f"{FOLDER}/") and is_own(name) for name in names):
        return names
    raise Misfit(f"no parts of a sink: {brief(parts)}")


def staged_at(listed: Listed, now: float) -> float:
    """When a staged object was written, as its store says, or its name; else `now`.

    Without a time a plan is of no age: those of the parts count.
    """
    if listed.modified is not None:
        return listed.modified
    if listed.key.endswith(f"/{PLAN}"):
        return 0.0
    attempt = listed.key.split("/")[3].split("-")
    return float(attempt[2]) if len(attempt) == 4 and attempt[2].isdigit() else now


def epoch_of(key: str) -> tuple[str, int]:
    """The writer and the number of the epoch of an object that a log can have written."""
    _, writer, number, *_ = key.split("/")
    return name_of(writer), int(number)
