"""Appends a second on real stores: `python -m performance.stores [--seconds S]`, as a table in Markdown.

One process appends values of 100 bytes with 1, 16 and 64 tasks, each of which waits for its answer. It uses
SQLite in a temporary folder, moto's server (a Python process that answers about 200 requests a second, so its
figures are a floor), etcd, and memory for comparison; what is not installed is left out. It says first how busy
the machine is: on one that is not idle the figures are lower.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import anyio
import click

from bench.stores.names import ETCD, MOTO, SQLITE, missing
from leaderless.api.bench import Load, bench
from performance.harness import open_at, program, show_table, store_of

TITLES = ("store", "tasks", "appends a second", "requests an append", "p50 ms", "p99 ms")
STORES = {"memory": "", "SQLite": SQLITE, "S3 (moto)": MOTO, "etcd": ETCD}
TASKS = (1, 16, 64)


def rows(seconds: float) -> Iterator[list[str]]:
    """All measurements, as they are made; those of `leaderless bench`."""
    for name, server in STORES.items():
        if missing(server):
            continue
        with store_of(server) if server else nullcontext("memory:performance") as url:
            for tasks in TASKS:
                got, _ = anyio.run(partial(bench, open_at(url), Load(tasks, seconds)))
                yield [
                    name,
                    str(tasks),
                    f"{got.appends_a_second:.0f}",
                    f"{got.requests_an_append:.2f}",
                    f"{got.p50_ms:.1f}",
                    f"{got.p99_ms:.1f}",
                ]


@program(__doc__)
@click.option("--seconds", default=5.0)
def main(*, seconds: float) -> None:
    load = f"{os.getloadavg()[0]:.1f} processes wanted to run"
    click.echo(f"{os.cpu_count()} cores; {load} in the minute before.\n")
    show_table(TITLES, rows(seconds))


if __name__ == "__main__":
    main()
