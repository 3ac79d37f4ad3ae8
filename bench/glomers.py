"""The challenges of Gossip Glomers, a seventh, and the grade of a node by its runs. Only `read` reads a file.

A challenge is a sweep whose cells are checks: those that it asks, and those beyond it. A check is made once for
each seed. The grade is a sentence. What lies beyond a challenge does not change whether a node passes.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from bench.sweep import plan
from bench.sweep.axes import CellAxes
from bench.sweep.plan import Cell, Sweep
from runs.facts import grouped
from runs.figures import number_of
from runs.sweeps import CRASHED, INVALID, UNKNOWN, VALID, Row

FILE = Path(__file__).with_suffix(".toml")
AS_ASKED = "as asked"  # the name of the challenge's own command, which says nothing of when
_BOUNDS = ("below", "at-least")
_USUAL = "usual"  # the table of what holds for every check beyond a challenge
_SHOWN = ("server_messages_per_op", "stable_median_ms", "stable_most_ms", "send_p50_ms")
_ALL = 0.9995  # a share that is shown as 100.0%
_LOAD, _FOREIGN = "invoked_ops_per_s", "foreign_messages"
_MADE = 0.9  # of the rate that was asked for: less is told
_BUSY = 1.0  # load per core: beyond it programs wait for each other
_GONE, _UNREAD = "an acknowledged message is gone", "an acknowledged message is never read"
# What anomalies say to a learner, the worst first. A workload stands for the only one that it knows.
_PHRASES = {
    "lost-write": _GONE,
    "inconsistent-offsets": "one offset has two messages",
    "unseen": _UNREAD,
    "unreplicated": "a node never shows an acknowledged message",
    "duplicate": "one message has two offsets",
    "lost-commit": "a node forgets a committed offset",
    "int-poll-skip": "a reader misses messages",
    "poll-skip": "a reader misses messages",
    "broadcast": "a node lacks an acknowledged message",
    "echo": "an echo is wrong or never comes",
    "nonlinearizable": "no order of the operations explains an answer",
    "g-counter": "a node shows a wrong sum at the end",
    "unique-ids": "an ID comes twice",
}


@dataclass(frozen=True)
class Check:
    """A cell of the challenge's sweep.

    `below` bounds figures of each run that is valid otherwise. A run with a figure under its bound in
    `at_least`, such as that of the load that was made, is no grade; nor is one that was late on a busy machine.
    """

    cell: Cell
    asked: bool
    below: Mapping[str, float]
    at_least: Mapping[str, float]

    @property
    def name(self) -> str:
        """When it is: `after a kill`."""
        return self.cell.title

    def judged(self, row: Row) -> Row:
        """The row of a run; its verdict says whether the bounds hold, too."""
        if row.verdict != VALID:
            return row
        if self.missed(row) or any(row.figures.get(figure) is None for figure in self.below):
            return replace(row, verdict=UNKNOWN)
        wrong = self._exceeded(row) or row.figures.get(_FOREIGN)
        return replace(row, verdict=INVALID) if wrong else row

    def missed(self, row: Row) -> str:
        """Why a run is no grade: a load that was not made, or only latencies of a busy machine; else empty."""
        low = [
            f"only {_least(figure, value)}, and a grade takes {bound:g}"
            for figure, bound in self.at_least.items()
            if (value := row.figures.get(figure) or 0.0) < bound
        ]
        exceeded = self._exceeded(row)
        is_load = _busy(row) and all(name.endswith("_ms") for name in exceeded)
        return " and ".join([*low, *(exceeded.values() if is_load else ())])

    def _exceeded(self, row: Row) -> dict[str, str]:
        """What is said of each figure that is not below its bound."""
        return {
            figure: f"{_told(figure, value)}, not below {bound:g}{_busy(row) * figure.endswith('_ms')}"
            for figure, bound in self.below.items()
            if (value := row.figures.get(figure)) is not None and value >= bound
        }

    def fault(self, row: Row) -> str:
        """What is wrong with an invalid run."""
        named = next((_PHRASES[name] for name in _PHRASES if name in row.anomalies), None)
        if named or row.anomalies:
            return named or f"it shows {', '.join(row.anomalies)}"
        if not row.figures.get("valid", 1):
            return _PHRASES.get(self.cell.options.workload, "the history is wrong")
        if exceeded := self._exceeded(row):
            return " and ".join(exceeded.values())
        if row.figures.get(_FOREIGN):
            return "a node writes another name into `src`"
        if self.cell.options.availability is None:
            return "a kind of operation never succeeds"
        return f"only {row.figures.get('ok_fraction_of_all') or 0:.1%} of the operations succeed"


@dataclass(frozen=True)
class Simulated:
    """What seeds of a check showed on a virtual clock, where no figure has a bound.

    `kind` is what is wrong in the smallest run: an anomaly, a check of the results, or crashed; or unknown. The
    run has so many `operations`, and `repeat` makes it again.
    """

    verdict: str
    right: int
    seeds: int
    wrong: int = 0
    kind: str = UNKNOWN
    operations: int = 0
    repeat: str = ""

    def line(self) -> str:
        """On how many seeds it is wrong, and how small a run shows it."""
        if not self.wrong:
            return f"right on {self.right} of {self.seeds} simulated seeds"
        return (
            f"wrong on {self.wrong} of {self.seeds} seeds; the smallest run that shows it has"
            f" {self.operations} operation{'s' * (self.operations != 1)}"
        )


@dataclass(frozen=True)
class Challenge:
    """A challenge by its number, as a sweep and as the checks that are its cells."""

    number: str
    sweep: Sweep
    checks: Sequence[Check]

    def some(self, *, asked: bool) -> Sweep:
        """The part of the sweep that the challenge asks, or that lies beyond it."""
        return replace(self.sweep, cells=[each.cell for each in self.checks if each.asked is asked])


@dataclass(frozen=True)
class Graded:
    """A check and the runs that were made of it, as `Check.judged` has them; `seeds` were to be made."""

    check: Check
    rows: Sequence[Row]
    seeds: int
    simulated: Simulated | None = None

    def count(self, verdict: str) -> int:
        """How many of its runs ended so."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def passed(self) -> bool:
        """Whether every run was made, and is right."""
        return self.count(VALID) == self.seeds and (
            self.simulated is None or self.simulated.verdict == VALID
        )

    @property
    def simulated_wrong(self) -> Simulated | None:
        """What was simulated, if it is wrong on a seed."""
        return self.simulated if self.simulated and self.simulated.wrong else None

    @property
    def verdict(self) -> str:
        """The worst verdict that counts; unknown if a run was not made."""
        found = [row.verdict for row in self.rows]
        found += [self.simulated.verdict] if self.simulated else []
        worst = next((each for each in _WORST if each in found), UNKNOWN)
        return UNKNOWN if worst == VALID and not self.passed else worst

    @property
    def shown(self) -> Row | None:
        """The first of the runs that tell most of what is wrong; None if none does."""
        worst = min(self.rows, key=lambda row: _WORST.index(row.verdict), default=None)
        return None if worst is None or worst.verdict == VALID else worst

    def line(self) -> str:
        """How it went, in a line: a mark, when, on how many seeds it is right, and its figures."""
        parts = [self.simulated.line()] if self.simulated else []
        if not self.simulated_wrong:
            parts += [f"right on {self.count(VALID)} of {self.seeds} seeds"]
        parts += [self.trouble()] if not self.passed else []
        return f"{_MARKS[self.verdict]} {self.check.name}: {'; '.join((*parts, *self._figures()))}"

    def trouble(self) -> str:
        """What was wrong in the run that is shown."""
        if self.simulated and (self.simulated_wrong or self.count(VALID) == self.seeds):
            usual = _PHRASES.get(self.check.cell.options.workload)
            named = (_FIXED | _PHRASES).get(self.simulated.kind, usual)
            return named or f"it shows {self.simulated.kind}"
        if self.shown is None:
            return "not every run was made"
        low = self.check.missed(self.shown) if self.shown.verdict == UNKNOWN else ""
        return low or _FIXED.get(self.shown.verdict) or self.check.fault(self.shown)

    def sentence(self) -> str:
        """What a check beyond the challenge found, to stand behind `passes`."""
        told = self.trouble()
        if self.verdict == UNKNOWN and (self.shown or self.simulated):
            return f"unknown {self.check.name}: {told}"
        if told in (_GONE, _UNREAD) and "kill" in self.check.cell.options.nemesis:
            told = f"not durable: {told}"
        some = f"right on {self.count(VALID)} of {self.seeds} seeds" if self.count(VALID) else ""
        some = self.simulated_wrong.line() if self.simulated_wrong else some
        return f"{told} {self.check.name}{f' ({some})' if some else ''}"

    def _figures(self) -> Iterator[str]:
        """The worst of each figure over the seeds, and its bound."""
        shares = [row.figures.get("ok_fraction_of_all") for row in self.rows]
        share = min((each for each in shares if each is not None), default=1.0)
        if share < _ALL:
            yield f"{share:.1%} of the operations succeed"
        rate = self.check.cell.options.rate
        made = min(
            (each for row in self.rows if (each := row.figures.get(_LOAD)) is not None),
            default=rate,
        )
        if made < _MADE * rate and _LOAD not in self.check.at_least:
            yield f"only {_least(_LOAD, made)} of {rate:g}"
        for figure in _SHOWN:
            found = [each for row in self.rows if (each := row.figures.get(figure)) is not None]
            bound = self.check.below.get(figure, inf)
            if found and max(found) < bound:  # else it is the trouble
                yield f"{_told(figure, max(found))}{f' (below {bound:g})' if bound < inf else ''}"


# What is wrong that is no anomaly of a history.
_FIXED = {
    CRASHED: "a run could not be finished",
    UNKNOWN: "nothing wrong was found, but not everything can be judged",
    "availability": "too few operations succeed",
    "names": "a node writes another name into `src`",
    "stats": "a kind of operation never succeeds",
}
_WORST = (INVALID, CRASHED, UNKNOWN, VALID)
_MARKS = {VALID: "✔", INVALID: "✘", CRASHED: "✘", UNKNOWN: "?"}


def numbers() -> dict[str, str]:
    """The challenges that there are, each with its title and its workload."""
    known = {name: table for name, table in _tables().items() if name != _USUAL}
    return {n: f"{n} {each['about']} {each['base']['workload']}" for n, each in known.items()}


def read(number: str, seeds: int, changes: CellAxes) -> Challenge:
    """A challenge with so many runs of each check; `changes` hold in every cell, such as the node."""
    tables = _tables()
    table = tables[number]
    found = [
        *((each, True) for each in table["asked"]),
        *(({**tables[_USUAL], **each}, False) for each in table["beyond"]),
    ]
    cells = [{name: each[name] for name in each if name not in _BOUNDS} for each, _ in found]
    page = table.get("page", f"https://fly.io/dist-sys/{number}")
    about = f"{number}: {table['about']}, {page}"
    content = {"about": about, "repetitions": seeds, "base": table["base"], "matrix": cells}
    sweep = replace(plan.parse(content, FILE, changes), name=f"glomers-{number}")
    named = [replace(cell, title=str(cell.axes["name"])) for cell in sweep.cells]
    checks = [
        Check(cell, asked, *(each.get(name, {}) for name in _BOUNDS))
        for cell, (each, asked) in zip(named, found, strict=True)
    ]
    return Challenge(number, replace(sweep, cells=named), checks)


def _tables() -> dict[str, plan.Table]:
    return tomllib.loads(FILE.read_text())


def grade(
    challenge: Challenge, rows: Iterable[Row], simulated: Mapping[str, Simulated]
) -> list[Graded]:
    """The runs by check, each check judged, and by the key of its cell what was simulated."""
    by_cell = grouped((row.cell_key[0], row) for row in rows)
    return [
        Graded(
            check,
            [check.judged(row) for row in by_cell.get(check.cell.key, [])],
            challenge.sweep.repetitions,
            simulated.get(check.cell.key),
        )
        for check in challenge.checks
    ]


def verdict(number: str, graded: Sequence[Graded]) -> str:
    """The grade: one sentence, in which what is asked comes first."""
    asked = [each for each in graded if each.check.asked]
    beyond = [each for each in graded if not each.check.asked and each.rows]
    right = [each.check.name for each in beyond if each.passed]
    parts = [
        _passes(asked),
        *([f"right {', '.join(right)}"] if right else []),
        *(each.sentence() for each in beyond if not each.passed),
    ]
    return f"{number} {'; '.join(parts)}."


def _passes(asked: Sequence[Graded]) -> str:
    """Whether the challenge is passed: by the worst check that it asks."""
    if all(each.passed for each in asked):
        return "passes"
    worst = min(asked, key=lambda each: (_WORST.index(each.verdict), -each.count(each.verdict)))
    when = "" if worst.check.name == AS_ASKED else f" {worst.check.name}"
    trouble = f"{worst.trouble()}{when}"
    if worst.verdict != INVALID:
        return f"{'is not passed' if worst.verdict == CRASHED else 'is unknown'}: {trouble}"
    if worst.simulated_wrong:
        return f"fails: {trouble} ({worst.simulated_wrong.line()})"
    if not worst.count(VALID):
        return f"fails: {trouble}"
    return f"fails: right on {worst.count(VALID)} of {worst.seeds} seeds only, else {trouble}"


def _busy(row: Row) -> str:
    """What the machine did besides, if it was busy; empty if it was not, or nobody knows."""
    load = row.figures.get("load_per_core") or 0.0
    return f" (the machine's load was {load:.1f} per core)" if load > _BUSY else ""


def _least(figure: str, value: float) -> str:
    return f"{value:.0f} operations a second were made" if figure == _LOAD else _told(figure, value)


def _told(figure: str, value: float) -> str:
    number = number_of(figure)
    return f"{number.title} {value:.{number.decimals}f} {number.unit}".rstrip()
