"""Measure time and memory of the kafka checker on a synthetic history of a correct log.

    python performance/checker.py --operations 50000 --keys 10000 --seed 1

It writes the history to a file as the bench does, then measures in a fresh process everything from that
file to the verdict. The history ends with final polls: each worker reads every key from the beginning.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runs.history import Op, edn_line, read_history
from runs.keyword import Keyword
from workloads.kafka.checker import check

_STEP_NS = 100_000
_ASSIGNED_KEYS = 32
_FINAL_POLLS = 8  # a worker's last polls but one return a share of everything, the rest nothing


class SyntheticRun:
    """A correct log, and workers that send to it, poll from it and are assigned to keys at random."""

    def __init__(self, keys: int, concurrency: int, seed: int) -> None:
        self.random = Random(seed)
        self.keys = [str(number) for number in range(keys)]
        self.concurrency = concurrency
        self.log: dict[str, list[int]] = {}
        self.positions: list[dict[str, int]] = [{} for _ in range(2 * concurrency)]  # by process
        self.count = 0

    def history(self, operations: int) -> Iterator[Op]:
        """`operations` invocations with their completions, and the final polls after them."""
        for number in range(operations):
            worker = number % self.concurrency
            if number % 64 < self.concurrency and number // 64 % 8 == 0:
                yield from self.assign(worker)
            elif self.random.random() < 0.5:
                yield from self.send(worker)
            else:
                yield from self.poll(worker)
        yield from self.final_polls()

    def assign(self, worker: int) -> Iterator[Op]:
        names = self.random.sample(self.keys, min(_ASSIGNED_KEYS, len(self.keys)))
        self.positions[worker] = {key: self.positions[worker].get(key, 0) for key in names}
        return self._pair(worker, "assign", names, names)

    def send(self, worker: int) -> Iterator[Op]:
        key = self.random.choice(self.keys)
        log = self.log.setdefault(key, [])
        message = len(log) + 1
        log.append(message)
        asked = [[Keyword("send"), key, message]]
        return self._pair(worker, "send", asked, [[Keyword("send"), key, [len(log) - 1, message]]])

    def poll(self, worker: int, limit: int | None = None) -> Iterator[Op]:
        behind = (
            (key, position)
            for key, position in self.positions[worker].items()
            if position < len(self.log.get(key, ()))
        )
        answer = {}
        for key, position in list(behind)[:limit]:
            log = self.log[key]
            answer[key] = [[offset, log[offset]] for offset in range(position, len(log))]
            self.positions[worker][key] = len(log)
        return self._pair(worker, "poll", [[Keyword("poll")]], [[Keyword("poll"), answer]])

    def final_polls(self) -> Iterator[Op]:
        """Each worker's client is replaced by a fresh one, which reads everything."""
        fresh = range(self.concurrency, 2 * self.concurrency)
        for worker in fresh:
            self.positions[worker] = dict.fromkeys(self.log, 0)
            yield from self._pair(worker, "assign", list(self.log), list(self.log), rewind=True)
        for _ in range(_FINAL_POLLS):
            for worker in fresh:
                yield from self.poll(worker, limit=len(self.log) // (_FINAL_POLLS - 1) + 1)

    def _pair(
        self, worker: int, f: str, asked: object, answer: object, rewind: bool = False
    ) -> Iterator[Op]:
        extra = {"seek-to-beginning?": True} if rewind else {}
        for kind, value in (("invoke", asked), ("ok", answer)):
            time_ns = self.count * _STEP_NS
            yield Op(self.count, time_ns, kind, worker, Keyword(f), value, extra)  # type: ignore[arg-type]
            self.count += 1


def measure(path: Path) -> None:
    """Judge the history at `path` and print what it took."""
    start, start_cpu = time.perf_counter(), time.process_time()
    history = read_history(path)
    read_s = time.perf_counter() - start
    result = check(history, {})
    total_s = time.perf_counter() - start
    cpu_s = time.process_time() - start_cpu
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "lines": len(history),
        "file_mib": round(path.stat().st_size / 2**20, 1),
        "read_s": round(read_s, 2),
        "total_s": round(total_s, 2),
        "cpu_s": round(cpu_s, 2),
        "peak_mib": round(peak_mib),
        "valid": result["valid?"],
    }
    click.echo(json.dumps(figures))


@click.command()
@click.option("--operations", default=50_000, show_default=True)
@click.option("--keys", default=10_000, show_default=True)
@click.option("--concurrency", default=10, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--history", type=click.Path(path_type=Path), help="Measure this file instead.")
def main(operations: int, keys: int, concurrency: int, seed: int, history: Path | None) -> None:
    """Measure the checker on a synthetic history."""
    if history:
        measure(history)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.edn"
        with path.open("w") as file:
            run = SyntheticRun(keys, concurrency, seed)
            file.writelines(f"{edn_line(op)}\n" for op in run.history(operations))
        subprocess.run([sys.executable, __file__, "--history", str(path)], check=True)


if __name__ == "__main__":
    main()
