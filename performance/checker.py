"""Measure time and memory of the kafka checker, as a Spark job and in one process.

    python -m performance.checker --sizes 1000000,2000000,5000000,10000000,20000000 --docs docs/spark-checker.md
    python -m performance.checker --readers

For each size it makes a history with every type of anomaly planted in it (kept in --folder, and made once),
judges it on `local[2]` in a fresh process, whose processes' memory it samples, and tells whether all that was
planted was found. Sizes up to --in-process go through the checker in one process too. Prints a Markdown
table. --readers measures what reads a history instead: edn-format, our reader, our history reader on top.
"""

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import edn_format
import psutil

from performance import ROOT, show_table, spread
from runs import edn
from runs.history import read_history
from runs.keyword import Keyword
from workloads.kafka.checker import check

HISTORY = ROOT / "tests" / "fixtures" / "maelstrom-stores" / "valid-3-nodes" / "history.edn"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
PLANTED_OF_A_TYPE = 2
OPERATIONS_A_KEY = 200
PROCESSES = 20
_SAMPLE_S = 0.5
_COLUMNS = (
    *("operations", "seconds", "operations/s", "JVM peak, MiB", "Python peak, MiB"),
    *("planted found", "one process, seconds", "one process, MiB"),
)


class Memory(threading.Thread):
    """The largest sum of resident memory of the Java, and of the Python, processes below `root`."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.peak_mib = {"java": 0.0, "python": 0.0}

    def run(self) -> None:
        while psutil.pid_exists(self.root):
            now = {"java": 0.0, "python": 0.0}
            for kind, mib in _sizes(self.root):
                now[kind] += mib
            for kind, mib in now.items():
                self.peak_mib[kind] = max(self.peak_mib[kind], mib)
            time.sleep(_SAMPLE_S)


def _sizes(root: int) -> Iterator[tuple[str, float]]:
    try:
        processes = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    except psutil.Error:
        return
    for process in processes:
        try:
            # Workers are forked: what they share with their parent counts once.
            info = (
                process.memory_full_info() if "python" in process.name() else process.memory_info()
            )
            size = getattr(info, "pss", info.rss)
            yield ("java" if "java" in process.name() else "python"), size / 2**20
        except psutil.Error:
            continue


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


def judge_by_spark(path: Path) -> None:
    """Judge the Parquet in `path` and print figures as JSON: what a fresh process is started for."""
    from analysis.checker import from_operations, judge
    from analysis.spark import session

    planted = json.loads(path.with_name(f"{path.name}.planted.json").read_text())
    seen: set[tuple[str, str]] = set()

    def inspect(cases: Any) -> None:
        rows = cases.select("type", "key").distinct()
        wanted = rows.filter(rows.key.isin([f'"{each["key"]}' for each in planted]))
        seen.update((row.type, row.key[1:]) for row in wanted.collect())

    with session("local[2]") as spark:
        began = time.perf_counter()
        source = from_operations(spark.read.parquet(str(path)), ["synthetic"])
        operations = source.operations.count()
        result = judge(spark, source, inspect)["synthetic"]
        seconds = time.perf_counter() - began
    seen |= set(_in_result(result))
    found = sum((each["type"], each["key"]) in seen for each in planted)
    figures = {"operations": operations, "seconds": round(seconds, 1)}
    click.echo(json.dumps(figures | {"found": found, "planted": len(planted)}))


def _in_result(result: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The types that are of no key's share, with the keys that they name."""
    for key in result.get("unseen", {"unseen": ()})["unseen"]:
        yield "unseen", key
    for anomaly in ("G1c", "G1c-realtime"):
        for case in result.get(anomaly, {"errs": ()})["errs"]:
            yield from ((anomaly, step["key"]) for step in case["steps"] if "key" in step)


def judge_alone(path: Path) -> None:
    """Judge the history in `path` in this process and print figures as JSON."""
    began = time.perf_counter()
    history = read_history(path)
    read_s = time.perf_counter() - began
    valid = check(history, {})[Keyword("valid?")]
    total_s = time.perf_counter() - began
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"lines": len(history), "read_s": round(read_s, 2), "total_s": round(total_s, 2)}
    click.echo(json.dumps(figures | {"peak_mib": round(peak_mib), "valid": valid}))


JUDGES = {"spark": judge_by_spark, "alone": judge_alone}


def measured(judge: str, path: Path) -> dict[str, Any]:
    """The figures of judging `path` in a fresh process, with the memory of its processes."""
    command = [sys.executable, "-m", "performance.checker", "--judge", judge, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    memory = Memory(process.pid)
    memory.start()
    output, _ = process.communicate()
    if process.returncode:
        raise click.ClickException(f"judging {path} failed")
    return {**json.loads(output.splitlines()[-1]), **memory.peak_mib}


def row(spark: Mapping[str, Any], alone: Mapping[str, Any] | None) -> list[str]:
    rate = spark["operations"] / spark["seconds"]
    return [
        f"{spark['operations']:,}",
        f"{spark['seconds']:.0f}",
        f"{rate:,.0f}",
        f"{spark['java']:,.0f}",
        f"{spark['python']:,.0f}",
        f"{spark['found']} of {spark['planted']}",
        f"{alone['total_s']:.0f}" if alone else "",
        f"{alone['peak_mib']:,.0f}" if alone else "",
    ]


def judged(size: int, most_alone: int, folder: Path) -> list[str]:
    """Judge a history of this size, up to `most_alone` operations also in one process."""
    alone = measured("alone", make(size, folder, ".jsonl")) if size <= most_alone else None
    return row(measured("spark", make(size, folder, "")), alone)


def readers() -> Iterator[str]:
    """How many lines of a real history each reader reads in a second of processor time."""
    lines = HISTORY.read_text().splitlines()
    reads: dict[str, Callable[[], object]] = {
        "edn-format": lambda: [edn_format.loads(line) for line in lines],
        "runs.edn": lambda: [edn.loads(line) for line in lines],
        "runs.history": lambda: read_history(HISTORY),
    }
    for name, read in reads.items():
        rates = []
        for _ in range(5):
            began = time.process_time()
            read()
            rates.append(len(lines) / (time.process_time() - began))
        yield f"{name:14} {spread(rates, '8.0f')}"


@click.command(help=__doc__)
@click.option("--sizes", default="50000,200000,500000,1000000,2000000,5000000,10000000,20000000")
@click.option("--in-process", "most_alone", default=500_000, show_default=True)
@click.option("--folder", default=ROOT / "results" / "synthetic", type=click.Path(path_type=Path))
@click.option("--docs", type=click.Path(path_type=Path), help="The page to put the table into.")
@click.option("--readers", "only_readers", is_flag=True, help="Measure the readers of histories.")
@click.option("--judge", nargs=2, type=(click.Choice([*JUDGES]), Path), help="Judge one history.")
def main(
    *,
    sizes: str,
    most_alone: int,
    folder: Path,
    docs: Path | None,
    only_readers: bool,
    judge: tuple[str, Path] | None,
) -> None:
    if judge:
        JUDGES[judge[0]](judge[1])
    elif only_readers:
        click.echo("\n".join(readers()))
    else:
        counts = map(int, sizes.split(","))
        lines = show_table(_COLUMNS, (judged(count, most_alone, folder) for count in counts))
        if docs:
            before, _, rest = docs.read_text().partition(BEGIN)
            after = rest.partition(END)[2]
            docs.write_text("\n".join([before + BEGIN, *lines, END + after]))


if __name__ == "__main__":
    main()
