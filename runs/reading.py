"""Reading a run's large files in parts: never more than a limit, and never failing on a bad line."""

import gzip
import shlex
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import orjson

from runs.files import STRIPE_ENDING
from runs.fressian import FressianError, journal_events
from runs.history import HistoryError, Op, line_ops
from runs.house import IN_A_CHECKOUT
from runs.traffic import Event

MIB = 2**20
PICTURE_BYTES = 64 * MIB  # about two seconds of reading
# What a byte costs to read, beside one of JSON.
_COSTS = {".edn": 4, STRIPE_ENDING: 8}


class TooLarge(Exception):
    """The files are larger than the limit."""

    def __init__(self, file: Path, limit_bytes: int) -> None:
        super().__init__(
            f"History and journal are larger than the {limit_bytes // MIB} MiB that are read for a page."
            f" `.venv/bin/python -m analysis report {shlex.quote(str(file.parent))}`{IN_A_CHECKOUT} reads"
            " them all; then this page shows their figures."
        )


class Budget:
    """How much may still be read: bytes of unpacked JSON, a quarter as many of EDN, an eighth of Fressian."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        """Allow so many bytes; None allows everything."""
        self._left = self._limit_bytes = inf if limit_bytes is None else limit_bytes

    def take(self, file: Path, cost: int) -> None:
        """Spend what a part of a file costs. Raises `TooLarge`."""
        self._left -= cost
        if self._left < 0:
            raise TooLarge(file, int(self._limit_bytes))

    def check(self, files: Sequence[Path]) -> None:
        """Raise `TooLarge` if the sizes of these files alone are too much."""
        whole = sum(_byte_cost(file) * file.stat().st_size for file in files)
        if whole > self._left:
            raise TooLarge(files[0], int(self._limit_bytes))


def _byte_cost(file: Path) -> int:
    return next((cost for form, cost in _COSTS.items() if form in file.suffixes), 1)


@dataclass
class Bad:
    """Lines that could not be used, by file and reason: how many, and the number of the first."""

    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def note(self, file: Path, reason: str, line: int, text: bytes = b"") -> None:  # noqa: ARG002
        """Note a line; `text` is what it begins with, for those who keep it."""
        self.counts.setdefault((file.name, reason), [0, line])[0] += 1

    def torn(self, file: Path, line: int, text: bytes) -> None:
        """Pass over a last line that is still being written, or was cut off."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each file and reason, as `Figures` has them."""
        return [
            {"file": file, "reason": reason, "lines": lines, "first_line": first}
            for (file, reason), (lines, first) in self.counts.items()
        ]


def history(file: Path, bad: Bad, budget: Budget) -> Iterator[Op]:
    """The operations of a history. Raises `TooLarge`."""
    return (op for _, _, op in placed(file, bad, budget))


def placed(file: Path, bad: Bad, budget: Budget) -> Iterator[tuple[int, bytes, Op]]:
    """The operations of a history, each with its line and that line's number. Raises `TooLarge`."""
    for number, line in _lines(file, bad, budget):
        try:
            for op in line_ops(file, number, line.decode()):
                yield number, line, op
        except (HistoryError, UnicodeDecodeError, RecursionError):
            bad.note(file, "not an operation", number, line)


def journal(files: Sequence[Path], bad: Bad, budget: Budget) -> Iterator[Event]:
    """The events of a network journal, as its JSON lines have them. Raises `TooLarge`.

    `files` is one file of JSON lines, or the Fressian stripes, or empty.
    """
    if files and files[0].suffix == STRIPE_ENDING:
        yield from _stripes(files, bad, budget)
        return
    for file in files:
        for number, line in _lines(file, bad, budget):
            try:
                event = orjson.loads(line)
            except ValueError:
                event = None
            if is_event(event):
                yield event
            else:
                bad.note(file, "not an event", number, line)


def is_event(event: Any) -> bool:
    """Whether it has what every event has."""
    message = event.get("message") if isinstance(event, dict) else None
    return (
        isinstance(message, dict)
        and long(event.get("time")) is not None
        and isinstance(event.get("type"), str)
        and long(message.get("id")) is not None
        and isinstance(message.get("src"), str)
        and isinstance(message.get("dest"), str)
        and isinstance(message.get("body"), dict)
    )


def long(value: object) -> int | None:
    """The value if it is a whole number of 64 bits."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def _stripes(files: Sequence[Path], bad: Bad, budget: Budget) -> Iterator[Event]:
    """The events of the stripes in the order of time."""
    events: list[Event] = []
    for file in files:
        budget.take(file, _byte_cost(file) * file.stat().st_size)
        try:
            events.extend(filter(is_event, journal_events(file.read_bytes())))
        except FressianError as error:
            bad.note(file, "cut or unreadable", error.offset)
    yield from sorted(events, key=lambda event: (event["time"], event.get("id", 0)))


def _lines(file: Path, bad: Bad, budget: Budget) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without empty ones and without a last one that is still being written."""
    cost = _byte_cost(file)
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                budget.take(file, cost * len(line))
                if line.strip() and line.endswith(b"\n"):
                    yield number, line
                elif line.strip():
                    bad.torn(file, number, line)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        bad.note(file, "the compressed file ends too early", 0)
