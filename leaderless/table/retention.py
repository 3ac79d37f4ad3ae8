"""Retention: the oldest merged files leave the log, by size, by age, or because all groups have processed
them.

Off by default; an operator asks for it each time (`leaderless retain`). Whole files leave, oldest first,
never a part of one, and never the newest runs. The register `table` then says where the log starts, and names
an object with the first offset of each key that lost records:

    starts/TOKEN.json    {key: offset}

The files themselves stay for the retention of readers, like all that was replaced
(`leaderless.table.upkeep`).
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

import orjson

from leaderless.core.headlog.records import offsets_of
from leaderless.errors import Broken, Unfit
from leaderless.store.calls import in_thread
from leaderless.store.files import Files
from leaderless.store.port import Store
from leaderless.table.manifest import Manifest, Merged, Start, read_manifest, replace_manifest
from leaderless.table.parquet import Reader, again, sensible

__all__ = ["Policy", "Retained"]

FOLDER = "starts"
STARTS_BYTES = 1 << 28  # of a file there: offsets of ten million keys


class Policy(NamedTuple):
    """What leaves the log; a file leaves when one of them says so.

    `bytes`: files that the log does not need to have so many bytes in merged files. `age_s`: files whose
    newest record is older, in seconds. `processed`: files whose records all groups that read their keys have
    processed; a key that no group reads keeps its files.
    """

    bytes: int | None = None
    age_s: float | None = None
    processed: bool = False


class Retained(NamedTuple):
    """Files that left the log, their bytes, and the first slot that it has now."""

    files: int
    bytes: int
    start: int


async def delete_oldest(
    store: Store,
    files: Files,
    policy: Policy,
    *,
    processed: Callable[[], Awaitable[Mapping[str, int]]],
    now: Callable[[], Awaitable[float]],
    token: Callable[[], str],
) -> Retained:
    """Let the oldest files leave the log.

    `processed` gives, for keys that groups read, the offset below which all of them have processed the key;
    `now` and `token` are as of `leaderless.table.upkeep.Upkeep`.
    Raises `Unfit` for a policy that says nothing, or has a number below 0.
    """
    if policy == Policy():
        raise Unfit("say what may be deleted: by bytes, by age, or what all groups have processed")
    for name, kinds in (("bytes", (int,)), ("age_s", (int, float))):
        bound = getattr(policy, name)
        if bound is not None and (type(bound) not in kinds or not bound >= 0):
            raise Unfit(f"{name} of a policy must be a number, 0 or more, got {bound!r}")
    done = await processed() if policy.processed else {}
    while True:
        manifest, version = await read_manifest(store)
        at = await now()
        dropped = await in_thread(partial(_dropped, files, manifest, policy, done, at))
        if not dropped:
            return Retained(0, 0, manifest.start.slot)
        starts = await in_thread(partial(_starts, files, manifest, dropped))
        path = f"{FOLDER}/{token()}.json"
        await in_thread(partial(files.put, path, orjson.dumps(starts)))
        start = Start(dropped[-1].last + 1, dropped[-1].end, path)
        if await replace_manifest(store, manifest.without(dropped, start, at), version):
            return Retained(len(dropped), sum(file.bytes for file in dropped), start.slot)
        await in_thread(partial(files.delete, [path]))  # a merge was there first


def _dropped(
    files: Files, manifest: Manifest, policy: Policy, done: Mapping[str, int], now: float
) -> list[Merged]:
    """The oldest files that may leave."""
    dropped: list[Merged] = []
    left = sum(file.bytes for file in manifest.files)
    for file in manifest.files:
        left -= file.bytes
        if not (
            (policy.bytes is not None and left >= policy.bytes)
            or (
                policy.age_s is not None
                and Reader(files, file.path, size=file.bytes).newest() < now - policy.age_s
            )
            or (
                policy.processed
                and all(end <= done.get(key, 0) for key, end in _ends(files, file).items())
            )
        ):
            break
        dropped.append(file)
    return dropped


def _ends(files: Files, file: Merged) -> dict[str, int]:
    """Of each key in a file the offset after its last one."""
    ends: dict[str, int] = {}
    reader = Reader(files, file.path, size=file.bytes)
    for place in range(reader.row_groups):
        rows = reader.read([place], ["key", "offset"])
        last = rows.group_by("key").aggregate([("offset", "max")])
        for key, offset in zip(
            *(last[name].to_pylist() for name in ("key", "offset_max")), strict=True
        ):
            ends[key] = offset + 1
    return ends


def _starts(files: Files, manifest: Manifest, dropped: list[Merged]) -> dict[str, int]:
    """The first offsets of keys after these files have left."""
    starts = read_starts(files, manifest)
    for file in dropped:
        starts |= _ends(files, file)
    return starts


def read_starts(files: Files, manifest: Manifest) -> dict[str, int]:
    """The first offset of each key that has lost records. Raises `Gone` for a manifest that is too old."""
    path = manifest.start.path
    if path is None:
        return {}
    size = files.size(path)
    if size > STARTS_BYTES:
        raise Broken(f"{path} has {size} bytes, of at most {STARTS_BYTES}")
    content = partial(again, partial(files.read_range, path, 0, size))
    return sensible(path, lambda: dict(offsets_of(orjson.loads(content()))))
