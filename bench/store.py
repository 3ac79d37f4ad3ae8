"""Where runs are kept: `results/<workload>/<time>/`, and links `latest` to the newest.

Folders are made under a unique name and, with the links, one bench at a time, so that
several can share a store: `latest` is the run that began last, whatever the clock of the day said.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.failure import unwritable

NODE_LOGS = "node-logs"


def create_run_dir(store: Path, workload: str, now: datetime) -> Path:
    """Make the folder of a run that begins now, and let the `latest` links point to it.

    Raises `RunFailure` when the store cannot be written.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
        with _alone_in(store):
            run_dir = _make_unique(store / workload, now)
            for link in (store / "latest", store / workload / "latest"):
                _point(link, run_dir)
        (run_dir / NODE_LOGS).mkdir()
    except OSError as error:
        raise unwritable(f"The store {store}", error) from None
    return run_dir


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, where its file system has locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def utc_now() -> datetime:
    return datetime.now(UTC)


def _make_unique(parent: Path, now: datetime) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        stamp = now.strftime("%Y%m%dT%H%M%S.") + f"{now.microsecond // 1000:03d}"
        try:
            (parent / stamp).mkdir()
        except FileExistsError:
            now += timedelta(milliseconds=1)
        else:
            return parent / stamp


def _point(link: Path, target: Path) -> None:
    """Make or replace a relative symbolic link in one step.

    Nothing depends on it: where there can be none (a file system without links, a copied store in
    which it has become a folder), there is none.
    """
    draft = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        draft.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
        try:
            draft.replace(link)
        except OSError:
            draft.unlink()
