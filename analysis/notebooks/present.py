"""How a notebook shows sentences, pictures and tables."""

import re
from collections.abc import Mapping

import pandas as pd
from IPython.display import display

from runs.plots.picture import Picture

_SECONDS = {"started", "ended", "watched", "recovery", "window_start", "sent", "first_polled"}
_MOST_ROWS = 40
_DIGITS = 3


def show(*things: str | Picture | pd.DataFrame | None) -> None:
    """Show sentences as Markdown, figures as PNG, frames as tables with readable units, and None not at all.

    Of a table the names of runs are left out where something else tells its rows apart.
    """
    for thing in things:
        if isinstance(thing, str):
            _display({"text/markdown": thing, "text/plain": thing})
        elif isinstance(thing, Picture):
            _display({"image/png": thing.png(), "text/plain": thing.get_suptitle()})
        elif thing is not None:
            shown = readable(thing)
            first = shown.head(_MOST_ROWS)
            _display(
                {
                    "text/html": first.to_html(index=False, border=0, na_rep="–"),
                    "text/plain": first.to_string(index=False, na_rep="–"),
                }
            )
            if len(shown) > _MOST_ROWS:
                show(f"({len(shown) - _MOST_ROWS} more rows)")


def _display(texts: Mapping[str, str | bytes]) -> None:
    display(texts, raw=True)  # type: ignore[no-untyped-call]


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table as texts: nanoseconds become ms or s, numbers three significant digits."""
    others = [name for name in table.columns if name != "run_id"]
    kept = others if {"program", "figure"} & set(others) else list(table.columns)
    return pd.DataFrame(
        {_name(name): [_text(value, _divisor(name)) for value in table[name]] for name in kept}
    )


def _divisor(name: str) -> float:
    if not _is_time(name):
        return 1
    return 1e9 if name.partition("_ns")[0] in _SECONDS else 1e6


def _name(name: str) -> str:
    words = name.replace("_ns", "").replace("_", " ")
    return f"{words}, {'s' if _divisor(name) == 1e9 else 'ms'}" if _is_time(name) else words


def _is_time(name: str) -> bool:
    return re.search(r"_ns(_|$)", name) is not None


def _text(value: object, divisor: float) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if value is None or pd.isna(value):
        return None
    if isinstance(value, str | bool):
        return str(value)
    number = float(value) / divisor  # type: ignore[arg-type]
    if number.is_integer() or abs(number) >= 10**_DIGITS:
        return f"{number:,.0f}".replace(",", " ")
    return f"{number:.{_DIGITS}g}"
