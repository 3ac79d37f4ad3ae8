"""What a command reads and prints: a JSON object, a line a record for pipes and people, or lines for people.

Keys, values and errors come from others, so no text of theirs may steer a terminal: control and format
characters (such as U+009B, or U+202E, which turns the direction of writing), and separators of lines and
paragraphs, stand as the escapes of JSON.
"""

import logging
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import orjson

from leaderless.errors import Unfit
from leaderless.hosting.reads import Record
from leaderless.store.values import Value, json_of, message_of

STEERING = {"Cc", "Cf", "Zl", "Zp", "Cs"}  # categories of Unicode
VALUE = "value"  # what a result calls the value of a record
Sample = tuple[Mapping[str, str], float]  # labels, and a value
_NOT_PLAIN = re.compile("[^ -~]")


def show(result: dict[str, object], as_json: bool, file: TextIO | None = None) -> None:
    """Print a result to `file`; None: to stdout."""
    _write(_json(result) if as_json else text_of(result), file or sys.stdout)


def show_record(record: Record) -> None:
    """Print a record as a line to stdout: its key, offset and value, with tabs between them.

    The value is JSON. So is a key that is not printable or begins with a quote; others stand as they are.
    """
    key = _json(record.key) if record.key.startswith('"') else _cell("key", record.key)
    _write(f"{key}\t{record.offset}\t{_json(message_of(record.value))}", sys.stdout)


def show_text(text: str) -> None:
    """Print a text as a line to stdout."""
    _write(_cell("text", text), sys.stdout)


def note(text: str) -> None:
    """Print to stderr what is no part of the result."""
    _write(text, sys.stderr)


class Plain(logging.Formatter):
    """Formats records of logging: what a store has answered stands in them, too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record, each without what could steer a terminal."""
        lines = super().format(record).split("\n")
        return "\n".join(_NOT_PLAIN.sub(_escaped, line) for line in lines)


def given_value(text: str | bytes, what: str) -> Value:
    """The value in a text of JSON. Raises `Unfit`."""
    try:
        return json_of(text)
    except Unfit as unfit:
        raise Unfit(f"{what}: {unfit}; --string takes it as a text") from None


def lines_of(file: str) -> list[bytes]:
    """The lines of a file that are not blank; `-`: of stdin. Raises `Unfit`."""
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Unfit(f"{file} cannot be read: {error.strerror}") from None
    return [line for line in text.split(b"\n") if line.strip()]


def _write(text: str, file: TextIO) -> None:
    file.write(f"{text}\n")
    file.flush()


def text_of(result: dict[str, object]) -> str:
    """A result as lines `name  value`, and its lists as tables."""
    tables = {
        name: rows for name, rows in result.items() if isinstance(rows, list) and name != VALUE
    }
    plain = {name: value for name, value in result.items() if name not in tables}
    width = max(map(len, plain), default=0)
    lines = [
        f"{name.replace('_', ' '):{width}}  {_cell(name, value)}" for name, value in plain.items()
    ]
    for name, rows in tables.items():
        lines += _table(rows) if rows else [f"no {name}"]
    return "\n".join(lines)


def _table(rows: list[dict[str, object]]) -> list[str]:
    names = list(rows[0])
    cells = [
        [name.replace("_", " ") for name in names],
        *([_cell(name, row[name]) for name in names] for row in rows),
    ]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cell(name: str, value: object) -> str:
    """What is called `name`. The value of a record is JSON: null, 1 and "1" are three values.

    Other texts stand without quotes, unless they break the line; None is "-".
    """
    if name == VALUE:
        return _json(value)
    if isinstance(value, str) and value.isprintable():
        return value
    return "-" if value is None else _json(value)


def exposition(families: Mapping[str, Sequence[Sample]]) -> str:
    """Metrics in Prometheus's text format; a name that ends with `_total` is a counter, any other a gauge."""
    lines: list[str] = []
    for name, samples in families.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE leaderless_{name} {kind}")
        for labels, value in samples:
            texts = (f'{label}="{_quoted(text)}"' for label, text in labels.items())
            lines.append(f"leaderless_{name}{{{','.join(texts)}}} {value}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    plain = _NOT_PLAIN.sub(_escaped, text)  # the format has no escape for most of these
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _json(value: object) -> str:
    """The text of JSON, in which only a text can have a character that is escaped here."""
    return _NOT_PLAIN.sub(_escaped, orjson.dumps(value).decode())


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in STEERING:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
