"""Measure `analysis ingest` on many small runs and on one large one.

    python -m performance.ingest [--runs 200] [--operations 200000] [--repetitions 3]

Each figure is the whole command's work after the start of Spark: finding, reading, joining, writing and
committing. The runs are written first, to a temporary folder, with a fixed seed. `--run-operations`: of a small
run.
"""

import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from performance.harness import program, show_table, spread
from runs.history import Op, write_jsonl

MESSAGES_PER_OPERATION = 5
PROCESSES = 10
OPTIONS = {
    "workload": "kafka", "nodes": ["n0", "n1", "n2"], "concurrency": PROCESSES, "bin": "run.sh",
    "time_limit_s": 20,
}  # fmt: skip
RESULTS = "{:valid? true, :workload {:valid? true, :bad-error-types (), :error-types ()}}"


def write_run(folder: Path, operations: int, seed: int) -> None:
    """A run whose history and journal have the shape of a kafka run's."""
    folder.mkdir(parents=True)
    random = Random(seed)
    with (folder / "history.jsonl").open("wb") as history:
        write_jsonl(_history(operations, random), history)
    with gzip.open(folder / "net-journal.jsonl.gz", "wt", compresslevel=1) as journal:
        journal.writelines(json.dumps(row) + "\n" for row in _journal(operations, random))
    (folder / "test.json").write_text(json.dumps(OPTIONS))
    (folder / "results.edn").write_text(RESULTS)


def _history(operations: int, random: Random) -> Iterator[Op]:
    for number in range(operations):
        process, at_ns = number % PROCESSES, number * 1_000_000
        key, offset = str(random.randrange(20)), number // 20
        f, asked = "send", ["send", key, number]
        answer: list[Any] = ["send", key, [offset, number]]
        if number % 2 == 0:
            f, asked = "poll", ["poll"]
            answer = ["poll", {key: [[offset, number], [offset + 1, number]]}]
        latency_ns = random.randrange(100_000, 9_000_000)
        yield Op(2 * number, at_ns, "invoke", process, f, [asked])
        yield Op(2 * number + 1, at_ns + latency_ns, "ok", process, f, [answer])


def _journal(operations: int, random: Random) -> Iterator[dict[str, Any]]:
    for number in range(operations * MESSAGES_PER_OPERATION):
        request = number % 2 == 0
        src, dest = ("n1", "lin-kv") if request else ("lin-kv", "n1")
        body = {"type": "cas" if request else "cas_ok", "key": "head", "to": "x" * 200}
        reference = {"msg_id": number} if request else {"in_reply_to": number - 1}
        message = {"id": number, "src": src, "dest": dest, "body": body | reference}
        at, latency_ns = number * 200_000, random.randrange(100_000, 900_000)
        yield {"id": 2 * number, "time": at, "type": "send", "message": message}
        yield {"id": 2 * number + 1, "time": at + latency_ns, "type": "recv", "message": message}


def measure(master: str, source: Path, repetitions: int) -> list[float]:
    """Seconds of each ingest of the runs below `source` into a fresh lake, after one that warms up."""
    from analysis.finding import find_runs
    from analysis.ingest import ingest
    from analysis.lake import Lake
    from analysis.spark import session

    seconds = []
    with session(master) as spark:
        for number in range(repetitions + 1):
            lake = source.parent / f"lake-{number}"
            begin = time.perf_counter()
            for _ in ingest(spark, Lake(lake), find_runs(source)):
                pass
            seconds.append(time.perf_counter() - begin)
            shutil.rmtree(lake)
    return seconds[1:]


def cells(name: str, master: str, repetitions: int, count: int, size: int) -> list[str]:
    """The figures of ingesting `count` runs of `size` operations, as a row of the table."""
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        for number in range(count):
            write_run(Path(folder) / "runs" / f"run-{number:05}", size, seed=number)
        seconds = measure(master, Path(folder) / "runs", repetitions)
    rate = count * size / median(seconds)
    rates = (f"{rate:,.0f}", f"{rate * MESSAGES_PER_OPERATION:,.0f}", f"{rate / size:.2f}")
    return [name, spread(seconds, ".1f"), *rates]


@program
def main(
    *,
    runs: int = 200,
    run_operations: int = 1_000,
    operations: int = 200_000,
    repetitions: int = 3,
    master: str = "local[*]",
) -> None:
    cases = {
        f"{runs} runs of {run_operations} operations": (runs, run_operations),
        f"1 run of {operations} operations": (1, operations),
    }
    titles = ("", "seconds", "operations/s", "messages/s", "runs/s")
    show_table(titles, (cells(name, master, repetitions, *case) for name, case in cases.items()))


if __name__ == "__main__":
    main()
