"""Where runs are kept: `results/<workload>/<time>/`, and links `latest` to the newest.

Folders are made under a name nobody else has, and links replaced in one step, so that several
benches can share a store.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.failure import RunFailure

NODE_LOGS = "node-logs"


def create_run_dir(store: Path, workload: str, now: datetime) -> Path:
    """Make the folder of a run that begins now, and let the `latest` links point to it.

    Raises `RunFailure` when the store cannot be written.
    """
    try:
        run_dir = _make_unique(store / workload, now)
        (run_dir / NODE_LOGS).mkdir()
        for link in (store / "latest", store / workload / "latest"):
            _point(link, run_dir)
    except OSError as error:
        raise RunFailure(
            f"The store {store} cannot be written: {error}.\n"
            "Give another folder with --store, or make room."
        ) from None
    return run_dir


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
    """Make or replace a relative symbolic link in one step."""
    draft = link.with_name(f".{link.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    draft.replace(link)
