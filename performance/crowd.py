"""What a crowd of processes appends to one log, each for itself and handing over, in turn.

    python -m performance.crowd [--cells 20ms:16,sqlite:16,moto:16,etcd:16] [--seconds 8] [--runs 3] [--kill 2]
    python -m performance.crowd --page FILE [--docs docs/performance]     # of what it printed into FILE

A cell is a store and a number of processes. The store is one that the bench starts, or a SQLite file whose
requests take as many milliseconds longer as the cell says. Each process appends one record of 100 bytes after
the other to one key. At the end the log is read: a run with a record that is lost, twice, at another offset
than was acknowledged, or before one that was acknowledged before it was sent, ends the command with status 1.
With `--kill` the process that committed last is killed each so many seconds, and another one starts.

Figures are medians of the runs. `first to last` compares the appends of the processes; CPU is that of them all.
"""

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from itertools import count
from multiprocessing.context import ForkProcess
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import NamedTuple

import anyio
import click

from leaderless import open_log
from leaderless.api.bench import KEY, READ_LIMIT, Load, append_with, opened
from leaderless.errors import LogError
from leaderless.hosting.place import ensure_log
from leaderless.store.chain import read_head
from leaderless.store.clouds import Cloud, Distant
from leaderless.store.wrapped import Counted
from performance import age
from performance.harness import (
    A_PATH,
    command_lines,
    open_at,
    program,
    show,
    show_table,
    store_of,
    write_page,
)

Point = tuple[float, tuple[float, float, float]]  # processes; middle, least and greatest
PADDING = "x" * 70
# So long processes have to open the log before the first append, and each of them so much more.
START_S, START_EACH_S = 2.0, 0.1
TITLES = "store:processes", "appends/s", "requests", "p50 ms", "p99 ms", "first to last", "CPU ms"
TITLE = "A crowd of processes on one log"
PICTURE = "performance-crowd.svg"
PANELS = "appends a second", "requests an append"  # of the first figures
WAYS = "each for itself", "handing over"
MEASURED = ("leaderless/peers", "leaderless/core/headlog")
ABOUT = """\
Each process appends one record after the other, after `gc.freeze()`: each for itself/handing over. At 20 ms
requests to a SQLite file take so much longer. *Requests* and *CPU* are of an append, *first to last* compares
processes. Each log was read: no record is lost, twice or out of order."""


class Done(NamedTuple):
    """An append that was acknowledged: by whom, its number and offset, and from when to when it took."""

    process: str
    number: int
    offset: int
    began: float
    ended: float


async def append(
    path: Path, url: str, away_s: float, talks: bool, span: tuple[float, float]
) -> None:
    """Append from the begin to the end of `span`, and write each append, and what all took, into a file."""
    made, numbers, (begin, end) = open_at(url), count(), span
    store = Counted(Distant(made, Cloud(away_s, away_s)) if away_s else made)
    await ensure_log(store)
    async with aclosing(store), opened(store, Load(), "machine" if talks else None) as log:
        with path.open("w", buffering=1) as said:

            async def send(_: str) -> None:
                began, number = time.monotonic(), next(numbers)
                offset = await log.append(KEY, [f"{os.getpid()}", number, PADDING])
                said.write(f"{os.getpid()} {number} {offset} {began} {time.monotonic()} .\n")

            await log.read(KEY, 0, 1)
            gc.freeze()  # what was imported lives as long as the process; see `leaderless.runtime.main`
            await anyio.sleep(max(0.0, begin - time.monotonic()))
            used, load = time.process_time(), Load(seconds=end - time.monotonic())
            part = await append_with([send], load, [store], (LogError,))
            used = time.process_time() - used
            said.write(f"took {part.requests.total()} {used} {part.failed} .\n")


def run(cell: str, talks: bool, seconds: float, kill_s: float) -> tuple[list[float], str]:
    """The figures of one run, in the order of `TITLES`, and what is wrong with its log; "" if nothing is."""
    store, away_s, in_all = parts_of(cell)
    with store_of(store) as url, TemporaryDirectory() as folder:
        begin = time.monotonic() + START_S + START_EACH_S * in_all
        processes: list[ForkProcess] = []

        def start() -> None:
            path = Path(folder) / str(len(processes))
            words = append, path, url, away_s, talks, (begin, begin + seconds)
            # What is imported once is there in each process.
            processes.append(ForkProcess(target=anyio.run, args=words))
            processes[-1].start()

        for _ in range(in_all):
            start()
        while kill_s and time.monotonic() + kill_s < begin + seconds:
            time.sleep(max(0.0, begin - time.monotonic()) + kill_s)
            by = anyio.run(_by, url).partition("-")[0]  # who committed last, if it is there
            for each in [each for each in processes if str(each.pid) == by and each.is_alive()]:
                each.kill()
                start()
        for each in processes:
            each.join()
        # With its end: of one that was killed there may be half a line.
        said = [line.split() for path in Path(folder).iterdir() for line in path.open()]
        took = [line[1:-1] for line in said if len(line) == 5 and line[0] == "took"]
        requests, used, failed = (sum(map(float, column)) for column in zip(*took, strict=True))
        done = [
            Done(process, int(number), int(offset), float(began), float(ended))
            for process, number, offset, began, ended, _ in (
                each for each in said if len(each) == 6
            )
        ]
        wrong = anyio.run(wrong_with, url, done)
        if killed := len(processes) - in_all:
            click.echo(f"{killed} killed, {len(done)} acknowledged, {failed:.0f} failed", err=True)
    if len(done) < 2:
        raise click.ClickException(f"{cell}: {len(done)} appends in {seconds:g} s")
    per_process = Counter(each.process for each in done).values()
    cuts = quantiles([each.ended - each.began for each in done], n=100)
    per_append = requests / len(done), 1000 * cuts[49], 1000 * cuts[98]
    fairness = max(per_process) / min(per_process)
    return [len(done) / seconds, *per_append, fairness, 1000 * used / len(done)], wrong


async def _by(url: str) -> str:
    async with aclosing(open_at(url)) as store:
        return (await read_head(store)).heading.by


async def wrong_with(url: str, done: list[Done]) -> str:
    """Whether the log holds what was acknowledged: once, where it was said, and in the order of time."""
    async with open_log(url, create=False) as log:
        names: list[tuple[str, int]] = []
        while records := await log.read(KEY, len(names), READ_LIMIT):
            names += [(record.value[0], record.value[1]) for record in records]
    twice = len(names) - len({*names})
    lost = sum(
        each.offset >= len(names) or names[each.offset] != (each.process, each.number)
        for each in done
    )
    late, earliest = 0, float("inf")  # that an append behind it had ended
    for each in sorted(done, key=lambda each: -each.offset):
        late += earliest < each.began
        earliest = min(earliest, each.ended)
    found = {"twice": twice, "not where they were acknowledged": lost, "out of order": late}
    return ", ".join(f"{count} {what}" for what, count in found.items() if count)


def rows(
    cells: list[str], seconds: float, runs: int, kill_s: float, bad: list[str]
) -> Iterator[list[str]]:
    """A row for each cell with the figures of both ways, and into `bad` what is wrong."""
    for cell in cells:
        found: dict[bool, list[list[float]]] = {False: [], True: []}
        for _ in range(runs):
            for talks, of_way in found.items():
                figures, wrong = run(cell, talks, seconds, kill_s)
                of_way.append(figures)
                if wrong:
                    bad.append(f"{cell}: {wrong}")
        ways = [map(median, zip(*of_way, strict=True)) for of_way in found.values()]
        texts = ([f"{float(f'{figure:.3g}'):g}" for figure in way] for way in ways)
        yield [cell, *map("/".join, zip(*texts, strict=True))]


def parts_of(cell: str) -> tuple[str, float, int]:
    """The store that the bench starts, how many seconds it is away, and the number of processes."""
    store, _, processes = cell.partition(":")
    is_away = store.endswith("ms")
    away_s = float(store.removesuffix("ms")) / 1000 if is_away else 0.0
    return "sqlite" if is_away else store, away_s, int(processes)


def page(said: str, docs: Path) -> None:
    """Write the page of what a run printed, and its picture."""
    from runs.plots.groups import growth  # no measurement needs matplotlib

    measured, *made, table = said.strip().split("\n\n")
    panels: dict[str, dict[str, list[Point]]] = {name: {} for name in PANELS}
    for row in table.splitlines()[2:]:
        cell, *figures = row.strip("| ").split(" | ")
        store, _, processes = cell.partition(":")
        for lines, both in zip(panels.values(), figures, strict=False):
            for way, figure in zip(WAYS, both.split("/"), strict=True):
                points = lines.setdefault(f"{store}, {way}", [])
                points.append((float(processes), (float(figure),) * 3))
    ticks = sorted({x for points in panels[PANELS[0]].values() for x, _ in points})
    drawn = growth(TITLE, panels, "processes", ticks)
    (docs.parent / "images" / PICTURE).write_text(drawn.svg_document(), encoding="utf-8")
    parts = *made, ABOUT, f"![Appends, requests](../images/{PICTURE})", table
    write_page(docs / "crowd.md", TITLE, measured, "\n\n".join(parts))


@program(__doc__)
@click.option("--cells", default="20ms:4,20ms:16,20ms:64,60ms:16,60ms:64,sqlite:16,sqlite:64")
@click.option("--seconds", default=8.0)
@click.option("--runs", default=3)
@click.option("--kill", "kill_s", default=0.0, help="Seconds from one kill to the next; 0: none.")
@click.option("--page", "printed", type=A_PATH, help="Make the page of a run from what it printed.")
@click.option("--docs", type=A_PATH, default="docs/performance")
def main(
    *,
    cells: str,
    seconds: float,
    runs: int,
    kill_s: float,
    printed: Path | None,
    docs: Path,
) -> None:
    if printed:
        page(printed.read_text(encoding="utf-8"), docs)
        return
    bad: list[str] = []
    command = (
        f".venv/bin/python -m performance.crowd --cells {cells} --seconds {seconds:g} --runs {runs}"
    )
    load = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start."
    show([age.line(MEASURED), "", f"{command_lines(command)}\n\n{load}", ""])
    show_table(TITLES, rows(cells.split(","), seconds, runs, kill_s, bad))
    if bad:
        raise click.ClickException("; ".join(bad))


if __name__ == "__main__":
    main()
