"""Measure what a long log takes as JSON and as files, what opens it, and what merges its files.

    python -m performance.opening [--messages 1000000,10000000] [--keys 10000] [--folder F]

The logs are as appends and compaction leave them (`performance.generated_log`): with runs of JSON and of
Parquet, in SQLite and on moto's server (a Python process that answers about 200 requests a second). Messages
have 100 bytes, half of which are random digits; a log has 130 000 or more. `--folder` keeps those in SQLite for
another run. A process opens a log and reads the oldest record of a key; its clock starts when all is imported.
Requests are those to the store and for ranges of its files. Another process merges all files of a log of which
nothing was merged yet. Each figure is of one process of its own.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import click
import orjson
import psutil

from bench.stores.names import MOTO
from leaderless.core.headlog.index import COMPACTED, index_of
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, require_log
from leaderless.store.counted import Counted
from leaderless.store.files import Files, files_of
from leaderless.store.port import Store
from leaderless.table.manifest import read_manifest
from performance.generated_log import PATIENCE_S, TIMEOUT_S, Shape, generated
from performance.harness import MB, Figures, alone, open_at, peak_mb, program, show_table, store_of

OPENED = {
    "bytes in runs": ".0f", "in merged files": ".0f", "requests": ".0f", "cpu_s": ".2f",
    "seconds": ".2f", "peak_mb": ".0f",
}  # fmt: skip
MERGED = {
    "merges": ".0f", "read_mb": ".0f", "largest_mb": ".0f", "cpu_s": ".1f", "before_mb": ".0f",
    "peak_mb": ".0f", "after_mb": ".0f",
}  # fmt: skip


class WithFiles(Counted):
    """A store with files, which counts the requests for both."""

    @cached_property
    def files(self) -> Files:
        """See `leaderless.store.files.HasFiles`."""
        files: Any = files_of(self._store)  # of its own, because nobody else has the store
        for name in ("size", "read_range"):
            setattr(files, name, partial(self._counted, getattr(files, name)))
        found: Files = files
        return found

    def _counted(self, ask: Any, *arguments: object) -> Any:
        self.requests["get"] += 1
        answer = ask(*arguments)
        self.bytes_read += len(answer) if isinstance(answer, bytes) else 0
        return answer


async def log_in(store: Store) -> Log:
    """The log in a store, which merges nothing by itself."""
    return Log(store, bounds_of(store, PATIENCE_S, TIMEOUT_S, await require_log(store)))


async def opened(url: str, key: str) -> Figures:
    """Open a log and read the oldest record of a key."""
    store = WithFiles(open_at(url))
    since, cpu_s = time.perf_counter(), time.process_time()
    log = await log_in(store)
    async with running(log.host):
        [_] = await log.read(key, 0, 1)
        seconds, cpu_s = time.perf_counter() - since, time.process_time() - cpu_s
    await store.aclose()
    return {"seconds": seconds, "cpu_s": cpu_s, "requests": store.requests.total()}


async def merged(url: str) -> Figures:
    """Merge all that is to be merged."""
    store = open_at(url)
    log = await log_in(store)
    cpu_s, before = time.process_time(), peak_mb(os.getpid())
    async with running(log.host):
        done = await log.maintenance.merge()
    assert done is not None
    cpu_s = time.process_time() - cpu_s
    largest = max((file.bytes for file in (await read_manifest(store))[0].files), default=0)
    after = psutil.Process().memory_info().rss / MB
    return {
        "before_mb": before, "merges": done.merges, "read_mb": done.read / MB, "cpu_s": cpu_s,
        "largest_mb": largest / MB, "after_mb": after,
    }  # fmt: skip


async def sizes(database: Path, batch: int) -> Figures:
    """Bytes of a message in the runs of a log of either kind, and in its merged files."""
    store = open_at(f"sqlite:///{database}")
    files, compacted = files_of(store), await store.read(COMPACTED)
    assert files is not None
    assert compacted is not None
    with closing(sqlite3.connect(database)) as connection:
        statement = "SELECT total(length(value)) FROM objects WHERE key LIKE 'run/%'"
        [[json]] = connection.execute(statement)
    runs = json or sum(each.size or 0 for each in files.list_files("run"))
    listed = (await read_manifest(store))[0].files
    rows, size = sum(file.rows for file in listed), sum(file.bytes for file in listed)
    messages = batch * index_of(orjson.loads(compacted.value)).end
    return {"bytes in runs": runs / messages, "in merged files": size / max(1, rows)}


def openings(folder: Path, shape: Shape) -> Iterator[list[str]]:
    """What a log takes, of both kinds, and what opens it on each store."""
    with store_of(MOTO) as bucket:
        for runs in ("json", "parquet"):
            database = folder / f"{shape.messages}-{runs}" / "log.db"
            database.parent.mkdir(parents=True, exist_ok=True)
            places = {"SQLite": f"sqlite:///{database}", "S3 (moto)": f"{bucket}/{runs}"}
            for store, url in places.items():
                anyio.run(generated, url, shape, runs)
                first = alone(opened, url, shape.key(shape.keys // 2))
                found = figures(anyio.run(sizes, database, shape.batch) | first, OPENED)
                yield [f"{shape.messages:,}", runs, store, *found]


def merging(folder: Path, shape: Shape) -> list[str]:
    """What a process needs that merges the files of a log."""
    url = f"sqlite:///{folder / str(shape.messages)}.db"
    anyio.run(generated, url, shape, "parquet", False)
    return [f"{shape.messages:,}", *figures(alone(merged, url), MERGED)]


def figures(found: Figures, forms: Mapping[str, str]) -> list[str]:
    """As cells of a table."""
    return [f"{found[name]:{form}}" for name, form in forms.items()]


@program
def main(
    *,
    messages: str = "1000000,10000000",
    keys: int = 10_000,
    folder: Annotated[Path | None, click.Path(path_type=Path)] = None,
) -> None:
    with tempfile.TemporaryDirectory() as fresh:
        place = folder or Path(fresh)
        shapes = [Shape(count, keys) for count in map(int, messages.split(","))]
        rows = (row for shape in shapes for row in openings(place, shape))
        show_table(("messages", "runs", "store", *OPENED), rows)
        click.echo()
        with tempfile.TemporaryDirectory() as unmerged:
            show_table(("messages", *MERGED), (merging(Path(unmerged), shape) for shape in shapes))


if __name__ == "__main__":
    main()
