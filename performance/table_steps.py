"""Work on a log in a process of its own, for the memory of that: `python -m performance.table_steps STEP URL`.

`merge`: its first files, up to 16 of them, become one, which no list names. The answer is JSON.
"""

import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from leaderless.store.calls import in_thread
from leaderless.store.files import files_of
from leaderless.store.urls import open_store
from leaderless.table.levels import Levels
from leaderless.table.manifest import read_manifest
from leaderless.table.merge import merge as merge_rows
from leaderless.table.parquet import Reader, Writer
from performance.memory import MB, peak_mb

Figures = dict[str, float]


async def merge(url: str) -> Figures:
    """Merge files, as upkeep does it."""
    store = open_store(url)
    files = files_of(store)
    assert files is not None
    manifest, _ = await read_manifest(store)
    some = manifest.files[: Levels().fan]

    def write() -> None:
        with TemporaryDirectory() as folder, Writer(Path(folder, "merged.parquet"), {}) as writer:
            merge_rows([Reader(files, each.path, size=each.bytes) for each in some], writer)

    await in_thread(write)
    await store.aclose()
    return {"read_mb": sum(each.bytes for each in some) / MB}


def in_a_process(step: str, url: str) -> Figures:
    """The figures of a step, with the memory in MB and the CPU seconds of its process."""
    command = [sys.executable, "-m", "performance.table_steps", step, url]
    found: Figures = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return found


def main(step: str, url: str) -> None:
    """Do a step and print its figures."""
    figures = anyio.run(partial({"merge": merge}[step], url))
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime
    sys.stdout.write(json.dumps(figures | {"memory": peak_mb(os.getpid()), "cpu_s": cpu_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
