"""Measure time and memory of the kafka checker, as a Spark job and in one process.

    python -m performance.checker --sizes 1000000,2000000,5000000,10000000,20000000 --docs docs/spark-checker.md
    python -m performance.checker --readers

For each size it makes a history with every type of anomaly planted in it (kept in --folder, and made once),
judges it on `local[2]` in a fresh process, and tells whether all that was planted was found. Sizes up to
--in-process go through the checker in one process too. Prints a Markdown table. --readers measures what reads a
history instead: edn-format, our reader, our history reader on top.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from json import loads
from pathlib import Path
from typing import Annotated, Any

import click
import edn_format

from performance.harness import (
    MB,
    ROOT,
    APage,
    Figures,
    alone,
    highest_mb,
    in_turn,
    program,
    replace_section,
    show_table,
    spread,
)
from runs import edn
from runs.history import read_history
from runs.keyword import Keyword
from workloads.kafka.checker import check

HISTORY = ROOT / "tests" / "fixtures" / "maelstrom-stores" / "valid-3-nodes" / "history.edn"
PLANTED_OF_A_TYPE, OPERATIONS_A_KEY, PROCESSES = 2, 200, 20
MIB = 1 << 20
_COLUMNS = (
    *("operations", "seconds", "operations/s", "JVM peak, MiB"),
    *("planted found", "one process, seconds", "one process, MiB"),
)


def make(operations: int, folder: Path, suffix: str) -> Path:
    """The synthetic history of this size; made unless it is there."""
    from analysis.synthesise.planting import ANOMALIES

    path = folder / f"{operations}{suffix}"
    if not (path if suffix else path / "_SUCCESS").exists():
        click.echo(f"Making {path} ...", err=True)
        anomalies = ",".join(f"{name}={PLANTED_OF_A_TYPE}" for name in ANOMALIES)
        size = ["--operations", operations, "--keys", max(64, operations // OPERATIONS_A_KEY)]
        words = [*size, "--processes", PROCESSES, "--anomalies", anomalies, "--output", path]
        command = [sys.executable, "-m", "analysis", "synthesise", *map(str, words)]
        subprocess.run([*command, "--master", "local[2]"], check=True, cwd=ROOT)
    return path


def by_spark(path: str) -> Figures:
    """Judge the Parquet in `path`; figures with the memory of Java."""
    from analysis.checker import from_operations, judge
    from analysis.spark import session

    planted = loads(Path(f"{path}.planted.json").read_text())
    seen: set[tuple[str, str]] = set()

    def inspect(cases: Any) -> None:
        rows = cases.select("type", "key").distinct()
        wanted = rows.filter(rows.key.isin([f'"{each["key"]}' for each in planted]))
        seen.update((row.type, row.key[1:]) for row in wanted.collect())

    with session("local[2]") as spark:
        began = time.perf_counter()
        source = from_operations(spark.read.parquet(path), ["synthetic"])
        operations = source.operations.count()
        result = judge(spark, source, inspect)["synthetic"]
        seconds = time.perf_counter() - began
        java_mb = highest_mb("java")
    seen |= set(_in_result(result))
    found = sum((each["type"], each["key"]) in seen for each in planted)
    figures = {"operations": operations, "seconds": seconds, "java_mb": java_mb}
    return {**figures, "found": found, "planted": len(planted)}


def _in_result(result: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The types that are of no key's share, with the keys that they name."""
    for key in result.get("unseen", {"unseen": ()})["unseen"]:
        yield "unseen", key
    for anomaly in ("G1c", "G1c-realtime"):
        for case in result.get(anomaly, {"errs": ()})["errs"]:
            yield from ((anomaly, step["key"]) for step in case["steps"] if "key" in step)


def in_one(path: str) -> Figures:
    """Read and judge the history in `path` in this process."""
    began = time.perf_counter()
    valid = check(read_history(Path(path)), {})[Keyword("valid?")]
    return {"seconds": time.perf_counter() - began, "valid": valid is True}


def judged(size: int, most_in_one: int, folder: Path) -> list[str]:
    """Judge a history of this size, up to `most_in_one` operations also in one process."""
    one = ["", ""]
    if size <= most_in_one:
        got = alone(in_one, make(size, folder, ".jsonl"))
        one = [f"{got['seconds']:.0f}", f"{got['peak_mb'] * MB / MIB:,.0f}"]
    got = alone(by_spark, make(size, folder, ""))
    rate = got["operations"] / got["seconds"]
    java = f"{got['java_mb'] * MB / MIB:,.0f}"
    found = f"{got['found']} of {got['planted']}"
    return [f"{got['operations']:,}", f"{got['seconds']:.0f}", f"{rate:,.0f}", java, found, *one]


def rates_of_readers() -> Iterator[str]:
    """How many lines of a real history each reader reads in a second of processor time."""
    lines = HISTORY.read_text().splitlines()
    reads: dict[str, Callable[[], object]] = {
        "edn-format": lambda: [edn_format.loads(line) for line in lines],
        "runs.edn": lambda: [edn.loads(line) for line in lines],
        "runs.history": lambda: read_history(HISTORY),
    }

    def rate(read: Callable[[], object]) -> float:
        began = time.process_time()
        read()
        return len(lines) / (time.process_time() - began)

    for name, rates in in_turn(
        {name: partial(rate, read) for name, read in reads.items()}, 5
    ).items():
        yield f"{name:14} {spread(rates, '8.0f')}"


@program
def main(
    *,
    sizes: str = "50000,200000,500000,1000000,2000000,5000000,10000000,20000000",
    in_process: int = 500_000,
    folder: Annotated[Path, click.Path(path_type=Path)] = ROOT / "results" / "synthetic",
    docs: APage = None,
    readers: bool = False,
) -> None:
    if readers:
        click.echo("\n".join(rates_of_readers()))
        return
    counts = map(int, sizes.split(","))
    lines = show_table(_COLUMNS, (judged(count, in_process, folder) for count in counts))
    if docs:
        replace_section(docs, "measured", lines, end="end")


if __name__ == "__main__":
    main()
