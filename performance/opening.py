"""Measure what opens a long log of files, and what merges its files: seconds, requests, memory.

    python -m performance.opening [--messages 1000000,10000000] [--keys 10000] [--folder F]

The logs are as appends and compaction leave them (`performance.generated_log`), with messages of 100 bytes, in
SQLite and copied into moto's server (a Python process that answers about 200 requests a second). `--folder`
keeps those in SQLite for another run. A process opens a log and reads the newest or the oldest record of a key;
its clock starts when all is imported. Requests are those to the store and for ranges of its files. Another
process merges all files of a log of which nothing was merged yet. Each figure is of one process of its own.
"""

import json
import os
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import click

from leaderless.core.headlog.records import HEAD
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, require_log
from leaderless.store.counted import Counted
from leaderless.store.files import Files, files_of
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store, all_of
from leaderless.store.urls import open_store
from leaderless.table.manifest import TABLE, read_manifest
from leaderless.table.registers import TableRegisters
from leaderless.table.snapshot import file_refs
from leaderless.table.upkeep import CLAIM
from performance import show_table
from performance.generated_log import PATIENCE_S, TIMEOUT_S, generate
from performance.generated_rows import Shape
from performance.memory import MB, peak_mb
from performance.processes import Figures, figures_of
from tests import servers

BATCH, WIDTH = 8_000, 98  # messages in a batch; bytes of a value, 100 as JSON
OPENED = "messages", "store", "record", "s", "CPU s", "requests", "peak MB"
MERGED = "messages", "merges", "MB read", "largest MB", "CPU s", "MB at start", "peak", "after"


class CountedFiles:
    """Files of a store; requests that read are counted."""

    def __init__(self, files: Files, requests: Counter[str]) -> None:
        self._files, self._requests = files, requests
        self.put, self.delete = files.put, files.delete
        self.list_files, self.location = files.list_files, files.location

    def size(self, path: str) -> int:
        """See `Files`."""
        self._requests["get"] += 1
        return self._files.size(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        self._requests["get"] += 1
        return self._files.read_range(path, start, length)


class WithFiles(Counted):
    """A store with files, which counts the requests for both."""

    @property
    def files(self) -> Files:
        """See `leaderless.store.files.HasFiles`."""
        files = files_of(self._store)
        assert files is not None
        return CountedFiles(files, self.requests)


def store_at(url: str, endpoint: str | None) -> Store:
    """The store of a log; `endpoint`: of the S3 server."""
    options = servers.s3_options(endpoint) if endpoint else StoreOptions()
    return open_store(url, replace(options, timeout_s=TIMEOUT_S))


# ---------------------------------------------------------------- steps, each in a process


async def opened(url: str, endpoint: str | None, key: str, offset: str) -> Figures:
    """Open a log and read one record."""
    store = WithFiles(store_at(url, endpoint))
    since, cpu_s = time.perf_counter(), time.process_time()
    log = Log(store, bounds_of(store, PATIENCE_S, TIMEOUT_S, await require_log(store)))
    async with running(log.host):
        [record] = await log.read(key, int(offset), 1)
        assert record.offset == int(offset)
        seconds, cpu_s = time.perf_counter() - since, time.process_time() - cpu_s
    registers = log.registers
    assert isinstance(registers, TableRegisters)
    requests = sum(store.requests.values())
    await store.aclose()
    return {"seconds": seconds, "cpu_s": cpu_s, "requests": requests}


async def merged(url: str, endpoint: str | None) -> Figures:
    """Merge all that is to be merged."""
    store = store_at(url, endpoint)
    bounds = bounds_of(store, PATIENCE_S, TIMEOUT_S, await require_log(store))
    log = Log(store, bounds)
    since, cpu_s, before = time.perf_counter(), time.process_time(), peak_mb(os.getpid())
    async with running(log.host):
        done = await log.maintenance.merge()
    assert done is not None
    seconds, cpu_s = time.perf_counter() - since, time.process_time() - cpu_s
    files = (await read_manifest(store))[0].files
    await store.aclose()
    largest = max((file.bytes for file in files), default=0)
    figures = {"before": before, "merges": done.merges, "read": done.read, "largest": largest}
    return {**figures, "seconds": seconds, "cpu_s": cpu_s}


STEPS: dict[str, Callable[..., Coroutine[Any, Any, Figures]]] = {"open": opened, "merge": merged}


def in_a_process(step: str, url: str, endpoint: str | None, *arguments: str) -> Figures:
    """The figures of a step, and the memory of its process in MB."""
    return figures_of("performance.opening", step, url, endpoint or "", *arguments)


def run_step(step: str, url: str, endpoint: str, *arguments: str) -> None:
    """Do a step in this process, and print its figures."""
    figures = anyio.run(STEPS[step], url, endpoint or None, *arguments)
    now = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[1]) / MB
    sys.stdout.write(json.dumps(figures | {"peak": peak_mb(os.getpid()), "after": now}))


# ---------------------------------------------------------------- logs


async def ready(url: str, shape: Shape) -> None:
    """Write a log, unless it is there."""
    store = open_store(url)
    if await store.read(HEAD) is None:
        await generate(store, shape)
    await store.aclose()


async def copy(url: str, target: str, endpoint: str) -> None:
    """Copy the objects and the files of a log."""
    source, store = open_store(url), store_at(target, endpoint)
    async for listed in all_of(source):
        found = await source.read(listed.key)
        assert found is not None
        await store.write(listed.key, found.value)
    old, new = files_of(source), files_of(store)
    assert old is not None
    assert new is not None
    for ref in await file_refs(source):
        new.put(ref.path, Path(old.location(ref.path)))
    await source.aclose()
    await store.aclose()


@contextmanager
def unmerged(folder: Path) -> Iterator[str]:
    """A copy of a log in SQLite of which nothing was merged yet."""
    name = "unmerged.db"
    with (
        closing(sqlite3.connect(folder / "log.db")) as source,
        closing(sqlite3.connect(folder / name)) as target,
    ):
        source.backup(target)
        target.execute("DELETE FROM objects WHERE key IN (?, ?)", (TABLE, CLAIM))
        target.commit()
    runs = folder / f"{name}-files" / "run"
    shutil.copytree(folder / "log.db-files" / "run", runs, copy_function=os.link)
    yield f"sqlite:///{folder / name}"
    shutil.rmtree(runs.parent)
    for file in folder.glob(f"{name}*"):
        file.unlink()


# ---------------------------------------------------------------- tables


def openings(store: str, url: str, endpoint: str | None, shape: Shape) -> Iterator[tuple[str, ...]]:
    """What it takes to open a log and to read a record of a key in the middle."""
    place = shape.keys // 2
    newest = (shape.messages - 1 - place) // shape.keys
    for name, offset in ("newest", newest), ("oldest", 0):
        found = in_a_process("open", url, endpoint, f"k{place:06}", str(offset))
        numbers = f"{found['seconds']:.2f}", f"{found['cpu_s']:.2f}", f"{found['requests']:.0f}"
        yield f"{shape.messages:,}", store, name, *numbers, f"{found['peak']:.0f}"


def merging(folder: Path, shape: Shape) -> tuple[str, ...]:
    """What a process needs that merges the files of a log."""
    with unmerged(folder) as url:
        found = in_a_process("merge", url, None)
    sizes = f"{found['read'] / MB:.0f}", f"{found['largest'] / MB:.0f}"
    memory = (f"{found[name]:.0f}" for name in ("before", "peak", "after"))
    return f"{shape.messages:,}", f"{found['merges']:.0f}", *sizes, f"{found['cpu_s']:.1f}", *memory


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--messages", default="1000000,10000000", show_default=True)
@click.option("--keys", default=10_000, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="for the logs, which stay")
def main(*, messages: str, keys: int, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory() as fresh:
        shapes = {}
        for count in map(int, messages.split(",")):
            own = (folder or Path(fresh)) / str(count)
            own.mkdir(parents=True, exist_ok=True)
            shapes[own] = Shape(count, keys, WIDTH, BATCH)
            anyio.run(ready, f"sqlite:///{own / 'log.db'}", shapes[own])
        show_table(OPENED, _all_openings(shapes))
        click.echo()
        show_table(MERGED, (merging(own, shape) for own, shape in shapes.items()))


def _all_openings(shapes: dict[Path, Shape]) -> Iterator[tuple[str, ...]]:
    for own, shape in shapes.items():
        url = f"sqlite:///{own / 'log.db'}"
        yield from openings("SQLite", url, None, shape)
        with servers.moto() as endpoint:
            target = f"s3://{servers.BUCKET}/log"
            anyio.run(copy, url, target, endpoint)
            yield from openings("S3 (moto)", target, endpoint, shape)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in STEPS:
        run_step(*sys.argv[1:])
    else:
        main()
