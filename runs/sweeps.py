"""What a sweep leaves: `index.jsonl`, one JSON object a finished run, and what its cells come to.

    {"sweep", "cell": {axis: value}, "repetition", "engine", "run", "verdict", "exit_status",
     "seconds", "started", "expect", "figures", "anomalies", "workload", "program", "node"}

`run` is the run's folder seen from the sweep's, or null when none was left. Of several rows of the same
run the last counts. A line is written at once or, at worst, torn at the end of the file. Lines that are
torn, or that are no rows, are passed over.
"""

import errno
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from runs.facts import grouped
from runs.files import SWEEP_INDEX, own

VALID, INVALID, UNKNOWN, CRASHED = "valid", "invalid", "unknown", "crashed"
VERDICTS = (VALID, INVALID, UNKNOWN, CRASHED)
DEPTH = 4  # a run's folder is at most so deep in its sweep's: cell/store/kafka/time
ANY = "any"  # expected: a verdict, whichever
Key = tuple[str, int, str]


def verdict_of(exit_status: int) -> str:
    """What an exit status of the bench says of its run."""
    return VERDICTS[exit_status] if exit_status in range(3) else CRASHED


@dataclass(frozen=True)
class Row:
    """One finished run. `seconds` is how long it took, `started` an ISO time, `exit_status` the bench's.

    `program` is that of `runs.facts`, `node` another when the node's files change (`bench.sweep.plan`).
    """

    sweep: str
    cell: dict[str, Any]
    repetition: int = 1
    engine: str = "embedded"
    run: str | None = None
    verdict: str = UNKNOWN
    exit_status: int = 0
    seconds: float = 0.0
    started: str = ""
    expect: str = VALID
    figures: dict[str, float | None] = field(default_factory=dict)
    anomalies: list[str] = field(default_factory=list)
    workload: str | None = None
    program: str | None = None
    node: str | None = None

    @property
    def cell_key(self) -> tuple[str, str]:
        """The same for all repetitions of a cell on the same engine."""
        return json.dumps(self.cell, sort_keys=True), self.engine

    @property
    def key(self) -> Key:
        """Another for each run of a sweep."""
        cell, engine = self.cell_key
        return cell, self.repetition, engine

    @property
    def as_expected(self) -> bool:
        """Whether the run ended in a verdict, and in the one that was asked for."""
        return self.verdict == self.expect or (
            self.expect == ANY and self.verdict in (VALID, INVALID)
        )


def read(folder: Path) -> dict[Key, Row]:
    """The newest row of each run in the index of a sweep's folder; none where there is no index."""
    try:
        content = own(folder, SWEEP_INDEX).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {row.key: row for row in parse(content)}


def parse(content: bytes | str) -> Iterator[Row]:
    """The rows of an index, in order."""
    for line in content.splitlines():
        try:
            found = json.loads(line)
            row = Row(**{each.name: found[each.name] for each in fields(Row) if each.name in found})
        except (ValueError, TypeError):
            continue
        if (
            isinstance(row.cell, dict)
            and isinstance(row.repetition, int)
            and row.verdict in VERDICTS
        ):
            yield row


def append(folder: Path, row: Row) -> None:
    """Add a row to the index in one write. Raises `OSError`, also when the disk has room for half of it."""
    line = json.dumps(asdict(row)).encode() + b"\n"
    with (folder / SWEEP_INDEX).open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        if os.write(file.fileno(), line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def cell_of(run: Path) -> dict[str, Any] | None:
    """The cell of a run, which the index of a folder above names; None where none does."""
    for folder in run.absolute().parents[:DEPTH]:
        for row in read(folder).values():
            if row.run and folder / row.run == run.absolute():
                return row.cell
    return None


GRADE = "grade.json"  # of a challenge, which is a sweep whose cells are checks


@dataclass(frozen=True)
class CheckGrade:
    """How a check went, in a line.

    Where it did not go well: the folder of a run, the file with what it printed (both seen from that of the
    grade), and the command that repeats it.
    """

    verdict: str
    line: str
    run: str | None = None
    output: str = ""
    repeat: str = ""


@dataclass(frozen=True)
class Grade:
    """What a program's runs of a challenge came to, in a sentence and by check."""

    verdict: str
    sentence: str
    checks: Sequence[CheckGrade]


def keep_grade(folder: Path, grade: Grade) -> None:
    """Write the grade into the folder of its runs. Raises `OSError`."""
    content = json.dumps(asdict(grade), indent=2, ensure_ascii=False)
    (folder / GRADE).write_text(f"{content}\n", encoding="utf-8")


def grade_of(folder: Path) -> Grade | None:
    """The grade of the runs in a folder; None where there is none."""
    with suppress(OSError, ValueError, TypeError, LookupError):
        content = json.loads(own(folder, GRADE).read_text(encoding="utf-8"))
        checks = [CheckGrade(**each) for each in content.pop("checks")]
        return Grade(**content, checks=checks)
    return None


class Summary(NamedTuple):
    """A figure over the repetitions of one cell: median, lowest and highest."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Summary | None":
        """Of the values that are known; None if there are none."""
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known)) if known else None

    def text(self, decimals: int) -> tuple[str, str, str]:
        """The three numbers with so many decimals."""
        middle, low, high = (f"{value:.{decimals}f}" for value in self)
        return middle, low, high


@dataclass(frozen=True)
class Cell:
    """The repetitions of one cell on one engine: at least one."""

    rows: Sequence[Row]

    @property
    def axes(self) -> dict[str, Any]:
        return self.rows[0].cell

    @property
    def engine(self) -> str:
        return self.rows[0].engine

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(row.verdict for row in self.rows)

    @property
    def anomalies(self) -> list[str]:
        """The types of anomaly that its runs showed, sorted."""
        return sorted({name for row in self.rows for name in row.anomalies})

    @property
    def signs(self) -> list[str]:
        """What its runs showed that a reader should know: anomalies, and nodes that went mute."""
        most = int(max(self.values("mute_nodes"), default=0))
        mute = [f"{most} mute node{'s' * (most > 1)}"] if most else []
        return [*self.anomalies, *mute]

    @property
    def as_expected(self) -> bool:
        """Whether every run ended as was asked for."""
        return all(row.as_expected for row in self.rows)

    def values(self, figure: str) -> list[float]:
        """A figure of each run that has it."""
        found = (row.figures.get(figure) for row in self.rows)
        return [value for value in found if isinstance(value, int | float)]

    def summary(self, figure: str) -> Summary | None:
        """A figure over the runs that have it; None if none has."""
        return Summary.of(self.values(figure))


def cells(rows: Iterable[Row]) -> list[Cell]:
    """Rows by cell and engine, in the order in which the cells first came."""
    return [Cell(group) for group in grouped((row.cell_key, row) for row in rows).values()]
