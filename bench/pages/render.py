"""The templates, and figures as people read them: the same in a browser, in a file and on a terminal."""

import re
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import jinja2
from rich import filesize

from bench.verdict import glossary
from runs.facts import spaced

NONE = "–"
_MARKDOWN = {
    r"\[([^]]*)\]\([^)]*\)": r"\1",
    r"`([^`]*)`": r"<code>\1</code>",
    r"\*([^*]*)\*": r"<em>\1</em>",
}


def count(value: int | None) -> str:
    return NONE if value is None else spaced(value)


def milliseconds(value_ns: float | None) -> str:
    """In ms, with three significant digits or so: 0.65, 8.42, 58.3, 1 750."""
    if value_ns is None:
        return NONE
    value_ms = value_ns / 1e6
    decimals = 2 if value_ms < 10 else 1 if value_ms < 100 else 0
    return spaced(value_ms, f".{decimals}f")


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def rate(value_hz: float | None) -> str:
    return NONE if value_hz is None else number(round(value_hz, 1 if value_hz < 10 else 0))


def number(value: float | None) -> str:
    """Without digits that say nothing: 50, 0.5, 10 000."""
    return NONE if value is None else spaced(value, ".6g")


def option(value: Any) -> str:
    """The value of an option, or of an axis of a sweep."""
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return NONE if value is None else str(value)


def meaning(name: str) -> str:
    """What the name of an anomaly means, as HTML."""
    return prose(glossary.meaning(name))


def prose(markdown: str) -> str:
    """A sentence as HTML without links, which a page on a disk could not follow."""
    text = escape(markdown)
    for mark, element in _MARKDOWN.items():
        text = re.sub(mark, element, text)
    return text


def asset(name: str) -> str:
    return files("bench.pages").joinpath("static", name).read_text(encoding="utf-8")


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("bench.pages", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_NUMBERS = {
    "count": count,
    "ms": milliseconds,
    "number": number,
    "rate": rate,
    "size": filesize.decimal,
}
_ENVIRONMENT.filters |= {  # a line of a page never ends inside a number
    name: lambda value, write=write: write(value).replace(" ", "\N{NO-BREAK SPACE}")
    for name, write in _NUMBERS.items()
} | {
    # The time of day of a moment in ns since 1970.
    "utc": lambda value_ns: datetime.fromtimestamp(value_ns / 1e9, UTC).strftime("%H:%M:%S"),
    "ratio": ratio,
    "path": quote,
    "meaning": meaning,
    "prose": prose,
}


def page(template: str, *, served: bool = True, **values: Any) -> str:
    """A page as HTML.

    Args:
        template: its name.
        served: whether other pages can be linked to; if not, the page holds everything itself.
        values: what the template shows.
    """
    style = "" if served else asset("style.css")
    return _ENVIRONMENT.get_template(template).render(served=served, style=style, **values)
