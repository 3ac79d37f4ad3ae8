"""Retention: the oldest files leave the log, by size, by age, or because all groups have processed them.

Off by default; an operator asks for it each time (`leaderless retain`). Whole files leave, oldest first, and
never a part of one: merged files, and runs that are in a page, whose files no start reads. The register `table`
then says where the log starts, and names an object with the first offset of each key that lost records:

    starts/TOKEN.json    {key: offset}

A trim raises the first offset of a key at once (`leaderless trim`), and `table` says so by `trimmed`. A file
that has trimmed records alone leaves with the next retention or trim.

The files themselves stay for the retention of readers, like all that was replaced
(`leaderless.table.upkeep`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

import orjson

from leaderless.core.headlog.records import offsets_of
from leaderless.errors import Broken, Unfit
from leaderless.store.calls import in_thread
from leaderless.store.chain import read_head
from leaderless.store.files import Files
from leaderless.store.port import Store
from leaderless.table.manifest import Manifest, Merged, Start, read_manifest, replace_manifest
from leaderless.table.parquet import Reader, again, sensible
from leaderless.table.runs import paged_runs

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
    """Files that left the log, their bytes, the first slot that it has now, and why no more left."""

    files: int
    bytes: int
    start: int
    kept: str | None = None


def require_policy(policy: Policy) -> None:
    """Raise `Unfit` for a policy that says nothing, or has a number below 0."""
    if policy == Policy():
        raise Unfit("say what may be deleted: by bytes, by age, or what all groups have processed")
    for name, kinds in (("bytes", (int,)), ("age_s", (int, float))):
        bound = getattr(policy, name)
        if bound is not None and (type(bound) not in kinds or not bound >= 0):
            raise Unfit(f"{name} of a policy must be a number, 0 or more, got {bound!r}")


async def delete_oldest(
    store: Store,
    files: Files,
    policy: Policy,
    trims: Mapping[str, int],
    *,
    processed: Callable[[], Awaitable[Mapping[str, int]]],
    now: Callable[[], Awaitable[float]],
    token: Callable[[], str],
) -> Retained:
    """Let the oldest files leave the log; `trims`: of keys the offset below which they are trimmed.

    `processed` gives, for keys that groups read, the offset below which all of them have processed the key;
    `now` and `token` are as of `leaderless.table.upkeep.Upkeep`.
    """
    done = await processed() if policy.processed else {}
    while True:
        manifest, version = await read_manifest(store)
        listed = [*manifest.files]
        listed += [run async for run in paged_runs(store, files, manifest.sealed)]
        at, head = await now(), await read_head(store)
        known = await in_thread(partial(read_starts, files, manifest))
        starts = _raised(known, trims)
        trimmed = manifest.trimmed or starts != known
        may_go = _raised(starts if trimmed else {}, done)
        look = partial(_dropped, files, listed, policy, may_go, at)
        dropped, kept = await in_thread(look)
        end = listed[-1].end if listed else manifest.start.slot
        if kept is None and end < head.end:
            tail = f"{head.shape.seal_bytes} bytes or {head.shape.seal_entries} batches"
            kept = f"the batches from slot {end} on are in no file yet: {tail} make one"
        if not dropped and starts == known:
            return Retained(0, 0, manifest.start.slot, kept)
        for file in dropped:
            starts = _raised(starts, await in_thread(partial(_ends, files, file)))
        path = f"{FOLDER}/{token()}.json"
        await in_thread(partial(files.put, path, orjson.dumps(starts)))
        start = manifest.start._replace(path=path)
        if dropped:
            start = Start(dropped[-1].last + 1, dropped[-1].end, path)
        if await replace_manifest(store, manifest.without(dropped, start, at, trimmed), version):
            return Retained(len(dropped), sum(file.bytes for file in dropped), start.slot, kept)
        # A merge was there first. The object at `path` stays: see `leaderless.table.upkeep`.


def _raised(offsets: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """The higher offset of each key."""
    return {**offsets, **{key: max(at, offsets.get(key, 0)) for key, at in others.items()}}


def _dropped(
    files: Files, listed: Sequence[Merged], policy: Policy, may_go: Mapping[str, int], now: float
) -> tuple[list[Merged], str | None]:
    """The oldest files that may leave, and why the next one stays."""
    left = sum(file.bytes for file in listed)
    for place, file in enumerate(listed):
        left -= file.bytes
        if why := _why_kept(files, file, policy, left, may_go, now=now):
            return [*listed[:place]], f"{file.path} stays: {', '.join(why)}"
    return [*listed], None


def _why_kept(
    files: Files, file: Merged, policy: Policy, left: int, may_go: Mapping[str, int], *, now: float
) -> list[str]:
    """Why a file stays, by each part of the policy; an empty list: it may leave.

    `left`: the bytes of the newer files; `may_go`: of keys the offset below which no record is needed.
    """
    why: list[str] = []
    if policy.bytes is not None:
        if left >= policy.bytes:
            return []
        why.append(f"the newer files have {left} bytes, and {policy.bytes} are to stay")
    if policy.age_s is not None:
        newest = Reader(files, file.path, size=file.bytes).newest()
        if newest < now - policy.age_s:
            return []
        age = "of no known age" if newest == inf else f"{now - newest:.0f} s old"
        why.append(f"its newest record is {age}, and {policy.age_s:g} s are to stay")
    if policy.processed or may_go or not why:
        needed = ((key, end) for key, end in _ends(files, file).items() if end > may_go.get(key, 0))
        found = next(needed, None)
        if found is None:
            return []
        below = may_go.get(found[0], 0)
        why.append(f"key {found[0]!r} needs its offsets {below} to {found[1] - 1}")
    return why


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
