"""Effects of a change: on each row, beside what chance does. Results of runs are kept in a file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from itertools import product
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from typing import NamedTuple

from performance import ROOT
from performance.ablated import Changes
from performance.ablation_rows import Run
from performance.virtual import Figures

NOTICED = log(1.05)  # what moves no figure by 5 % does not pay
ERRORS = 3  # so many standard errors are still chance
PAIRS_MIN = 4
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
    """What a change does to a figure of a row.

    `worse`: the logarithm of a ratio; above 0 the change is worse. `chance`: so much chance does, at most.
    """

    row: str
    figure: str
    worse: float
    chance: float = 0.0
    before: float = 0.0
    after: float = 0.0

    @property
    def size(self) -> float:
        """Above 1 it is an effect: it is noticed, and no chance."""
        return abs(self.worse) / (NOTICED + self.chance)

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
                kept |= {"changes": dict(run.changes), "result": result}
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
    """Compares changes with the defaults. `base`: a run without a row, of the kind that is to be made.

    `seeds`: so many runs of each row; `more`: so many where the outcome is in doubt.
    """

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
        self._run(rows, {}, self._more)
        self._run(rows, changes, self._seeds)
        doubted = [row for row in rows if self._is_doubted(row, changes)]
        self._run(doubted, changes, self._more)
        for row in rows:
            seeds = self._more if row in doubted else self._seeds
            yield from (each for each in self._compared(row, changes, seeds) if each.size > 1)

    def default(self, row: str) -> "Baseline":
        """The runs of a row as it is. Raises `ValueError` if one of them breaks."""
        self._run([row], {}, self._more)
        results = self._results(row, {}, self._more)
        if broken := [each for each in results if isinstance(each, str)]:
            raise ValueError(f"{row}, as it is: {broken[0]}")
        return Baseline([each for each in results if isinstance(each, Figures)])

    def _is_doubted(self, row: str, changes: Changes) -> bool:
        return len(self._seeds) < len(self._more) and any(
            0.5 < each.size < 2 for each in self._compared(row, changes, self._seeds)
        )

    def _run(self, rows: Iterable[str], changes: Changes, seeds: Iterable[int]) -> None:
        runs = (
            self._base._replace(row=row, seed=seed, changes=changes)
            for row, seed in product(rows, seeds)
        )
        self._kept.ensure(runs, self._pool)

    def _results(self, row: str, changes: Changes, seeds: Iterable[int]) -> list[Figures | str]:
        same = self._base._replace(row=row, changes=changes)
        return [self._kept[same._replace(seed=seed)] for seed in seeds]

    def _compared(self, row: str, changes: Changes, seeds: Sequence[int]) -> Iterator[Effect]:
        baseline, after = self.default(row), self._results(row, changes, seeds)
        if broken := [each for each in after if isinstance(each, str)]:
            yield Effect(row, f"{broken[0]} in {len(broken)} of {len(after)} runs", inf)
            return
        runs = [each for each in after if isinstance(each, Figures)]
        for figure, (_, sign) in JUDGED.items():
            moved, chance = baseline.difference(figure, runs)
            values = baseline.median(figure), median(getattr(each, figure) for each in runs)
            yield Effect(row, figure, sign * moved, chance, *values)


class Baseline:
    """The runs of a row as it is: one of each seed, from the first seed on."""

    def __init__(self, runs: Sequence[Figures]) -> None:
        self._runs = runs

    def median(self, figure: str) -> float:
        """Of all runs."""
        value: float = median(getattr(each, figure) for each in self._runs)
        return value

    def difference(self, figure: str, runs: Sequence[Figures]) -> tuple[float, float]:
        """How much the logarithms of these runs are greater, and how much of that may be chance.

        Runs of the same seed are pairs: they have the same operations and faults. A few pairs do not tell their
        own spread. Their chance follows from the spread of all runs as they are.
        """
        before, after = _logs(self._runs, figure), _logs(runs, figure)
        pairs = [b - a for a, b in zip(before, after, strict=False)]
        if len(pairs) >= PAIRS_MIN:
            return fmean(pairs), ERRORS * stdev(pairs) / sqrt(len(pairs))
        return fmean(after) - fmean(before), self.chance(figure, len(runs))

    def chance(self, figure: str, runs: int) -> float:
        """By how much the mean of other runs, so many, may differ from this mean by chance alone."""
        logs = _logs(self._runs, figure)
        deviation = stdev(logs) if len(logs) > 1 else 0.0
        return ERRORS * deviation * sqrt(1 / runs + 1 / len(logs))


def _logs(runs: Iterable[Figures], figure: str) -> list[float]:
    return [log(max(LEAST, getattr(each, figure))) for each in runs]


class Found(NamedTuple):
    """What one alternative of a number does."""

    changes: Changes
    effects: list[Effect]

    def most(self, sign: int) -> list[Effect]:
        """The largest effect on each row, the largest first. `sign`: 1 for bad ones, -1 for good ones."""
        of_row: dict[str, Effect] = {}
        for each in sorted(self.effects, key=lambda each: abs(each.worse)):
            if sign * each.worse > 0:
                of_row[each.row] = each
        return sorted(of_row.values(), key=lambda each: -abs(each.worse))


def verdict(alternatives: Sequence[Found]) -> str:
    """What the default is worth: `pays`, `costs`, both, or nothing."""
    pays = any(each.most(1) for each in alternatives)
    costs = any(each.most(-1) for each in alternatives)
    return {
        (True, True): "pays and costs",
        (True, False): "pays",
        (False, True): "costs",
        (False, False): "moves nothing",
    }[pays, costs]
