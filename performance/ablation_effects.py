"""Effects of a change: on each row, beside what chance does. Results of runs are kept in a file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from itertools import chain, product
from math import exp, inf, log
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from performance import ROOT
from performance.ablated import Changes
from performance.ablation_rows import Run
from performance.virtual import Figures

NOTICED = log(1.05)  # what moves no figure by 5 % does not pay
AGAINS = (1, 2, -1)  # repetitions that show what chance does
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

    `worse`: the logarithm of a ratio; above 0 the change is worse.
    """

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
        self._kept.ensure(
            chain.from_iterable(self._with(*run, changes) for run in runs), self._pool
        )

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

    def most(self, sign: int) -> list[Effect]:
        """The largest effect on each row, the largest first. `sign`: 1 for bad ones, -1 for good ones."""
        of_row: dict[str, Effect] = {}
        for each in sorted(self.effects, key=_size):
            if sign * each.worse > 0:
                of_row[each.row] = each
        return sorted(of_row.values(), key=_size, reverse=True)


def _size(effect: Effect) -> float:
    return abs(effect.worse)


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
