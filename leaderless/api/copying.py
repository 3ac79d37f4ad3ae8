"""Copies a log to another place: a backup, a move, a fork, or the way back (`leaderless.upkeep.copying`)."""

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from leaderless.api.opening import open_log
from leaderless.api.tail import At, millis
from leaderless.core.shape import Compression, Runs
from leaderless.errors import NotInitialised, Unfit
from leaderless.hosting.place import place_of, require_log
from leaderless.store.calls import reached
from leaderless.store.files import files_of
from leaderless.store.options import StoreOptions
from leaderless.upkeep.copying import Copied, Selection, Told, copy


async def copy_log(
    source: str,
    target: str,
    *,
    keys: Iterable[str] | None = None,
    until: Mapping[str, int] | None = None,
    at: At | None = None,
    runs: Runs | None = None,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    patience_s: float = 30.0,
    told: Told = lambda _done, _total: None,
) -> Copied:
    """Copy the log at `source` to `target`, two URLs, and check the copy; see `leaderless.upkeep.copying`.

    A call that was cut off may be repeated, also by another process: it goes on.

    Args:
        keys: those that are copied; None: all.
        until: of keys the offset before which the copy ends.
        at: a time, see `Log.offset_at`: records that were committed then or later are not copied.
        runs: of a log that is made at `target`; None: as at `source` if there is room for files.
        source_options, target_options: `topic`, `endpoint`, `access_key`, `secret_key`, `region` of `open_log`.
        patience_s: how long a call of a store may take, in seconds.
        told: is told how many records were copied, and of how many.

    Raises:
        Unfit: `target` has another log, or the selection cannot be.
        OtherFormat: the log at `target` has an earlier format, and is only read.
        Broken: the copy is not what was read, or one of the logs is broken.
    """
    chosen = None if keys is None else frozenset(keys)
    selection = Selection(chosen, {**(until or {})}, None if at is None else millis(at))
    async with (
        aclosing(_place(source, source_options or {}, patience_s)) as old,
        aclosing(_place(target, target_options or {}, patience_s)) as new,
    ):
        if old.url == new.url:
            raise Unfit(f"FROM and TO are one place, {old.url}")
        shape = await reached(partial(require_log, old), patience_s, reads=True)
        compression: Compression | None = None
        try:
            await reached(partial(require_log, new), patience_s, reads=True)
        except NotInitialised:
            runs = runs or (shape.runs if files_of(new) else "json")
            compression = shape.compression
        async with open_log(
            target,
            peers=None,
            runs=runs,
            compression=compression,
            patience_s=patience_s,
            **(target_options or {}),
        ) as log:
            return await copy(
                old,
                new,
                selection,
                log.host.registers,
                log.data,
                step_bytes=log.batch_bytes,
                compact=log.compact,
                told=told,
            )


def _place(url: str, options: Mapping[str, Any], patience_s: float) -> Any:
    known = {name: value for name, value in options.items() if name != "topic"}
    timeout_s = min(10.0, patience_s)
    return place_of(url, options.get("topic"), StoreOptions(**known, timeout_s=timeout_s))
