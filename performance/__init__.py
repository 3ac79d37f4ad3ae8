"""Programs that measure, and write what they found into the documents: `python -m performance.NAME`.

| program | what it measures |
|---|---|
| `ablation` | which numbers of the policy pay: each is changed, on the virtual clock and with real processes |
| `arrival` | what arrival in turn costs, beside arrival when due |
| `bench_capacity` | operations a second that the bench carries |
| `campaign` | many simulated seeds of each strategy under each fault |
| `checker` | the kafka checker, in one process and as a Spark job; readers of histories |
| `exploration` | all schedules of small clusters, setting by setting |
| `ingest` | Spark's ingest of runs |
| `least_node` | nothing: it is the program that `node_throughput` puts beside the real node |
| `long_log` | the first polls of a node that starts on a long log, behind a store with a limited bandwidth |
| `node_throughput` | CPU of one node a message, beside the least node and the limit of its interpreter |
| `opening` | seconds, requests and memory that open a long log of files, and that merge its files |
| `price` | the page of docs/performance on the price of a message: the curve of messages against latency |
| `protocol_cost` | the page of docs/performance on what the protocol alone costs, beside `cas`, with the aims |
| `recovery` | the time from the end of a fault until latency is as before |
| `restart` | the time from a node's start to its first answer |
| `s3_queue` | our log beside S3-Queue as published and repaired: rates, requests, dollars |
| `scaling`, `strategies` | the pages of docs/performance, from the runs of a sweep |
| `stores` | appends a second of the library on each store |
| `stores_under_faults` | the page of docs/performance on runs on real stores, from the runs of a sweep |
| `simulation` | virtual seconds a second |
| `table_in_spark` | a log read and written by Spark, beside plain Parquet, DuckDB and a source without work |
| `virtual` | the configurations of `make performance` on the virtual clock |
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]


def spread(values: Iterable[float], form: str) -> str:
    """Write the median of some figures, and in brackets the least and the greatest."""
    found = sorted(values)
    return f"{statistics.median(found):{form}} ({found[0]:{form}} to {found[-1]:{form}})"


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table, in which all columns but the first are aligned right."""
    ruler = ["---", *["---:"] * (len(titles) - 1)]
    for cells in chain((titles, ruler), rows):
        yield f"| {' | '.join(cells)} |"


def show_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Print a Markdown table, each row as soon as it is measured, and return its lines."""
    lines = []
    for line in table_lines(titles, rows):
        click.echo(line)
        lines.append(line)
    return lines
