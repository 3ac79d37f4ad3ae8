"""Measure a log whose runs are Parquet files, beside one of JSON: size, writes, memory, and the first read.

    python -m performance.table [--messages 1000000] [--keys 10000] [--width 100] [--folder FOLDER]

Messages are JSON objects of about `--width` bytes, half of which are random digits. One process appends them
to a SQLite store in batches of 500 and compacts them by the way; another one merges the files; further ones
open the log and read one record of one key. Each is a process of its own, whose memory is its highest
resident set.
"""

import argparse
import json
import resource
import secrets
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any

import anyio

from leaderless.core.headlog.index import COMPACTED, index_of
from leaderless.core.shape import Runs
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise, require_log
from leaderless.store.files import files_of
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.urls import open_store
from leaderless.store.values import Value
from leaderless.table.manifest import read_manifest
from leaderless.table.registers import TableRegisters
from performance import show_table
from performance.processes import Figures, figures_of

BATCH, IN_FLIGHT = 500, 16
PATIENCE_S, TIMEOUT_S = 60.0, 10.0
MB = 1_000_000


def url_of(folder: Path, runs: str) -> str:
    """The store of a log."""
    return f"sqlite:///{folder / runs}.db"


def value_of(random: Random, number: int, width: int) -> Value:
    """A message of about `width` bytes."""
    digits = f"{random.getrandbits(2 * width):x}"[: width // 2]
    rest = max(0, width - len(digits) - 46)
    return {"order": number, "state": "delivered", "digits": digits, "text": "x" * rest}


async def opened(url: str) -> tuple[Store, Log]:
    """A log that merges nothing by itself."""
    store = open_store(url, StoreOptions())
    runs = await require_log(store)
    return store, Log(store, bounds_of(store, PATIENCE_S, TIMEOUT_S, runs))


async def fill(url: str, runs: Runs, messages: int, keys: int, width: int) -> Figures:
    """Append all messages."""
    await initialise(open_store(url, StoreOptions()), runs)
    store, log = await opened(url)
    random, numbers = Random(1), iter(range(0, messages, BATCH))
    since = time.perf_counter()

    async def appender() -> None:
        writer = secrets.token_hex(4)
        for seq, first in enumerate(numbers):
            records = [
                (f"key {random.randrange(keys):06}", value_of(random, number, width))
                for number in range(first, min(messages, first + BATCH))
            ]
            await log.append_named(writer, seq, records)

    async with running(log.host):
        async with anyio.create_task_group() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.start_soon(appender)
        seconds = time.perf_counter() - since
        await _compacted(log)
    await store.aclose()
    return {"seconds": seconds}


async def _compacted(log: Log) -> None:
    """Wait until the log's own worker has compacted all that fills a run."""
    while True:
        status = await log.status()
        if status.segments - status.compacted < 16:
            return
        await anyio.sleep(5.0)


async def merge(url: str, *_: Any) -> Figures:
    """Merge all files."""
    store = open_store(url, StoreOptions())
    bounds = bounds_of(store, PATIENCE_S, TIMEOUT_S, await require_log(store))
    log = Log(store, bounds)
    since = time.perf_counter()
    async with running(log.host):
        done = await log.maintenance.merge()
    assert done is not None
    figures = {"merges": done.merges, "read": done.read, "written": done.written}
    return {**figures, "seconds": time.perf_counter() - since}


async def read(url: str, _runs: Runs, _messages: int, keys: int, *_rest: int) -> Figures:
    """Open the log and read one record: an old one, of a key in the middle."""
    since = time.perf_counter()
    _, log = await opened(url)
    async with running(log.host):
        key = f"key {keys // 2:06}"
        [record, *_] = await log.read(key, 3, 1)
        assert record.offset == 3
        first_s = time.perf_counter() - since
        since = time.perf_counter()
        for number in range(1, 21):
            [record] = await log.read(f"key {number * keys // 21:06}", 2, 1)
        next_s = (time.perf_counter() - since) / 20
    registers = log.registers
    found = registers.shelf.bytes_read if isinstance(registers, TableRegisters) else 0
    return {"first_s": first_s, "next_ms": next_s * 1000, "bytes": found}


STEPS: dict[str, Callable[..., Coroutine[Any, Any, Figures]]] = {
    "fill": fill, "merge": merge, "read": read,
}  # fmt: skip


def in_a_process(step: str, *arguments: object) -> Figures:
    """The figures of a step, and the memory of its process in MB."""
    return figures_of("performance.table", "--step", step, *arguments)


def run_step(step: str, url: str, runs: str, *numbers: str) -> None:
    """Do a step in this process, and print its figures."""
    figures = anyio.run(STEPS[step], url, runs, *map(int, numbers))
    used = resource.getrusage(resource.RUSAGE_SELF)
    memory, cpu_s = used.ru_maxrss * 1024 / MB, used.ru_utime + used.ru_stime
    sys.stdout.write(json.dumps(figures | {"memory": memory, "cpu_s": cpu_s}))


def sizes(url: str) -> Figures:
    """Bytes of the runs in a log of either kind."""
    store = open_store(url, StoreOptions())
    files = files_of(store)
    assert files is not None
    in_files = {
        folder: sum(each.size or 0 for each in files.list_files(folder))
        for folder in ("run", "merged")
    }
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    statement = "SELECT total(length(value)) FROM objects WHERE key LIKE ?"
    registers = {
        folder: connection.execute(statement, (f"{folder}/%",)).fetchone()[0]
        for folder in ("run", "page")
    }
    connection.close()
    manifest, _ = anyio.run(read_manifest, store)
    largest = max((file.bytes for file in manifest.files), default=0)
    found = anyio.run(store.read, COMPACTED)
    batches = index_of(json.loads(found.value)).end if found else 0
    return {
        "messages": BATCH * batches, "rows": sum(file.rows for file in manifest.files),
        "json": registers["run"], "pages": registers["page"], "run": in_files["run"],
        "merged": sum(file.bytes for file in manifest.files), "largest": largest,
        "files": len(manifest.files),
    }  # fmt: skip


def rows(folder: Path, numbers: tuple[int, int, int]) -> Iterator[tuple[str, str, str]]:
    """What was measured, of JSON and of Parquet."""
    found: dict[str, dict[str, Figures]] = {}
    for runs in ("json", "parquet"):
        url = url_of(folder, runs)
        filled = in_a_process("fill", url, runs, *numbers)
        before = sizes(url)
        merged = in_a_process("merge", url, runs, *numbers) if runs == "parquet" else {}
        found[runs] = {
            "fill": filled, "before": before, "merge": merged, "after": sizes(url),
            "read": in_a_process("read", url, runs, *numbers),
        }  # fmt: skip
    one, other = found["json"], found["parquet"]
    messages = numbers[0]
    figures: dict[str, Callable[[dict[str, Figures]], float]] = {
        "appends a second": lambda each: messages / each["fill"]["seconds"],
        "appended and compacted a CPU second": lambda each: messages / each["fill"]["cpu_s"],
        "memory of the appending process, MB": lambda each: each["fill"]["memory"],
        "bytes of a message in runs": lambda each: (
            (each["before"]["json"] or each["before"]["run"]) / each["before"]["messages"]
        ),
        "first read of an old record, s": lambda each: each["read"]["first_s"],
        "CPU of a process that opens the log and makes 21 reads, s": lambda each: each["read"][
            "cpu_s"
        ],
        "the next ones, ms": lambda each: each["read"]["next_ms"],
        "memory of the reading process, MB": lambda each: each["read"]["memory"],
    }
    for name, figure in figures.items():
        yield name, _shown(figure(one)), _shown(figure(other))
    share = other["merge"]["written"] / other["after"]["merged"] if other["after"]["merged"] else 0
    for name, value in {
        "bytes of a message in merged files": other["after"]["merged"]
        / max(1, other["after"]["rows"]),
        "merged files": other["after"]["files"],
        "the largest, MB": other["after"]["largest"] / MB,
        "times that merges wrote a byte of merged files": share,
        "merged a CPU second, MB of files": other["merge"]["read"] / MB / other["merge"]["cpu_s"],
        "memory of the merging process, MB": other["merge"]["memory"],
        "read from files by 21 reads, MB": other["read"]["bytes"] / MB,
    }.items():
        yield name, "", _shown(value)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--messages", type=int, default=1_000_000)
    add("--keys", type=int, default=10_000)
    add("--width", type=int, default=100)
    add("--folder", type=Path, help="for the stores, which stay; default a temporary one")
    add("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        run_step(*options.step)
        return
    numbers = options.messages, options.keys, options.width
    with tempfile.TemporaryDirectory() as folder:
        found = rows(options.folder or Path(folder), numbers)
        show_table(("", "JSON", "Parquet"), list(found))


if __name__ == "__main__":
    main()
