"""A process that merges the files of a log and stops in the middle: `python -m tests.merging URL POINT`.

It prints a line when it has come to the point, and waits there to be killed. Points: `unfinished`, when the
merged file is written and has not got its name; `unnamed`, when it has, and no list names it.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import anyio

from leaderless.store.port import Store, Version
from leaderless.store.urls import open_store
from leaderless.table import upkeep
from leaderless.table.manifest import Manifest, replace_manifest
from tests.tables import merged

TIMEOUT_S = 0.5


def stop() -> None:
    """Say that the point is reached, and go no further."""
    sys.stdout.write("here\n")
    sys.stdout.flush()
    threading.Event().wait()


def stop_before_the_name() -> None:
    """Merged files get no name."""
    link = os.link

    def stopping(source: Path, target: Path, **options: Any) -> None:
        if target.parent.name == "merged":
            stop()
        link(source, target, **options)

    os.link = stopping  # type: ignore[assignment]  # of paths only


def stop_before_the_list() -> None:
    """No list names a merged file."""

    async def stopping(store: Store, new: Manifest, version: Version | None) -> bool:
        if new.files:
            stop()
        return await replace_manifest(store, new, version)

    upkeep.replace_manifest = stopping  # type: ignore[attr-defined]  # what it imports


POINTS = {"unfinished": stop_before_the_name, "unnamed": stop_before_the_list}


if __name__ == "__main__":
    POINTS[sys.argv[2]]()
    anyio.run(merged, open_store(sys.argv[1]), TIMEOUT_S)
