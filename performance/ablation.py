"""Find out which numbers of the policy pay: docs/performance/ablation.md.

    python -m performance.ablation [--fields rest_every,hedge_deviations] [--docs docs/performance]
    python -m performance.ablation --real 6 [--busy]
    python -m performance.ablation --candidate 'rest_every=1e9,rest_every_contended=1e9'

Each number of `performance.ablated` gets other values, one at a time; the neutral one comes first. All rows of
`performance.ablation_rows` are run with it and without it, with the same seeds. Where the outcome is in doubt,
more seeds are run. The virtual clock shows what the protocol costs, and flatters: a node costs nothing there.
So `--real` runs real processes, one run after the other, with `--busy` beside a core that another process keeps
busy. Results are kept, and a command that is given again goes on, until the code of the node changes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from itertools import chain, product
from math import exp, inf, log
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import click

from bench.flags import names_of
from performance import ROOT, table_lines
from performance import sweep_records as of_sweep
from performance.ablated import ALTERNATIVES, Changes, default_of, missing, told
from performance.ablation_rows import ONLY, ROWS, Run
from performance.virtual import Figures

NOTICED = log(1.05)  # what moves no figure by 5 % does not pay
AGAINS = (1, 2, -1)  # repetitions that show what chance does
KEPT = ROOT / "results" / "ablation" / "runs.jsonl"
# The figures by which a row is judged: their names, and 1 where less is better, -1 where more is.
JUDGED = {
    "messages": ("messages/op", 1),
    "p50": ("send p50", 1),
    "p99": ("send p99", 1),
    "poll_p99": ("poll p99", 1),
    "per_second": ("ops/s", -1),
    "ok": ("ok", -1),
}
LEAST = 0.1  # a latency below 0.1 ms, and a share of 0, are no base of a ratio


class Effect(NamedTuple):
    """What a change does to a figure of a row. `worse`: the logarithm of a ratio; above 0 the change is worse."""

    row: str
    figure: str
    worse: float
    before: float = 0.0
    after: float = 0.0

    def told(self) -> str:
        """In words."""
        if self.worse == inf:
            return f"{self.row}: {self.figure}"
        name, sign = JUDGED[self.figure]
        share = exp(sign * self.worse) - 1
        return f"{self.row}: {name} {self.before:.3g} → {self.after:.3g} ({share:+.0%})"


class Kept:
    """Results of runs in a file, which a run is asked before it is made."""

    def __init__(self, file: Path, *, real: bool) -> None:
        self._file = file
        self._code = _digest()
        self._found: dict[str, Figures | str] = {}
        self._real = real
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            for line in file.read_text().splitlines():
                kept = json.loads(line)
                if kept["code"] == self._code:
                    self._found[kept["key"]] = _result(kept["result"])

    def ensure(self, runs: Iterable[Run], pool: ProcessPoolExecutor) -> None:
        """Make those runs of which there is no result; real ones one after the other."""
        wanted = {run.key: run for run in runs}
        absent = [run for key, run in wanted.items() if key not in self._found]
        made = map(Run.measure, absent) if self._real else pool.map(Run.measure, absent)
        with self._file.open("a") as out:
            for run, result in zip(absent, made, strict=True):
                self._found[run.key] = result
                kept = {"code": self._code, "key": run.key, "row": run.row, "seed": run.seed}
                kept |= {"changes": dict(run.changes), "again": run.again, "result": result}
                out.write(json.dumps(kept) + "\n")
                out.flush()

    def __getitem__(self, run: Run) -> Figures | str:
        return self._found[run.key]


def _result(kept: str | Sequence[float]) -> Figures | str:
    return kept if isinstance(kept, str) else Figures(*kept)


def _digest() -> str:
    """Of the code of the node."""
    digest = blake2b(digest_size=8)
    for file in sorted((ROOT / "leaderless").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Ablation:
    """Compares changes with the defaults. `seeds`: so many runs of each; `more`, where the outcome is in doubt."""

    def __init__(
        self, kept: Kept, pool: ProcessPoolExecutor, base: Run, seeds: int, more: int
    ) -> None:
        self._kept = kept
        self._pool = pool
        self._base = base
        self._seeds = range(1, 1 + seeds)
        self._more = range(1, 1 + max(seeds, more))

    def effects(self, rows: Iterable[str], changes: Changes) -> Iterator[Effect]:
        """Of a change on each figure of each row that it moves."""
        rows = list(rows)
        self._run(rows, changes, self._seeds)
        doubted = [row for row in rows if self._is_doubted(row, changes)]
        self._run(doubted, changes, self._more)
        for row in rows:
            seeds = self._more if row in doubted else self._seeds
            found = list(self._compared(row, changes, seeds))
            noise = self._noise(row, seeds)
            yield from (
                each
                for each in found
                if each.worse == inf or abs(each.worse) > NOTICED + noise.get(each.figure, 0.0)
            )

    def default(self, row: str) -> tuple[list[Figures], dict[str, float]]:
        """The runs of a row as it is, and by how much each figure differs by chance."""
        self._run([row], {}, self._more)
        figures = [each for each in self._figures(row, {}, self._more) if isinstance(each, Figures)]
        return figures, self._noise(row, self._more)

    def _is_doubted(self, row: str, changes: Changes) -> bool:
        if len(self._seeds) == len(self._more):
            return False
        noise = self._noise(row, self._seeds)
        return any(
            0.5 < abs(each.worse) / (NOTICED + noise[each.figure]) < 2
            for each in self._compared(row, changes, self._seeds)
            if each.worse < inf
        )

    def _run(self, rows: Iterable[str], changes: Changes, seeds: Iterable[int]) -> None:
        runs = product(rows, seeds)
        self._kept.ensure(chain.from_iterable(self._with(*run, changes) for run in runs), self._pool)

    def _with(self, row: str, seed: int, changes: Changes) -> Iterator[Run]:
        same = self._base._replace(row=row, seed=seed)
        yield from (same._replace(again=again) for again in (0, *AGAINS))
        yield same._replace(changes=changes)

    def _figures(
        self, row: str, changes: Changes, seeds: Iterable[int], again: int = 0
    ) -> list[Figures | str]:
        same = self._base._replace(row=row, changes=changes, again=again)
        return [self._kept[same._replace(seed=seed)] for seed in seeds]

    def _noise(self, row: str, seeds: range) -> dict[str, float]:
        """Of each figure the largest effect of a repetition that changes nothing."""
        noise = dict.fromkeys(JUDGED, 0.0)
        for again in AGAINS:
            for each in self._compared(row, {}, seeds, again):
                if each.worse < inf:
                    noise[each.figure] = max(noise[each.figure], abs(each.worse))
        return noise

    def _compared(
        self, row: str, changes: Changes, seeds: range, again: int = 0
    ) -> Iterator[Effect]:
        before = self._figures(row, {}, seeds)
        after = self._figures(row, changes, seeds, again)
        broken = [each for each in after if isinstance(each, str)]
        pairs = [
            (one, other)
            for one, other in zip(before, after, strict=True)
            if isinstance(one, Figures) and isinstance(other, Figures)
        ]
        if broken:
            yield Effect(row, f"{broken[0]} in {len(broken)} of {len(after)} runs", inf)
        for figure, (_, sign) in JUDGED.items() if pairs else ():
            values = [(getattr(one, figure), getattr(other, figure)) for one, other in pairs]
            ratio = fmean(log(max(LEAST, b) / max(LEAST, a)) for a, b in values)
            yield Effect(row, figure, sign * ratio, *map(median, zip(*values, strict=True)))


class Found(NamedTuple):
    """What one alternative of a number does."""

    changes: Changes
    effects: list[Effect]

    @property
    def worst(self) -> Effect | None:
        """The figure that the default improves most."""
        return max((each for each in self.effects if each.worse > 0), key=_size, default=None)

    @property
    def best(self) -> Effect | None:
        """The figure that the default worsens most."""
        return max((each for each in self.effects if each.worse < 0), key=_size, default=None)


def _size(effect: Effect) -> float:
    return abs(effect.worse)


def verdict(alternatives: Sequence[Found]) -> str:
    """What the default is worth: `pays`, `costs`, both, or nothing."""
    pays = any(each.worst for each in alternatives)
    costs = any(each.best for each in alternatives)
    return {
        (True, True): "pays and costs",
        (True, False): "pays",
        (False, True): "costs",
        (False, False): "moves nothing",
    }[pays, costs]


FIELD_TITLES = ("number", "default", "other value", "worst of it", "best of it", "rows", "verdict")


def table_of(name: str, alternatives: Sequence[Found]) -> Iterator[list[str]]:
    """The rows of a number."""
    says, shown = verdict(alternatives), f"`{name}`"
    default = told({name: default_of(name)}).rpartition(" ")[2] if name in ALTERNATIVES else ""
    for found in alternatives:
        effects = (found.worst, found.best)
        cells = [each.told() if each else "–" for each in effects]
        worse = len({each.row for each in found.effects if each.worse > 0})
        better = len({each.row for each in found.effects if each.worse < 0})
        counts = f"{worse} worse, {better} better"
        yield [shown, default, told(found.changes), *cells, counts, says]
        shown = default = says = ""


def _candidate(_context: click.Context, _option: object, texts: tuple[str, ...]) -> list[Changes]:
    try:
        return [
            {name: float(value) for name, value in (pair.split("=") for pair in text.split(","))}
            for text in texts
        ]
    except ValueError:
        raise click.BadParameter("give NAME=VALUE,NAME=VALUE") from None


@click.command(help=__doc__)
@click.option("--fields", type=names_of(tuple(ALTERNATIVES)), default="all", help="Which numbers.")
@click.option("--rows", type=names_of(tuple(ROWS)), default="all", help="Which rows.")
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    callback=_candidate,
    help="Values that are changed together, measured first; names as in --fields.",
)
@click.option("--seeds", default=2, show_default=True, help="Runs of each row, from seed 1 on.")
@click.option("--more", default=6, show_default=True, help="Runs where the outcome is in doubt.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one a core.")
@click.option("--real", "real_s", default=0.0, help="Seconds of a run with real processes.")
@click.option("--busy", is_flag=True, help="Keep a core busy beside real processes.")
@click.option(
    "--kept", type=click.Path(path_type=Path), default=KEPT, help="The file of results.", show_default=True
)
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(
    *,
    fields: tuple[str, ...],
    rows: tuple[str, ...],
    candidates: list[Changes],
    seeds: int,
    more: int,
    jobs: int | None,
    real_s: float,
    busy: bool,
    kept: Path,
    docs: Path | None,
) -> None:
    if strangers := missing(ALTERNATIVES):
        raise click.ClickException(f"performance/ablated.py has to be told of {strangers}")
    if busy and not real_s:
        raise click.UsageError("--busy: a busy core does nothing to the virtual clock. Add --real.")
    chosen = [row for row in rows if ROWS[row].is_real or not real_s]
    lines: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        base = Run("", {}, 0, real_s=real_s, busy=busy)
        ablation = Ablation(Kept(kept, real=real_s > 0), pool, base, seeds, more)

        def tables() -> Iterator[list[str]]:
            for number, changes in enumerate(candidates, 1):
                general = [row for row in chosen if row not in ONLY]
                found = Found(changes, list(ablation.effects(general, changes)))
                yield from table_of(f"candidate {number}", [found])
            for name in fields:
                concerned = [row for row in chosen if name in ONLY.get(row, {name})]
                alternatives = [
                    Found(changes, list(ablation.effects(concerned, changes)))
                    for changes in ALTERNATIVES[name]
                ]
                yield from table_of(name, alternatives)

        for line in table_lines(FIELD_TITLES, tables()):
            click.echo(line)
            lines.append(line)
        shown = list(table_lines(ROW_TITLES, (_row(row, *ablation.default(row)) for row in chosen)))
        click.echo("\n".join(["", *shown]))
    if docs:
        text = "\n\n".join([_about(real_s, busy, seeds, more), *map("\n".join, (lines, shown))])
        of_sweep.write_page(docs / "ablation.md", "Which numbers of the policy pay", text)


ROW_TITLES = ("row", "what", *(name for name, _ in JUDGED.values()))


def _row(row: str, runs: Sequence[Figures], noise: dict[str, float]) -> list[str]:
    part, variant, _ = ROWS[row]
    cells = [
        f"{median(getattr(each, figure) for each in runs):.3g} ± {exp(noise[figure]) - 1:.0%}"
        for figure in JUDGED
    ]
    return [row, f"{part.title}; {variant.rpartition(' ')[2]}; {part.time_limit_s:g} s", *cells]


def _about(real_s: float, busy: bool, seeds: int, more: int) -> str:
    where = f" --real {real_s:g}{' --busy' if busy else ''}" if real_s else ""
    return f"""\
    .venv/bin/python -m performance.ablation{where} --seeds {seeds} --more {more} --docs docs/performance

Each number gets other values, one at a time; the first is neutral, as if its mechanism were not there. *Worst of it*
is the figure that this value worsens most: so much the default buys. *Best of it* is the figure that it improves
most: so much the default costs. *Rows* counts the rows with a figure that gets worse or better. A figure counts when
it moves by 5 % more than chance does. What chance does stands below, behind ±: the largest move in repetitions
without a change. Ratios are geometric means over seeds, figures medians."""


if __name__ == "__main__":
    main()
