"""What a command prints: one JSON object, or lines for people."""

import sys
from typing import Any

import orjson


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print a result to stdout."""
    sys.stdout.write((orjson.dumps(result).decode() if as_json else text_of(result)) + "\n")
    sys.stdout.flush()


def text_of(result: dict[str, Any]) -> str:
    """A result as lines `name  value`, and its lists as tables."""
    tables = {name: rows for name, rows in result.items() if isinstance(rows, list)}
    plain = {name: value for name, value in result.items() if name not in tables}
    width = max(map(len, plain), default=0)
    lines = [f"{name.replace('_', ' '):{width}}  {_cell(value)}" for name, value in plain.items()]
    for name, rows in tables.items():
        lines += _table(rows) if rows else [f"no {name}"]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = list(rows[0])
    cells = [[name.replace("_", " ") for name in names]]
    cells += [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cell(value: Any) -> str:
    """A value; a text without quotes, unless it could be read as another value or breaks the line."""
    if isinstance(value, str) and value.isprintable():
        return value
    return "-" if value is None else orjson.dumps(value).decode()
