"""Reading a run's large files for a page: never more than a limit, and never failing on a bad line."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from analysis.formats import edn
from runs.fressian import FressianError, journal_events

MIB = 2**20
# About two seconds of reading each.
LIMIT_BYTES = {".jsonl": 64 * MIB, ".edn": 16 * MIB, ".fressian": 8 * MIB}

Record = dict[str, Any]


class TooLarge(Exception):
    """A file is larger than what is read for a page."""

    def __init__(self, file: Path, limit_bytes: int) -> None:
        super().__init__(
            f"{file.name} is larger than the {limit_bytes // MIB} MiB that are read for a page. "
            f"`python -m analysis summary {file.parent}` computes its figures with Spark; "
            "then this page shows them."
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


def history(file: Path, bad: Bad) -> Iterator[Record]:
    """The operations of a history, as JSON-like maps (`index`, `time`, `type`, `process`, `f`, ...).

    Raises:
        TooLarge: before anything is read, where the size of the file tells.
    """
    read = _read_edn if ".edn" in file.suffixes else orjson.loads
    for number, line in _lines(file, bad):
        try:
            record = read(line)
        except ValueError:
            bad.note(file, "not an operation", number)
            continue
        if is_operation(record):
            yield record
        else:
            bad.note(file, "not an operation", number)


def journal(files: list[Path], bad: Bad) -> Iterator[Record]:
    """The events of a network journal, as its JSON lines have them. Raises `TooLarge`, as `history`."""
    if not files:
        return
    if files[0].suffix == ".fressian":
        yield from _stripes(files, bad)
        return
    for number, line in _lines(files[0], bad):
        try:
            event = orjson.loads(line)
        except ValueError:
            bad.note(files[0], "not an event", number)
            continue
        if is_event(event):
            yield event
        else:
            bad.note(files[0], "not an event", number)


def _read_edn(line: bytes) -> Any:
    return edn.loads(line.decode())


def is_operation(record: Any) -> bool:
    """Whether it has what every line of a history has."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("time"), int)
        and isinstance(record.get("f"), str)
        and isinstance(record.get("type"), str)
        and isinstance(record.get("process"), int | str)
    )


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


def _stripes(files: list[Path], bad: Bad) -> Iterator[Record]:
    """The events of the stripes in the order of time."""
    limit = LIMIT_BYTES[".fressian"]
    if sum(file.stat().st_size for file in files) > limit:
        raise TooLarge(files[0].parent, limit)
    events = []
    for file in files:
        try:
            events += [each for each in journal_events(file.read_bytes()) if is_event(each)]
        except FressianError as error:
            bad.note(file, "cut or unreadable", error.offset)
    yield from sorted(events, key=lambda event: (event["time"], event.get("id", 0)))


def _lines(file: Path, bad: Bad) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without empty ones and without a last one that is still being written."""
    limit = LIMIT_BYTES[".edn" if ".edn" in file.suffixes else ".jsonl"]
    packed = file.suffix == ".gz"
    if file.stat().st_size > limit:
        raise TooLarge(file, limit)
    taken = 0
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                taken += len(line)
                if taken > limit:
                    raise TooLarge(file, limit)
                if line.strip() and line.endswith(b"\n"):
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error):
        bad.note(file, "the compressed file ends too early", 0)
