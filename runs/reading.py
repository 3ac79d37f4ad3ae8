"""Reading a run's large files in parts: never more than a limit, and never failing on a bad line."""

import gzip
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from runs.files import STRIPE_ENDING
from runs.fressian import FressianError, journal_events
from runs.history import HistoryError, Op, line_ops
from runs.messages import Event

MIB = 2**20
Limits = Mapping[str, int]  # bytes, by form
# About two seconds of reading each.
PAGE_LIMITS: Limits = {".jsonl": 64 * MIB, ".edn": 16 * MIB, STRIPE_ENDING: 8 * MIB}


class TooLarge(Exception):
    """A file is larger than its limit."""

    def __init__(self, file: Path, limit_bytes: int) -> None:
        super().__init__(
            f"{file.name} is larger than the {limit_bytes // MIB} MiB that are read for a page. "
            f"`.venv/bin/python -m analysis summary {shlex.quote(str(file.parent))}` computes its"
            " figures with Spark; then this page shows them."
        )


@dataclass
class Bad:
    """Lines that could not be used, by file and reason: how many, and the number of the first."""

    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def note(self, file: Path, reason: str, line: int) -> None:
        entry = self.counts.setdefault((file.name, reason), [0, line])
        entry[0] += 1

    def rows(self) -> list[dict[str, Any]]:
        """As rows of the summary of the quarantine."""
        return [
            {"file": file, "reason": reason, "lines": lines, "first_line": first}
            for (file, reason), (lines, first) in self.counts.items()
        ]


def history(file: Path, bad: Bad, limits: Limits = PAGE_LIMITS) -> Iterator[Op]:
    """The operations of a history. Raises `TooLarge`, before anything is read if the file's size says so."""
    for number, line in _lines(file, bad, limits):
        try:
            yield from line_ops(file, number, line.decode())
        except (HistoryError, UnicodeDecodeError, RecursionError):
            bad.note(file, "not an operation", number)


def journal(files: Sequence[Path], bad: Bad, limits: Limits = PAGE_LIMITS) -> Iterator[Event]:
    """The events of a network journal, as its JSON lines have them. Raises `TooLarge`, as `history`.

    `files` is one file of JSON lines, or the Fressian stripes, or empty.
    """
    if files and files[0].suffix == STRIPE_ENDING:
        yield from _stripes(files, bad, limits)
        return
    for file in files:
        for number, line in _lines(file, bad, limits):
            try:
                event = orjson.loads(line)
            except ValueError:
                event = None
            if is_event(event):
                yield event
            else:
                bad.note(file, "not an event", number)


def is_event(event: Any) -> bool:
    """Whether it has what every event has."""
    message = event.get("message") if isinstance(event, dict) else None
    return (
        isinstance(message, dict)
        and isinstance(event.get("time"), int)
        and isinstance(event.get("type"), str)
        and isinstance(message.get("id"), int)
        and isinstance(message.get("src"), str)
        and isinstance(message.get("dest"), str)
        and isinstance(message.get("body"), dict)
    )


def _stripes(files: Sequence[Path], bad: Bad, limits: Limits) -> Iterator[Event]:
    """The events of the stripes in the order of time."""
    if sum(file.stat().st_size for file in files) > limits[STRIPE_ENDING]:
        raise TooLarge(files[0].parent, limits[STRIPE_ENDING])
    events: list[Event] = []
    for file in files:
        try:
            events.extend(filter(is_event, journal_events(file.read_bytes())))
        except FressianError as error:
            bad.note(file, "cut or unreadable", error.offset)
    yield from sorted(events, key=lambda event: (event["time"], event.get("id", 0)))


def _lines(file: Path, bad: Bad, limits: Limits) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without empty ones and without a last one that is still being written."""
    limit = limits[".edn" if ".edn" in file.suffixes else ".jsonl"]
    if file.stat().st_size > limit:
        raise TooLarge(file, limit)
    taken = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                taken += len(line)
                if taken > limit:
                    raise TooLarge(file, limit)
                if line.strip() and line.endswith(b"\n"):
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error):
        bad.note(file, "the compressed file ends too early", 0)
